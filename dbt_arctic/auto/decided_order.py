"""A model's SQL with orders that its rows determine.

Sets are sorted, and with ``auto: {ties: by_key}``, rows that an order leaves equal are ordered by key.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.auto.inputs import (
    Until,
    analysed_query,
    facts_of,
    find_inputs,
    full_name,
)
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.delta.sorted_sets import sort_sets
from dbt_arctic.planner.delta.ties_by_key import ordered_by_key
from dbt_arctic.planner.frontend.parse import named
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.spark.collected_arrays import COLLECTS
from dbt_arctic.refresh.config import KeyedConfig


def with_decided_order(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    settings: str,
    until: Until = lambda name: None,
) -> str:
    """The SQL of a model, which is both built and refreshed by it.

    :param settings: the session's, as for ``plan_refresh``; so is ``until``.
    :returns: the same where its orders are known, or where it cannot be planned.
    """
    if not _may_change(config, sql) or unsupported_setting(settings) is not None:
        return sql
    inputs = find_inputs(catalog, name, sql, {}, until, declared=config.declared_keys, settings=settings)
    if inputs.reason is not None:
        return sql

    def meant(tree: exp.Query) -> Query:
        full = named(tree, lambda written: full_name(written, name).dotted.lower())
        return analysed_query(replace(inputs, tree=full), None)

    facts = Facts({key: facts_of(upstream) for key, upstream in inputs.upstreams.items()})
    if config.ties == "by_key":
        return ordered_by_key(sql, config.unique_key, facts, meant)
    return sort_sets(sql, facts, meant)


def _may_change(config: KeyedConfig, sql: str) -> bool:
    """Whether the text need be read at all."""
    if config.ties == "by_key":
        return True
    return "order_dependent" not in config.accept and any(name in sql.lower() for name in COLLECTS)


__all__ = ["with_decided_order"]
