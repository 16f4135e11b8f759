"""A project of 24 small models, run repeatedly: dbt-arctic, and dbt-spark's ``table`` and ``merge``."""
