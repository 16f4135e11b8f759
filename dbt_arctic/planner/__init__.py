"""Automatic incremental models: from a model's SQL and what changed to the keys that can have changed.

Pure: no dbt, no Spark. A plan is a value and SQL text.
"""
