"""Adds the key of the rows to each order that leaves rows equal, in the text of a query, and sorts sets.

Any choice among equal rows is a right answer of the query. By the key it is the same in each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Limit, Node, Project, Window, scans, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import quoted
from dbt_arctic.planner.algebra.scalars import plain
from dbt_arctic.planner.frontend.collected_sets import with_sorted_sets
from dbt_arctic.planner.frontend.order_by_positions import Names, mark_orders, place_of, place_of_limit
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.properties.determinism import (
    first_rows_are_known,
    identical,
    is_any_choice,
    tied_windows,
)
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.unique_keys import unique_keys
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import to_sql

_ROUNDS = 5
"""A number of rows that is unique by now may be the key of an order further outside."""


def ordered_by_key(
    sql: str, key: Sequence[str], facts: Facts, understood: Callable[[exp.Query], Query]
) -> str:
    """The text with keys at the end of its orders, where a key of the rows is known.

    :param key: the model's. :param understood: what a parsed text means.
    :returns: the same text where it is not understood.
    """
    for _ in range(_ROUNDS):
        try:
            tree = parse(sql)
            mark_orders(tree, sql)
            query = understood(tree)
            sets_sorted = with_sorted_sets(tree, sql)
            if sets_sorted != sql:
                sql = sets_sorted
                continue
        except CannotPlan:
            break
        added = {
            **dict(_of_windows(query, key, facts, _written(tree, query))),
            **_of_limit(query, tree, sql, key, facts),
        }
        for place, text in sorted(added.items(), reverse=True):
            sql = f"{sql[:place]}{text}{sql[place:]}"
        if not added:
            break
    return sql


def _written(tree: exp.Query, query: Query) -> frozenset[str]:
    """Names that a text may use, in lower case: those in it, and those of the columns of its tables."""
    named = {one.name.lower() for one in tree.find_all(exp.Identifier)}
    return frozenset(named.union(stored.lower() for one in scans(query.node) for _, stored in one.columns))


def _of_windows(
    query: Query, key: Sequence[str], facts: Facts, written: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """For places of the text, what to add there."""
    kept = set()
    for part in walk(query.node):
        for _, item in part.items if isinstance(part, Window) else ():
            found = place_of(item.args.get("order"))
            if found is not None and not is_any_choice(item):
                # It has the same value for rows that are equal, and may share a named window with others.
                kept.add(found[0])
    for window, item in tied_windows(query.node, query.types, facts, query.identifiers(key)):
        order = item.args.get("order")
        found = place_of(order)
        if order is None or found is None or found[0] in kept:
            continue
        place, names = found[0], _texts(found[1], written)
        there = {plain(one) for one in (*window.partition, *(part.this for part in order.expressions))}
        columns = _key_of(window.child, facts, names)
        if columns and (texts := [names[one] for one in sorted(columns) if one not in there]):
            yield place, f", {', '.join(texts)}"


def _texts(names: Names, written: frozenset[str]) -> Mapping[str, str]:
    """How columns are written, of those of which that is known.

    A relation without an alias gets one when the text is parsed, and so do columns of one name.
    """
    found, by_name = {}, Counter(value.name for value in names.values() if isinstance(value, exp.Column))
    for identifier, value in names.items():
        made = value.copy()
        columns = [made] if isinstance(made, exp.Column) else list(made.find_all(exp.Column))
        known = all(one.name.lower() in written for one in columns)
        for one in columns:
            if one.table.lower() not in written:
                one.set("table", None)
                known = known and by_name[one.name] <= 1
        if known:
            found[identifier] = to_sql(made)
    return found


def _key_of(node: Node, facts: Facts, names: Mapping[str, str]) -> frozenset[str] | None:
    """The shortest key whose columns can all be named."""
    known = [one for one in unique_keys(node, facts) if one <= names.keys()]
    return min(known, key=lambda one: (len(one), sorted(one)), default=None)


def _of_limit(query: Query, tree: exp.Query, sql: str, key: Sequence[str], facts: Facts) -> dict[int, str]:
    place = place_of_limit(tree, sql)
    node, names = query.node, query.identifiers(key)
    while isinstance(node, Project):
        node = node.child
    if place is None or not names or not isinstance(node, Limit):
        return {}
    if first_rows_are_known(node, facts, identical(query.node, query.types), names):
        return {}
    listed = ", ".join(quoted(name) for name in key)
    return {place.place: f", {listed}" if place.is_ordered else f" ORDER BY {listed}"}


__all__ = ["ordered_by_key"]
