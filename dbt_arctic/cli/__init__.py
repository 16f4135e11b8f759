"""The ``dbt-arctic`` command for operators."""
