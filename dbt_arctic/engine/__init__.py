"""Provides a Spark to run SQL on.

Depends neither on dbt, nor on the contents of catalogs, nor on keyed tables.
"""
