"""Type inference, and coercion in comparisons: implicit casts make different values equal.

Spark casts to compare a string with a number, or a date with a timestamp. Then several values of one side may
equal one value of the other: `'1'` and `'01'` are both equal to 1. So neither column can replace the other,
neither in a lookup nor as a unique key. An equality with such a cast is put in parentheses, so that no rule
takes it for an equality of two plain columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from dbt_arctic.keyed.comparison import Sort, compare_exactly, family
from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.columns import all_expressions, line_of_column
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
    Subquery,
    UnionAll,
    Values,
    Window,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.scalars import SAME_TYPE, plain
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.spark.function_types import (
    BY_TYPE,
    KEEP_TYPE,
    OF_DATES,
    OF_ELEMENTS,
    OF_OTHER_ROWS,
    OF_STRINGS,
    OF_STRINGS_OR_BYTES,
    OF_STRINGS_OR_LISTS,
    OF_TIMES,
    OF_TRUTH,
    OF_UNCERTAIN_TYPE,
)
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.nested_types import is_array, is_map, of_element, of_field, type_text
from dbt_arctic.planner.typing.numeric_types import NAMED, WHOLES, sort_of, sorts

_WHOLE = frozenset(["tinyint", "smallint", "int"])
_MOVED = (exp.Add, exp.Sub)
_TRUTHS = (exp.Boolean, exp.Predicate, exp.Connector, exp.Not)
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)


def with_exact_equalities(node: Node, types: Mapping[str, str], *, wraps: bool = False) -> Node:
    """Mark the equalities that compare columns of the same type, and protect those with a cast.

    :param types: the types of the columns of scans.
    :param wraps: whether integers wrap around on overflow, as without ANSI mode.
    """
    known = types_of_columns(node, types)
    if not wraps and is_independent_of_widths(node, types):
        known = {name: "bigint" if type_ in _WHOLE else type_ for name, type_ in known.items()}

    def of_condition(condition: exp.Expression) -> exp.Expression:
        if not isinstance(condition, exp.EQ):
            return condition
        if _compare_exactly(condition.this, condition.expression, known):
            return _marked(condition) if _are_same(condition.this, condition.expression, known) else condition
        left, right = condition.this.copy(), condition.expression.copy()
        return exp.EQ(this=exp.Paren(this=left), expression=exp.Paren(this=right))

    def of_subquery(one: Subquery) -> Subquery:
        if one.operand is not None and one.value is not None:
            operand, value = one.operand, one.value
            if not _compare_exactly(operand, value, known):
                one = replace(one, operand=exp.Paren(this=operand.copy()))
            elif _are_same(operand, value, known):
                one = replace(one, operand=_marked(operand))
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


def depends_on_types(node: Node) -> bool:
    """Whether a function of the query returns another value for the same number in another type."""
    return any(
        function_name(part) in BY_TYPE or isinstance(part, _SHIFTS) or _is_of_bytes(part)
        for part in _parts(node)
    )


def _is_of_bytes(part: exp.Expr) -> bool:
    return isinstance(part, exp.Cast) and part.to.this in (
        exp.DataType.Type.BINARY,
        exp.DataType.Type.VARBINARY,
    )


_NO_DECIMAL = frozenset(
    [
        *NAMED,
        *OF_STRINGS_OR_LISTS,
        *("array_contains", "cbrt", "cos", "cume_dist", "div", "double", "exp", "float", "if", "iff"),
        *("json_array_length", "levenshtein", "like", "ln", "log", "log10", "log2", "mod", "months_between"),
        *("nvl2", "percent_rank", "pmod", "pow", "power", "rlike", "sin", "split", "sqrt", "string"),
    ]
)
"""Functions that only return a decimal if they are given one, in addition to those of known type."""
_LONGEST = 2**63


def may_be_decimal(part: exp.Expr) -> bool:
    """Whether an expression may be a decimal although it contains none.

    In arithmetic with a decimal, a BIGINT has another precision than an INT.
    """
    if isinstance(part, exp.Literal):
        return not part.is_string and (not part.name.isdigit() or int(part.name) >= _LONGEST)
    if isinstance(part, exp.Cast):
        return bool(part.to.this == exp.DataType.Type.DECIMAL)
    name = function_name(part)
    if name in ("ceil", "ceiling", "floor"):
        return len(list(part.iter_expressions())) > 1
    known = (_NO_DECIMAL, OF_STRINGS, OF_STRINGS_OR_BYTES, OF_TRUTH, OF_DATES, OF_TIMES)
    return isinstance(part, exp.Extract) or (name is not None and not any(name in names for names in known))


def is_independent_of_widths(node: Node, types: Mapping[str, str]) -> bool:
    """Whether the result does not depend on the width of integers, INT or BIGINT. With decimals it does.

    :param types: the types of the columns of scans.
    """
    return not (
        depends_on_types(node)
        or any("decimal" in type_ for type_ in types.values())
        or any(map(may_be_decimal, _parts(node)))
    )


def of_its_type(value: exp.Expression) -> list[exp.Expression]:
    """The operands whose common type is the type of an expression, if it has such operands."""
    if isinstance(value, exp.Case | exp.If):
        ifs = value.args["ifs"] if isinstance(value, exp.Case) else [value]
        found = [one.args["true"] for one in ifs]
        last = value.args.get("default" if isinstance(value, exp.Case) else "false")
        found += [] if last is None else [last]
        return [one for one in found if not isinstance(one, exp.Null)]
    if function_name(value) == "nullif":
        return list(value.iter_expressions())[:1]
    if function_name(value) in OF_OTHER_ROWS:
        # The value and the default of LAG and LEAD, without the offset.
        return list(value.iter_expressions())[::2]
    if function_name(value) in KEEP_TYPE:
        arguments = list(value.iter_expressions())
        return [one for one in arguments if not isinstance(one, exp.Null)]
    return []


def _parts(node: Node) -> Iterator[exp.Expr]:
    return (found for part in walk(node) for one in all_expressions(part) for found in one.walk())


def _compare_exactly(left: exp.Expression, right: exp.Expression, known: Mapping[str, str]) -> bool:
    """Whether two plain columns have types that are compared without a lossy cast.

    Other expressions are not restricted.
    """
    one, other = plain(left), plain(right)
    if one is None or other is None:
        return True
    mine, theirs = known.get(one), known.get(other)
    return mine is not None and theirs is not None and compare_exactly(mine, theirs)


def _are_same(left: exp.Expression, right: exp.Expression, known: Mapping[str, str]) -> bool:
    """Whether equal values of two plain columns are identical in all expressions. 0.0 and -0.0 are not."""
    one, other = plain(left), plain(right)
    if one is None or other is None:
        return False
    mine, theirs = known.get(one), known.get(other)
    return mine is not None and mine == theirs and family(mine) != "float"


def _marked(expression: exp.Expression) -> exp.Expression:
    made = expression.copy()
    made.meta[SAME_TYPE] = True
    return made


def types_of_columns(node: Node, scanned: Mapping[str, str], *, certain: bool = False) -> dict[str, str]:
    """The type of each column of a tree, as far as the text determines it.

    :param certain: whether to leave out functions that are only known to return some integer type.

    :raises CannotPlan: a column of a set operation has incompatible types in its parts.
    """
    types = _Types(sorts(node, scanned), certain)
    # ``walk`` returns an operator before its inputs.
    for part in reversed(list(walk(node))):
        types.known.update(types.of_columns(part, scanned))
    return types.known


class TypesOfValues:
    """Types of expressions over the columns of a tree.

    :param scanned: of the columns of scans.
    """

    def __init__(self, node: Node, scanned: Mapping[str, str]) -> None:
        self._numbers = sorts(node, scanned)
        self._types = _Types(self._numbers, certain=False, known=types_of_columns(node, scanned))

    def is_identical(self, value: exp.Expression) -> bool:
        """Whether values that compare equal are the same value.

        Zeros of a float are not, nor strings that a collation takes for one.
        """
        if sort_of(value, self._numbers) != "float":
            return True
        type_ = self._types.of_value(value)
        return type_ is not None and (type_ == "binary" or family(type_) == "string")


@dataclass
class _Types:
    """Infers the types of expressions over columns of known types; ``None`` stands for an unknown type.

    :param numbers: the sort of number of each column.
    :param certain: see :func:`types_of_columns`.
    """

    numbers: Mapping[str, Sort]
    certain: bool
    known: dict[str, str] = field(default_factory=dict)

    def of_columns(self, part: Node, scanned: Mapping[str, str]) -> dict[str, str]:
        """The types of the columns that one operator adds to those of its inputs."""
        match part:
            case Scan():
                return {name: type_text(scanned[name]) for name in part.output if name in scanned}
            case Project() | Window() | Aggregate():
                made = ((name, self.of_value(value)) for name, value in part.items)
                return {name: type_ for name, type_ in made if type_ is not None}
            case Generate():
                element = self._of_generator(part.function)
                return {} if element is None else dict.fromkeys(part.columns, element)
            case UnionAll() | SetOperation():
                return _of_parts(part.columns, part.parts, self.known)
            case Values():
                return conservative({}, "the type of a column of constants follows from all of its values")
            case Filter() | Join() | Restrict() | Limit():
                return {}  # They have only the columns of their inputs.

    def of_value(self, value: exp.Expression) -> str | None:
        """The type of an expression; ``None`` if it is unknown."""
        column_name = plain(value)
        if column_name is not None:
            return self.known.get(column_name)
        if isinstance(value, exp.Paren | exp.Neg | exp.Filter | exp.Window):
            return self.of_value(value.this)
        name = (
            value.args["call"].removesuffix("()") if isinstance(value, TimeFunction) else function_name(value)
        )
        if name in OF_UNCERTAIN_TYPE or (name == "date_add" and len(list(value.iter_expressions())) > 2):
            return None
        if name in OF_DATES:
            return "date"
        if isinstance(value, exp.Dot | exp.Bracket) or name in OF_ELEMENTS:
            return self._of_component(value)
        if name == "split" and value.find(exp.Collate) is None:
            return "array<string>"
        types = self._of_all(of_its_type(value))
        if len(types) == 1 and None not in types:
            return types.pop()
        if isinstance(value, exp.Cast):
            return type_text(value.to.sql(dialect="spark"))
        sides = self._of_all(value.iter_expressions()) if isinstance(value, _MOVED) else set()
        if "date" in sides:
            # A date plus a number of days is a date. The difference of two dates is an interval.
            return "date" if "int" in sides else None
        return self._of_operation(value)

    def _of_all(self, values: Iterable[exp.Expression]) -> set[str | None]:
        return {self.of_value(one) for one in values}

    def _of_component(self, value: exp.Expression) -> str | None:
        """The type of a field of a struct, or of an element of an array or a map."""
        if isinstance(value, exp.Dot):
            return of_field(self.of_value(value.this), value.name)
        if not isinstance(value, exp.Bracket):
            return of_element(self.of_value(next(value.iter_expressions())))
        inside, (index, *_) = self.of_value(value.this), value.expressions
        if isinstance(index, exp.Literal) and index.is_string and not is_map(inside):
            # The field with this name, of a struct or of each struct in an array.
            return of_field(inside, index.name)
        return of_element(inside)

    def _of_operation(self, value: exp.Expression) -> str | None:
        """The type of a boolean, timestamp, string or integer expression, by its operator or function."""
        if isinstance(value, _TRUTHS) or function_name(value) in OF_TRUTH:
            return "boolean"
        if isinstance(value, TimeFunction) or function_name(value) in OF_TIMES:
            return "timestamp"
        if self._is_string(value):
            # With an explicit collation in the expression, the meaning of equality is unknown.
            return None if value.find(exp.Collate) is not None else "string"
        if self.certain and not isinstance(value, exp.Literal):
            return None
        type_ = {"whole": "int", "big": "bigint"}.get(sort_of(value, self.numbers))
        if type_ == "int" and not isinstance(value, exp.Literal) and function_name(value) not in WHOLES:
            # The sum of two SMALLINTs is a SMALLINT, and the hour of an interval is a TINYINT.
            return type_ if self._of_all(value.iter_expressions()) == {"int"} else None
        return type_

    def _is_string(self, value: exp.Expression) -> bool:
        name = function_name(value)
        if name in OF_STRINGS:
            return True
        if name in OF_STRINGS_OR_BYTES:
            return self.of_value(next(iter(value.iter_expressions()))) == "string"
        if name in OF_STRINGS_OR_LISTS or isinstance(value, exp.DPipe):
            return "string" in self._of_all(value.iter_expressions())
        return isinstance(value, exp.Literal) and bool(value.is_string)

    def _of_generator(self, function: exp.Expression) -> str | None:
        """The type of the column of ``explode`` and ``json_tuple``; ``None`` for other generators."""
        array = next(function.iter_expressions(), None)
        if function_name(function) == "json_tuple":
            return "string"
        if array is None or function_name(function) not in ("explode", "explode_outer"):
            return None
        if function_name(array) == "array":
            types = self._of_all(array.iter_expressions())
            return types.pop() if len(types) == 1 else None
        type_ = self.of_value(array)
        return of_element(type_) if is_array(type_) else None


def _of_parts(columns: Sequence[str], parts: Sequence[Node], known: Mapping[str, str]) -> dict[str, str]:
    made = {}
    for place, name in enumerate(columns):
        typed = [part for part in parts if part.output[place] in known]
        types = [known[part.output[place]] for part in typed]
        for part, other in zip(typed[1:], types[1:], strict=True):
            if not compare_exactly(types[0], other):
                raise CannotPlan(
                    "unsupported",
                    f"parts of a UNION, INTERSECT or EXCEPT have {types[0]} and {other} in one column",
                    "cast the columns to one type",
                    line_of_column(part, part.output[place]),
                )
        if len(types) == len(parts) and len(set(types)) == 1:
            made[name] = types[0]
    return made
