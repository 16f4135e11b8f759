"""The sort of number of columns and expressions, as far as the text determines it.

Only differences that matter for sums are tracked: whether the sum depends on the order of rows. An unknown
type counts as a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from dbt_arctic.keyed.comparison import Sort, sort_of_type
from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    Node,
    Project,
    Restrict,
    Scan,
    SetOperation,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
    walk,
)
from dbt_arctic.planner.algebra.scalars import whole_type
from dbt_arctic.planner.spark.functions import function_name

_OF_ALL = frozenset({"coalesce", "greatest", "ifnull", "least", "nvl"})
_OF_FIRST = frozenset(
    {
        "abs",
        "any_value",
        "bround",
        "first",
        "first_value",
        "lag",
        "last",
        "last_value",
        "lead",
        "max",
        "max_by",
    }
    | {"min", "min_by", "negative", "nth_value", "nullif", "positive", "round"}
)
"""Functions whose value has the common type of all their arguments, or the type of the first."""

WHOLES = frozenset(
    [
        *("array_size", "ascii", "bit_count", "cardinality", "char_length", "character_length", "datediff"),
        *("day", "dayofmonth", "dayofweek", "dayofyear", "dense_rank", "grouping", "hash", "hour", "instr"),
        *("int", "len", "length", "locate", "minute", "month", "ntile", "quarter", "rank", "regexp_count"),
        *(
            "row_number",
            "second",
            "size",
            "smallint",
            "tinyint",
            "unix_date",
            "weekday",
            "weekofyear",
            "year",
        ),
    ]
)
"""Functions whose value has 32 bits or fewer."""
_BIG = frozenset({"bigint", "count", "count_if", "crc32", "grouping_id", "unix_timestamp", "xxhash64"})
_SECONDS = ("s", "sec", "second", "seconds", "secs")
_ROUNDED = frozenset({"ceil", "ceiling", "floor"})

NAMED = _OF_ALL | _OF_FIRST | WHOLES | _BIG | _ROUNDED | {"sum", "try_sum", "avg", "mean", "try_avg"}
"""Functions whose sort is known."""


def is_ordered(expression: exp.Expression, known: Mapping[str, Sort], scanned: Mapping[str, str]) -> bool:
    """Whether MIN and MAX of a value are well defined.

    They are not for floats, which have 0.0 and -0.0. For strings, they are for columns of an upstream, which
    have no collation.
    """
    if isinstance(expression, exp.Case):
        values = [branch.args["true"] for branch in expression.args["ifs"]]
        values += [expression.args["default"]] if expression.args.get("default") is not None else []
        return all(is_ordered(value, known, scanned) for value in values)
    text = isinstance(expression, exp.Column) and scanned.get(expression.name, "").lower() == "string"
    return text or sort_of(expression, known) != "float"


def sorts(node: Node, scanned: Mapping[str, str]) -> dict[str, Sort]:
    """The sort of each column of a tree. ``scanned``: the types of the columns of its scans."""
    known: dict[str, Sort] = {}
    for part in reversed(list(walk(node))):
        # ``walk`` returns an operator before its inputs, and the sorts of inputs are needed first.
        match part:
            case Scan():
                known.update({name: sort_of_type(scanned.get(name, "")) for name in part.output})
            case Project():
                values = [
                    sort_of(one.value, known) if one.value is not None and one.kind == "scalar" else "other"
                    for one in part.subqueries
                ]
                known.update({name: sort_of(value, known, values) for name, value in part.items})
            case Aggregate() | Window():
                known.update({name: sort_of(value, known) for name, value in part.items})
            case UnionAll() | SetOperation():
                for place, name in enumerate(part.columns):
                    known[name] = _widest([known.get(one.output[place], "float") for one in part.parts])
            case Generate():
                known.update(dict.fromkeys(part.columns, _of_elements(part.function, known)))
            case Values():
                known.update(conservative({}, "a column of unknown type counts as a float"))
            case Filter() | Join() | Restrict() | Limit():
                pass  # They have only the columns of their inputs.
    return known


def _of_elements(function: exp.Expression, known: Mapping[str, Sort]) -> Sort:
    """The sort of the column of ``explode(array(...))``; ``float`` (unknown) for other generators."""
    array = next(function.iter_expressions(), None)
    if function_name(function) not in ("explode", "explode_outer") or array is None:
        return "float"
    elements = list(array.iter_expressions())
    return _widest([sort_of(one, known) for one in elements]) if function_name(array) == "array" else "float"


def sort_of(
    expression: exp.Expression, known: Mapping[str, Sort], subqueries: list[Sort] | None = None
) -> Sort:
    """The sort of an expression over columns of known sort."""

    def of(part: exp.Expression) -> Sort:
        return sort_of(part, known, subqueries)

    match expression:
        case exp.Column():
            return known.get(expression.name, "float")
        case exp.Literal():
            return _literal(expression)
        case exp.Neg(this=exp.Literal()):
            # The sign is part of the literal: -2147483648 fits in 32 bits, and 2147483648 does not.
            return _literal(expression.this, negative=True)
        case exp.Null() | exp.Boolean() | exp.Predicate() | exp.Not():
            return "other"
        case exp.Paren() | exp.Neg() | exp.Filter() | exp.Window() | exp.IgnoreNulls() | exp.Distinct():
            inner = expression.this if expression.this is not None else expression.expressions[0]
            return of(inner)
        case SubqueryRef():
            return subqueries[expression.number] if subqueries else "float"
        case exp.Cast():
            return sort_of_type(expression.to.sql(dialect="spark"))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            both = (expression.this, expression.expression)
            known_sides = [of(one) for one in both if not isinstance(one.unnest(), exp.Null)]
            return _of_both(known_sides, is_difference=isinstance(expression, exp.Sub))
        case exp.IntDiv():
            return "big"
        case exp.Extract():
            # Seconds have a fraction.
            return "decimal" if expression.name.lower() in _SECONDS else "whole"
        case exp.Div():
            sides = [of(expression.this), of(expression.expression)]
            return "decimal" if "decimal" in sides and "float" not in sides else "float"
        case exp.Case():
            branches = [branch.args["true"] for branch in expression.args["ifs"]]
            default = expression.args.get("default")
            return _widest([of(branch) for branch in [*branches, *([default] if default else [])]])
        case exp.If():
            parts = [expression.args["true"], expression.args.get("false")]
            return _widest([of(part) for part in parts if part is not None])
        case _:
            return _of_function(expression, of)


def _of_function(expression: exp.Expression, of: Callable[[exp.Expression], Sort]) -> Sort:
    # sqlglot creates nodes of its own classes, such as the COALESCE of JOIN USING.
    name = function_name(expression) or (
        expression.sql_name().lower() if isinstance(expression, exp.Func) else ""
    )
    arguments = list(expression.iter_expressions())
    if name in ("date_diff", "datediff", "timestampdiff") and len(arguments) == 3:
        return "big"
    if name in WHOLES or name == "date_diff":
        return "whole"
    if name in _BIG:
        return "big"
    if name == "decimal":
        return "decimal"
    if not arguments:
        return "float"
    if name in _ROUNDED:
        # With a number of digits, the result is a decimal for any argument.
        return "decimal" if len(arguments) > 1 or of(arguments[0]) == "decimal" else "big"
    if name in ("if", "iff", "nvl2"):
        return _widest([of(part) for part in arguments[1:]])
    first = of(arguments[0])
    if name in ("sum", "try_sum"):
        return "big" if first == "whole" else "float" if first == "moment" else first
    if name in ("avg", "mean", "try_avg"):
        return "decimal" if first == "decimal" else "float"
    if name in _OF_FIRST:
        return first
    return _widest([of(part) for part in arguments]) if name in _OF_ALL else "float"


def _of_both(sides: list[Sort], *, is_difference: bool) -> Sort:
    """The sort of a sum, a difference or a product.

    An interval times a number is an interval, like the difference of two timestamps.
    """
    no_numbers = [one for one in sides if one in ("other", "moment")]
    if "float" in sides or not no_numbers:
        return _widest(sides)
    is_between = is_difference and len(no_numbers) == 2
    return "moment" if "moment" in sides and not is_between else "other"


def _literal(value: exp.Literal, *, negative: bool = False) -> Sort:
    text = str(value.this).lower()
    if value.is_string or "e" in text or (text.endswith(("d", "f")) and not text.endswith("bd")):
        # A string that is used as a number is cast to DOUBLE.
        return "float"
    if "." in text or text.endswith("bd"):
        return "decimal"
    sorts_of: dict[str, Sort] = {"INT": "whole", "BIGINT": "big"}
    return sorts_of.get(whole_type(text, negative=negative), "decimal")


def _widest(found: list[Sort]) -> Sort:
    """The common sort of several expressions. Expressions that are no numbers do not change it."""
    for one in ("float", "decimal", "big", "whole", "moment"):
        if one in found:
            return one
    return "other"
