"""A Python model."""


def model(dbt, session):
    dbt.config(materialized="table")
    return dbt.ref("orders_keyed")
