"""The one place of the version: dbt, setup.py and ``dbt-arctic --version`` read it here."""

version = "0.1.0"
