"""Maintenance of keyed tables: verification, cleanup, expiry, erasure, history and rollback.

It plans on metadata and writes through a ``Context``. It depends neither on dbt nor on a terminal.
"""
