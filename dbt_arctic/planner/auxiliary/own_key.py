"""The model's own key as the key of its auxiliary view: a group that is NULL has no key by itself.

``SELECT coalesce(region, '?') AS region, ... GROUP BY region HAVING ...`` has a key for each of its groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Filter, Limit, Project, SubqueryRef
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain, substitute
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import unique_keys
from dbt_arctic.planner.spark.dialect import TimeFunction


@dataclass(frozen=True)
class OwnKey:
    """The key columns of an auxiliary view.

    :param names: groups, and columns that are computed from groups.
    :param computed: the latter.
    """

    names: tuple[str, ...]
    computed: tuple[tuple[str, exp.Expression], ...]


def own_key(query: Query, key: Sequence[str], keys_of: Mapping[str, Sequence[str]]) -> OwnKey | None:
    """The key of a model that ends in an aggregate, if a column of it is computed from the groups.

    ``None`` if it might not be unique without the filters over the aggregate, or if it consists of groups.
    The groups are then compared as keys, which costs less than carrying them.

    :param key: the columns of the model's key.
    :param keys_of: the keys of upstreams, by stored names.
    """
    shown: dict[str, exp.Expression] = {name.lower(): column(one) for name, one in query.columns}
    values = [shown.get(name.lower(), exp.Null()) for name in key]
    node = query.node
    while isinstance(node, Project | Filter | Limit):
        if isinstance(node, Project):
            items = dict(node.items)
            values = [substitute(value, items) for value in values]
        node = node.child
    assert isinstance(node, Aggregate)
    # A group in parentheses is a group.
    values = [_bare(value) for value in values]
    groups, used = {name for name, _ in node.groups}, columns_of(*values)
    if not all(columns_of(value) and value.find(TimeFunction, SubqueryRef) is None for value in values):
        return None
    facts = Facts({source: UpstreamFacts(True, tuple(one)) for source, one in keys_of.items()})
    is_whole = used <= groups and any(one <= used for one in unique_keys(node, facts))
    if not is_whole or all(plain(value) is not None for value in values):
        return None
    named = [(plain(value) or f"_key_{place}", value) for place, value in enumerate(values, 1)]
    computed = tuple((name, value) for name, value in named if plain(value) is None)
    return OwnKey(tuple(dict.fromkeys(name for name, _ in named)), computed)


def _bare(value: exp.Expression) -> exp.Expression:
    found = value.unnest()
    assert isinstance(found, exp.Expression)
    return found


__all__ = ["OwnKey", "own_key"]
