"""The ``dbt-arctic`` command: what an operator types beside dbt itself."""
