"""The comparison family of each column: numbers, floats, or values of one other type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from sqlglot import exp

from dbt_arctic.keyed.comparison import Sort, family, sort_of_type
from dbt_arctic.planner.algebra.columns import computed
from dbt_arctic.planner.algebra.operators import Node, Project, SetOperation, SubqueryRef, UnionAll, walk
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.coercion import of_its_type
from dbt_arctic.planner.typing.numeric_types import sort_of, sorts

ComparisonFamilies: TypeAlias = dict[str, str]

_NOTHING = "NULL"
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_NUMBERS = ("whole", "big", "decimal")
_AVERAGES = ("avg", "mean", "try_avg")


def comparison_families(
    node: Node, known: Mapping[str, str], scanned: Mapping[str, str]
) -> ComparisonFamilies:
    """The comparison family of each column of a tree for which it is known.

    A column of a UNION has a family if it is the same in all parts.

    :param known: the types of columns.
    :param scanned: the types of the columns of scans.
    """
    numbers = {**sorts(node, scanned), **{name: sort_of_type(type_) for name, type_ in known.items()}}
    found: ComparisonFamilies = {}
    # ``walk`` returns an operator before its inputs.
    for part in reversed(list(walk(node))):
        if isinstance(part, UnionAll | SetOperation):
            for place, name in enumerate(part.columns):
                of_parts = [found.get(one.output[place]) for one in part.parts]
                some = [one for one in of_parts if one != _NOTHING]
                if len(set(some)) == 1 and some[0] is not None:
                    found[name] = some[0]
                elif len(some) <= 1:
                    # The family of the only part with values, whatever it is.
                    found[name] = f"of {name}" if some else _NOTHING
            continue
        items = dict(computed(part))
        for name in part.output:
            made = family(known[name]) if name in known else None
            value = items.get(name)
            if isinstance(value, SubqueryRef) and isinstance(part, Project):
                one = part.subqueries[value.number]
                value = one.value if one.kind == "scalar" else exp.false()
            if made is None and value is not None:
                made = _of_value(value, found, numbers)
            if made is None and name not in found and numbers.get(name) in _NUMBERS:
                made = "number"
            if made is not None:
                found[name] = made
    return found


def _of_value(value: exp.Expression, found: ComparisonFamilies, numbers: Mapping[str, Sort]) -> str | None:
    if isinstance(value, exp.Null):
        return _NOTHING
    if isinstance(value, exp.Boolean):
        return "boolean"
    if isinstance(value, exp.Column):
        return found.get(value.name)
    if isinstance(value, exp.Paren | exp.Neg | exp.Filter | exp.Window):
        return _of_value(value.this, found, numbers)
    if isinstance(value, exp.Cast):
        return family(value.to.sql(dialect="spark"))
    if sort_of(value, numbers) in _NUMBERS:
        return "number"
    if isinstance(value, exp.Literal):
        return "string" if value.is_string else "float"
    if branches := of_its_type(value):
        families = {_of_value(one, found, numbers) for one in branches} - {_NOTHING}
        return families.pop() if len(families) == 1 else None
    averaged = function_name(value) in (*_AVERAGES, "sum", "try_sum")
    if averaged or isinstance(value, _ARITHMETIC):
        operands = list(value.iter_expressions())[: 1 if averaged else 2]
        families = {_of_value(one, found, numbers) for one in operands}
        # An average of integers, or a quotient, is a float, as is any expression with a float in it.
        return "float" if families <= {"number", "float"} else None
    return None
