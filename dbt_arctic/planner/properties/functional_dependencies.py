"""Functional dependencies: columns whose values are determined by other columns of the row.

They follow from keys, groups and computed columns, and are transitive (Armstrong 1974).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import columns_of, plain
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.spark.functions import function_name, kind_of
from dbt_arctic.planner.typing.inference import type_of
from dbt_arctic.planner.typing.inferred_type import DATE, TIMESTAMP

_OF_TIMES = frozenset(
    [
        *("add_months", "date", "date_add", "date_format", "date_sub", "date_trunc", "day", "dayofmonth"),
        *("dayofweek", "dayofyear", "hour", "last_day", "minute", "month", "quarter", "second", "to_date"),
        *("trunc", "weekday", "weekofyear", "year"),
    ]
)


class Dependency(NamedTuple):
    """Rows with equal values in ``key`` have equal values in ``columns``. NULLs count as equal."""

    key: frozenset[str]
    columns: frozenset[str]


def dependencies(node: Node, facts: Facts) -> list[Dependency]:
    """The functional dependencies among the columns of ``node`` that keys and groups imply."""
    match node:
        case Scan():
            key = key_of(node, facts)
            return [] if key is None else [Dependency(key, frozenset(node.output))]
        case Filter() | Window() | Limit():
            return dependencies(node.child, facts)
        case Project():
            return [*_shown(dependencies(node.child, facts), dict(node.items)), *_computed(dict(node.items))]
        case Aggregate():
            if node.grouping_sets is not None:
                return conservative([], "a group of one set has the NULLs of another one")
            own = Dependency(frozenset(name for name, _ in node.groups), frozenset(node.output))
            groups = dict(node.groups)
            return [own, *_shown(dependencies(node.child, facts), groups), *_computed(groups)]
        case Join():
            # Unmatched rows have a NULL key, but a stored row with a NULL key may have other values.
            kept = {"inner": (node.left, node.right), "right": (node.right,), "full": ()}
            sides = kept.get(node.kind, (node.left,))
            return [one for side in sides for one in dependencies(side, facts)]
        case Generate():
            return conservative([], "the child's keys would hold, which no rule has needed so far")
        case KeySemiJoin():
            return conservative([], "only rules create it, after this analysis")
        case Values() | UnionAll() | SetOperation():
            return conservative([], "nothing is known about constants, or about rows of several parts")


def without_dependent(columns: Mapping[str, exp.Expression], known: list[Dependency]) -> frozenset[str]:
    """The names of a subset of ``columns`` that determines all of them."""
    left = dict(columns)
    for key, determined in known:
        if key <= {plain(value) for value in left.values()}:
            left = {
                name: one for name, one in left.items() if plain(one) in key or not is_of(one, determined)
            }
    return frozenset(left)


def has_one_row_a_key(node: Scan) -> bool:
    """Whether a scan of an upstream with a key has at most one row for each. Some have one of each state."""
    return node.state not in ("changed", "weighted")


def key_of(node: Scan, facts: Facts) -> frozenset[str] | None:
    """The columns of an upstream's key; ``None`` if it has no key, or if not all of it is read."""
    if not has_one_row_a_key(node):
        return None
    stored = frozenset(facts.of(node).key)
    named = frozenset(name for name, one in node.columns if one in stored)
    return named if stored and len(named) == len(stored) else None


def numbered(node: Node, name: str) -> frozenset[str] | None:
    """The columns within whose values the column ``name`` numbers the rows from 1.

    ``None`` if it is not a ``row_number()``, or if not all of these columns are output.
    """
    match node:
        case Filter() | Limit():
            return numbered(node.child, name)
        case Project():
            items = dict(node.items)
            found = numbered(node.child, plain(items[name]) or "") if name in items else None
            return None if found is None else under(items, found)
        case Window():
            item = dict(node.items).get(name)
            if item is None:
                return numbered(node.child, name)
            by = [plain(one) for one in node.partition]
            if None in by or function_name(item.this) != "row_number":
                return None
            return frozenset(one for one in by if one is not None)
        case Join() | Generate() | KeySemiJoin():
            return conservative(
                None, "they may repeat or remove rows; the operator above needs the exact number"
            )
        case Scan() | Values() | Aggregate() | UnionAll() | SetOperation():
            return None  # These operators do not pass on the column of a window.


def is_of(value: exp.Expression, columns: frozenset[str]) -> bool:
    """Whether an expression is a deterministic function of some columns alone."""
    names = (function_name(one) for one in value.walk())
    is_scalar = all(name is None or kind_of(name) == "scalar" for name in names)
    return is_scalar and columns_of(value) <= columns and value.find(SubqueryRef) is None


def _computed(items: Mapping[str, exp.Expression]) -> list[Dependency]:
    """Dependencies of expressions on columns that are output as well, such as the week of a day."""
    found = []
    for name, value in items.items():
        shown = under(items, columns_of(value))
        if shown and plain(value) is None and _is_of_times(value):
            found.append(Dependency(shown, frozenset({name})))
    return found


def _is_of_times(value: exp.Expression) -> bool:
    """Whether an expression only contains dates and timestamps. Equal floats may differ as text."""
    return all(
        function_name(one) in _OF_TIMES
        or isinstance(one, exp.Column | exp.Identifier | exp.Literal | exp.DataType | exp.Paren)
        or (isinstance(one, exp.Cast) and type_of(one) in (DATE, TIMESTAMP))
        for one in value.walk()
    )


def _shown(known: list[Dependency], items: Mapping[str, exp.Expression]) -> list[Dependency]:
    found = []
    for key, columns in known:
        named = under(items, key)
        if named is not None:
            follow = frozenset(name for name, value in items.items() if is_of(value, columns))
            found.append(Dependency(named, follow))
    return found


def under(items: Mapping[str, exp.Expression], columns: frozenset[str]) -> frozenset[str] | None:
    """The output names of columns; ``None`` if one of them is not output."""
    names: dict[str, str] = {}
    for name, value in items.items():
        below = plain(value)
        if below is not None:
            names.setdefault(below, name)
    return frozenset(names[one] for one in columns) if columns <= names.keys() else None
