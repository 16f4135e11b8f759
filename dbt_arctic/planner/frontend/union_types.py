"""Columns of a UNION whose branches have different types.

Rules look up and aggregate the rows of one branch separately. There, an expression over such a column is
computed in the branch's own type: a number has another text, and a quotient another precision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.columns import all_expressions, computed, line_of_column
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
    map_children,
    walk,
)
from dbt_arctic.planner.reasons import CannotPlan, Line, line_of
from dbt_arctic.planner.spark.dialect import verbatim
from dbt_arctic.planner.typing.coercion import are_comparable, depends_on_types, may_be_decimal
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import INTEGERS, type_text

_WHOLE = frozenset(map(type_text, INTEGERS))
_WHOLE_OR_TEXT = (exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.TEXT)
_COMPARES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.Between, exp.In, exp.Is)
_ADDS_UP = (exp.Sum, exp.Count, exp.Min, exp.Max, exp.Ordered, exp.Window)
_UNKNOWN = "a type that is not known"
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_DIGIT = re.compile(r"\d")


def with_typed_nulls(node: Node, types: Mapping[str, str]) -> Node:
    """Give an untyped NULL in one branch of a UNION the type of the other branches.

    :param types: the types of the columns of scans.
    """

    def typed(part: Node, columns: Mapping[int, str]) -> Node:
        if isinstance(part, UnionAll):
            return replace(part, children=tuple(typed(child, columns) for child in part.children))
        if isinstance(part, Aggregate) and not part.aggregates:
            # DISTINCT: groups of plain columns.
            places = {value.name: place for place, (_, value) in enumerate(part.groups)}
            below = {
                place: columns[places[name]]
                for place, name in enumerate(part.child.output)
                if places.get(name) in columns
            }
            return replace(part, child=typed(part.child, below))
        if not isinstance(part, Project):
            return part
        items = tuple(
            (name, exp.cast(value, columns[place], dialect="spark"))
            if isinstance(value, exp.Null) and place in columns
            else (name, value)
            for place, (name, value) in enumerate(part.items)
        )
        return replace(part, items=items) if items != part.items else part

    def change(part: Node) -> Node:
        part = map_children(part, change)
        if not isinstance(part, UnionAll):
            return part
        columns = {}
        known = Types(part, types).texts()
        for place in range(len(part.columns)):
            found = {known[child.output[place]] for child in part.children if child.output[place] in known}
            if len(found) == 1:
                columns[place] = found.pop()
        return replace(part, children=tuple(typed(child, columns) for child in part.children))

    return change(node)


def refuse_mixed(node: Node, types: Mapping[str, str], *, wrap_on_overflow: bool = False) -> None:
    """Refuse a UNION whose branches have types that Spark would cast.

    :param types: the types of the columns of scans.
    :param wrap_on_overflow: whether integers wrap around on overflow, as without ANSI mode.

    :raises CannotPlan: a cast could change values that the query depends on.
    """
    inferred = Types(node, types)
    _refuse_incompatible(node, inferred)
    known = inferred.texts()
    mixed: dict[str, tuple[str, ...]] = {}
    shapes = _shapes(node, known)
    families = inferred.families()
    by_type = wrap_on_overflow or depends_on_types(node)
    for part in reversed(list(walk(node))):
        if isinstance(part, UnionAll | SetOperation):
            made = _mixed(part.columns, part.parts, shapes)
            if isinstance(part, SetOperation):
                for name in made.keys() - families.keys():
                    column = part.right.output[part.columns.index(name)]
                    raise _unlike(made[name], known, line_of_column(part.right, column))
            mixed.update(made)
        for expression in all_expressions(part):
            for found in expression.find_all(exp.Column):
                parts = mixed.get(found.name)
                if parts is None:
                    continue
                if found.name not in families and _is_distinguished(found, part):
                    raise _unlike(parts, known, line_of(expression))
                if _takes_any(found):
                    continue
                # Integer expressions do not depend on the width of their operands otherwise.
                if not by_type and set(parts) <= _WHOLE and _is_of_whole(expression, known, mixed):
                    continue
                raise CannotPlan(
                    "unsupported",
                    f"an expression over a column of a UNION whose parts have {_description(parts, known)}",
                    "cast the column to one type in each part",
                    line_of(expression),
                )
        carried = {
            name: mixed[value.name]
            for name, value in computed(part)
            if isinstance(value, exp.Column) and value.name in mixed
        }
        mixed.update(carried)


def _refuse_incompatible(node: Node, types: Types) -> None:
    """Refuse set operations whose parts have types that are not compared without a lossy cast."""
    known = types.exact()
    for part in reversed(list(walk(node))):
        if not isinstance(part, UnionAll | SetOperation):
            continue
        for place in range(len(part.columns)):
            typed = [(one, one.output[place]) for one in part.parts if one.output[place] in known]
            for one, name in typed[1:]:
                first, other = known[typed[0][1]], known[name]
                if not are_comparable(first, other):
                    both = f"{type_text(first)} and {type_text(other)}"
                    what = f"parts of a UNION, INTERSECT or EXCEPT have {both} in one column"
                    fix = "cast the columns to one type"
                    raise CannotPlan("unsupported", what, fix, line_of_column(one, name))


def columns_of_several_types(node: Node, types: Mapping[str, str]) -> frozenset[str]:
    """The columns of UNION ALLs whose branches have, or may have, different types.

    :param types: the types of the columns of scans.
    """
    shapes = _shapes(node, Types(node, types).texts())
    unions = (part for part in walk(node) if isinstance(part, UnionAll))
    return frozenset(name for part in unions for name in _mixed(part.columns, part.parts, shapes))


def _unlike(parts: Sequence[str], known: Mapping[str, str], line: Line | None = None) -> CannotPlan:
    """The error for columns that Spark compares in a third type, in which different values may be equal."""
    what = (
        f"a column of a UNION, INTERSECT or EXCEPT whose parts have {_description(parts, known)} is compared"
    )
    return CannotPlan("unsupported", what, "cast the column to one type in each part", line)


def _is_distinguished(found: exp.Column, node: Node) -> bool:
    """Whether a column is compared, grouped by, ordered by or aggregated."""
    parent = found.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if parent is None:
        return not isinstance(node, Project)
    if isinstance(parent, exp.Is):
        return not isinstance(parent.expression, exp.Null)
    return not isinstance(parent, exp.Count)


def _description(types: Sequence[str], known: Mapping[str, str]) -> str:
    shown = sorted({one if one in known.values() else "a computed type" for one in types})
    return " and ".join(shown) if len(shown) > 1 else "types that are not known to be the same"


def _is_of_whole(
    expression: exp.Expression, known: Mapping[str, str], mixed: Mapping[str, tuple[str, ...]]
) -> bool:
    """Whether an expression consists of integers only.

    With decimals, a BIGINT has another precision than an INT.
    """
    return all(
        known.get(one.name, "") in _WHOLE or set(mixed.get(one.name, ("",))) <= _WHOLE
        for one in expression.find_all(exp.Column)
    ) and not any(
        may_be_decimal(one)
        or isinstance(one, SubqueryRef)
        or (isinstance(one, exp.Cast) and one.to.this not in _WHOLE_OR_TEXT)
        for one in expression.walk()
    )


def _takes_any(column: exp.Column) -> bool:
    """Whether the use of a column gives the same result for each of its types."""
    parent = column.parent
    while isinstance(parent, exp.Paren | exp.Distinct):
        parent = parent.parent
    return parent is None or isinstance(parent, (*_COMPARES, *_ADDS_UP))


def _mixed(
    columns: Sequence[str], parts: Sequence[Node], shapes: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    found = {}
    for place, name in enumerate(columns):
        types = sorted({shapes.get(part.output[place], _UNKNOWN) for part in parts})
        if len(types) > 1 or _UNKNOWN in types:
            found[name] = tuple(types)
    return found


def _shapes(node: Node, known: Mapping[str, str]) -> dict[str, str]:
    """The shape of each column: its type, or the expression that computes it over typed columns.

    Columns of the same shape have the same type.
    """
    shapes: dict[str, str] = {}

    def of(value: exp.Expression) -> str:
        columns = {one.name for one in value.find_all(exp.Column)}
        if not columns <= shapes.keys() or value.find(SubqueryRef) is not None:
            return _UNKNOWN

        def swap(one: exp.Expr) -> exp.Expr:
            if isinstance(one, exp.Column):
                return exp.Var(this=shapes[one.name])
            if isinstance(one, exp.Literal) and not one.is_string and isinstance(one.parent, _ARITHMETIC):
                # The type of arithmetic depends on the precision of a number, and that of a function on its
                # value.
                return exp.Var(this=_digits(one.name))
            return one

        return value.copy().transform(swap).sql(dialect=verbatim())

    for part in reversed(list(walk(node))):
        match part:
            case Scan():
                made = {name: known.get(name, _UNKNOWN) for name in part.output}
            case Project() | Window() | Aggregate():
                made = {name: known.get(name) or of(value) for name, value in part.items}
            case UnionAll() | SetOperation():
                made = _same_shape(part.columns, part.parts, shapes)
            case Values() | Generate():
                made = conservative({}, "a column of unknown shape may have another type")
            case Filter() | Join() | KeySemiJoin() | Limit():
                made = {}  # They have only the columns of their inputs.
        shapes.update({name: shape for name, shape in made.items() if shape != _UNKNOWN})
    return shapes


def _digits(number: str) -> str:
    """The part of a literal that determines its type.

    Spark does not count the 0 before the point of ``0.19``.

    >>> _digits("0.19"), _digits("1.19"), _digits("12"), _digits("1e3")
    ('number(2,2)', 'number(3,2)', '00', '0e0')
    """
    whole, point, fraction = number.partition(".")
    if not point or not (whole + fraction).isdigit():
        return _DIGIT.sub("0", number)
    return f"number({max(len(whole.lstrip('0')) + len(fraction), 1)},{len(fraction)})"


def _same_shape(columns: Sequence[str], parts: Sequence[Node], shapes: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for place, name in enumerate(columns):
        types = {shapes.get(part.output[place], _UNKNOWN) for part in parts}
        found[name] = types.pop() if len(types) == 1 else _UNKNOWN
    return found
