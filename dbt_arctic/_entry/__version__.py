"""The version, which dbt, setup.py and ``dbt-arctic --version`` read here."""

version = "0.2.0"
