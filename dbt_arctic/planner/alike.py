"""Which equalities say that two columns have the same value.

Spark compares a string with a number, or a date with a timestamp, after a cast. Then several values of one
side may equal one of the other (`'1'` and `'01'` are both 1), so that a column cannot stand for the other,
neither where rows are looked for nor where it is told that no two of them share a key. Such an equality is
left to Spark: it is put in parentheses, so that no rule takes it for one of two plain columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Subquery,
    UnionAll,
    Window,
    map_children,
    plain,
    walk,
)
from dbt_arctic.planner.functions import function_name
from dbt_arctic.planner.types import Sort, sort_of, sorts

_NUMBERS = frozenset(
    ["tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "decimal", "dec", "numeric"]
)
_FLOATS = frozenset(["float", "real", "double"])
_STRINGS = frozenset(["string", "varchar", "char"])
_OF_STRINGS = frozenset(
    [
        "concat",
        "concat_ws",
        "date_format",
        "initcap",
        "lcase",
        "left",
        "lower",
        "lpad",
        "ltrim",
        "md5",
        "regexp_extract",
        "regexp_replace",
        "replace",
        "reverse",
        "right",
        "rpad",
        "rtrim",
        "sha",
        "sha1",
        "sha2",
        "split_part",
        "substr",
        "substring",
        "substring_index",
        "to_json",
        "translate",
        "trim",
        "ucase",
        "upper",
        "uuid",
    ]
)
"""Functions whose value is a string."""
_EXACT: tuple[Sort, ...] = ("whole", "big", "decimal")


def family(type_: str) -> str:
    """Types of one family are compared without losing a difference.

    >>> family("decimal(10,2)"), family("BIGINT"), family("varchar(3)"), family("date")
    ('number', 'number', 'string', 'date')
    """
    bare = type_.lower().split("(")[0].strip()
    for name, members in (("number", _NUMBERS), ("float", _FLOATS), ("string", _STRINGS)):
        if bare in members:
            return name
    return type_.lower()


def with_true_equalities(node: Node, types: Mapping[str, str]) -> Node:
    """:param types: of the columns of scans."""
    known = _families(node, types)

    def of_condition(condition: exp.Expression) -> exp.Expression:
        if not isinstance(condition, exp.EQ) or _are_alike(condition.this, condition.expression, known):
            return condition
        left, right = condition.this.copy(), condition.expression.copy()
        return exp.EQ(this=exp.Paren(this=left), expression=exp.Paren(this=right))

    def of_subquery(one: Subquery) -> Subquery:
        if (
            one.operand is not None
            and one.value is not None
            and not _are_alike(one.operand, one.value, known)
        ):
            one = replace(one, operand=exp.Paren(this=one.operand.copy()))
        return replace(one, correlation=tuple(map(of_condition, one.correlation)))

    def change(part: Node) -> Node:
        part = map_children(part, change)
        changed: dict[str, Any] = {}
        if isinstance(part, Filter | Join):
            changed["conditions"] = tuple(map(of_condition, part.conditions))
        if isinstance(part, Filter | Project) and part.subqueries:
            changed["subqueries"] = tuple(map(of_subquery, part.subqueries))
        return replace(part, **changed) if changed else part

    return change(node)


def _are_alike(left: exp.Expression, right: exp.Expression, known: Mapping[str, str]) -> bool:
    """Whether two plain columns are of one family; what is no plain column is not taken for one anyway."""
    one, other = plain(left), plain(right)
    if one is None or other is None:
        return True
    return known.get(one) is not None and known.get(one) == known.get(other)


def _families(node: Node, types: Mapping[str, str]) -> dict[str, str]:
    """The family of every column in a tree whose type its text tells."""
    numbers = sorts(node, types)
    known: dict[str, str] = {}

    def of_value(value: exp.Expression) -> str | None:
        name = plain(value)
        if name is not None:
            return known.get(name)
        if isinstance(value, exp.Paren):
            return of_value(value.this)
        if isinstance(value, exp.Cast):
            return family(value.to.sql(dialect="spark"))
        if (isinstance(value, exp.Literal) and value.is_string) or function_name(value) in _OF_STRINGS:
            return "string"
        return "number" if sort_of(value, numbers) in _EXACT else None

    def note(items: tuple[tuple[str, exp.Expression], ...]) -> None:
        for name, value in items:
            found = of_value(value)
            if found is not None:
                known[name] = found

    # What stands below comes later in a walk.
    for part in reversed(list(walk(node))):
        match part:
            case Scan():
                known.update({name: family(types[name]) for name in part.output if name in types})
            case Project():
                note(part.items)
            case Aggregate():
                note((*part.groups, *part.aggregates))
            case Window():
                note(part.items)
            case UnionAll() | SetOperation():
                inputs = part.children if isinstance(part, UnionAll) else (part.left, part.right)
                for place, name in enumerate(part.columns):
                    found = {known.get(one.output[place]) for one in inputs}
                    if len(found) == 1 and (only := found.pop()) is not None:
                        known[name] = only
    return known
