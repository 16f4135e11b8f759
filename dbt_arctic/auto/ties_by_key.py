"""``auto: {ties: by_key}``: a model's SQL in which rows that an order leaves equal are ordered by key."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.auto.inputs import Until, facts_of, full_name, read, understood, unsupported_setting
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.delta.ties_by_key import ordered_by_key
from dbt_arctic.planner.frontend.parse import named
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.refresh.config import KeyedConfig


def with_ties_by_key(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    settings: str = "",
    until: Until = lambda name: None,
) -> str:
    """The SQL of a model, which is both built and refreshed by it.

    :param settings: the session's, as for ``plan_refresh``; so is ``until``.
    :returns: the same where the model does not ask for it, or cannot be planned.
    """
    if config.ties != "by_key" or unsupported_setting(settings) is not None:
        return sql
    reading = read(catalog, name, sql, {}, until, declared=config.declared_keys)
    if reading.reason is not None:
        return sql

    def meant(tree: exp.Query) -> Query:
        full = named(tree, lambda written: full_name(written, name).dotted.lower())
        return understood(replace(reading, tree=full), None)

    facts = Facts({key: facts_of(upstream) for key, upstream in reading.upstreams.items()})
    return ordered_by_key(sql, config.unique_key, facts, meant)


__all__ = ["with_ties_by_key"]
