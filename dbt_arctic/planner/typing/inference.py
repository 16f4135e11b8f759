"""Type inference: the type that Spark gives a column of a tree, or an expression over its columns.

This is the only module that derives the type of an expression from its operator or function
(``tests/unit/planner/test_inference.py``). What follows from a type is in ``inferred_type``, and what Spark
casts to compare two of them in ``coercion``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from dbt_arctic.keyed.type_categories import TypeCategory
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
    walk,
)
from dbt_arctic.planner.algebra.scalars import whole_type
from dbt_arctic.planner.spark import function_types
from dbt_arctic.planner.spark.dialect import TimeFunction, verbatim
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inferred_type import (
    BIGINT,
    BOOLEAN,
    DATE,
    INT,
    INTEGERS,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    Array,
    DataType,
    Inferred,
    Kind,
    Map,
    category_of,
    common_of,
    element_of,
    exact,
    family_of,
    field_of,
    is_decimal,
    is_number,
    loosened,
    of_parts,
    read_type,
    type_text,
    widest,
)

_TRUTHS = (exp.Boolean, exp.Predicate, exp.Connector, exp.Not)
_TRANSPARENT = (exp.Paren, exp.Filter, exp.Window, exp.IgnoreNulls, exp.RespectNulls)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod)
_SECONDS = ("s", "sec", "second", "seconds", "secs")


def type_of(value: exp.Expr) -> Inferred | None:
    """What is known of the type of an expression, whatever the types of its columns are."""
    return _Expressions({}).of(value)


class Types:
    """The types of the columns of a tree, and of expressions over them.

    :param node: the tree.
    :param scanned: the types of the columns of its scans, as the catalog writes them.
    """

    def __init__(self, node: Node, scanned: Mapping[str, str]) -> None:
        self._scanned = scanned
        self._columns: dict[str, Inferred] = {}
        # ``walk`` returns an operator before its inputs, and the types of inputs are needed first.
        for part in reversed(list(walk(node))):
            self._columns.update((name, type_) for name, type_ in self._made(part) if type_ is not None)

    def column(self, name: str) -> Inferred | None:
        """What is known of the type of a column."""
        return self._columns.get(name)

    def of(self, value: exp.Expr) -> Inferred | None:
        """What is known of the type of an expression; ``None`` for nothing, as for any subquery in it."""
        return _Expressions(self._columns).of(value)

    def category(self, value: exp.Expr) -> TypeCategory:
        """The sort of number of an expression; ``float`` if it is unknown."""
        return category_of(self.of(value))

    def exact(self) -> dict[str, DataType]:
        """The columns whose type is known exactly."""
        found = ((name, exact(type_)) for name, type_ in self._columns.items())
        return {name: type_ for name, type_ in found if type_ is not None}

    def texts(self) -> dict[str, str]:
        """The types that are known exactly, as Spark writes them."""
        return {name: type_text(type_) for name, type_ in self.exact().items()}

    def families(self) -> dict[str, str]:
        """The comparison family of each column for which it is known.

        A column of a UNION has a family if it is the same in all parts.
        """
        found = ((name, family_of(type_)) for name, type_ in self._columns.items())
        return {name: family for name, family in found if family is not None}

    def is_ordered(self, value: exp.Expression) -> bool:
        """Whether MIN and MAX of a value are well defined.

        They are not for floats, which have 0.0 and -0.0. For strings, they are for columns of an upstream,
        which have no collation.
        """
        if isinstance(value, exp.Case):
            return all(self.is_ordered(one) for one in branches_of(value))
        text = isinstance(value, exp.Column) and read_type(self._scanned.get(value.name, "")) == STRING
        return text or self.category(value) != "float"

    def _made(self, part: Node) -> Iterator[tuple[str, Inferred | None]]:
        """The types of the columns that one operator adds to those of its inputs."""
        match part:
            case Scan():
                yield from ((name, read_type(self._scanned.get(name, ""))) for name in part.output)
            case Project():
                values = [
                    self.of(one.value) if one.kind == "scalar" and one.value is not None else BOOLEAN
                    for one in part.subqueries
                ]
                typed = _Expressions(self._columns, values)
                yield from ((name, typed.of(value)) for name, value in part.items)
            case Window() | Aggregate():
                yield from ((name, self.of(value)) for name, value in part.items)
            case Generate():
                yield from _Expressions(self._columns).of_generated(part)
            case UnionAll() | SetOperation():
                for place, name in enumerate(part.columns):
                    yield name, of_parts(name, [self.column(one.output[place]) for one in part.parts])
            case Values():
                yield from conservative((), "the type of a column of constants follows from all its values")
            case Filter() | Join() | KeySemiJoin() | Limit():
                pass  # They have only the columns of their inputs.


class _Expressions:
    """Types of expressions.

    :param columns: the types of columns.
    :param subqueries: the types of the values of the operator's subqueries, by their number.
    """

    def __init__(self, columns: Mapping[str, Inferred], subqueries: Sequence[Inferred | None] = ()) -> None:
        self._columns, self._subqueries = columns, subqueries

    def of(self, value: exp.Expr) -> Inferred | None:
        match value:
            case exp.Column():
                return self._columns.get(value.name)
            case exp.Null():
                return VOID
            case exp.Literal():
                return _literal(value)
            case SubqueryRef():
                return self._subqueries[value.number] if self._subqueries else None
            case TimeFunction():
                return DATE if value.args["call"].removesuffix("()") in function_types.OF_DATES else TIMESTAMP
            case exp.Neg(this=exp.Literal()) if not value.this.is_string:
                # The sign is part of the literal: -2147483648 fits in 32 bits, and 2147483648 does not.
                return _literal(value.this, negative=True)
            case exp.Neg():
                return _number(self.of(value.this))
            case exp.Cast():
                return read_type(value.to.sql(dialect=verbatim()))
            case exp.Case() | exp.If():
                return loosened(common_of([self.of(one) for one in branches_of(value)]))
            case exp.Distinct():
                return self.of(value.expressions[0]) if len(value.expressions) == 1 else None
            case exp.Dot() | exp.Bracket():
                return self._component(value)
            case _ if isinstance(value, _TRANSPARENT):
                return self.of(value.this)
            case _:
                return BOOLEAN if isinstance(value, _TRUTHS) else self._operation(value)

    def _operation(self, value: exp.Expr) -> Inferred | None:
        match value:
            case exp.IntDiv():
                return BIGINT
            case exp.Div():
                return _quotient(self.of(value.this), self.of(value.expression))
            case exp.Extract():
                # Seconds have a fraction. The hour of an interval is a TINYINT.
                return Kind.DECIMAL if value.name.lower() in _SECONDS else Kind.WHOLE
            case exp.DPipe():
                sides = [self.of(value.this), self.of(value.expression)]
                return _string(value) if STRING in sides else None
            case _ if isinstance(value, _ARITHMETIC):
                sides = [self.of(value.this), self.of(value.expression)]
                return _moved_date(value, sides) if DATE in sides else _sum_of(value, sides)
            case _:
                # sqlglot has classes of its own for some calls, such as the COALESCE of JOIN USING.
                own = value.sql_name().lower() if isinstance(value, exp.Func) else ""
                return self._function(value, function_name(value) or own)

    def _function(self, value: exp.Expr, name: str) -> Inferred | None:
        """The type of a call, if the name of the function determines it, with those of its arguments."""
        arguments = list(value.iter_expressions())
        if name in ("date_diff", "datediff", "timestampdiff") and len(arguments) == 3:
            return BIGINT
        if name == "date_add" and len(arguments) == 3:
            return None  # of a date or a timestamp
        for result, functions in _BY_NAME:
            if name in functions:
                return _string(value) if result == STRING else result
        if name == "split":
            return None if _string(value) is None else Array(STRING)
        if name not in _BY_ARGUMENTS or not arguments:
            return None
        first, *others = (self.of(one) for one in arguments)
        if name in function_types.OF_STRINGS_OR_BYTES:
            return _string(value) if first == STRING else None
        if name in function_types.OF_STRINGS_OR_LISTS:
            return _string(value) if STRING in (first, *others) else None
        if name == "array":
            element = exact(common_of([first, *others]))
            return None if element is None else Array(element)
        return element_of(first) if name in function_types.OF_ELEMENTS else _of_operands(name, first, others)

    def _component(self, value: exp.Dot | exp.Bracket) -> DataType | None:
        """The type of a field of a struct, or of an element of an array or a map."""
        inside = self.of(value.this)
        if isinstance(value, exp.Dot):
            return field_of(inside, value.name)
        index, *_ = value.expressions
        if isinstance(index, exp.Literal) and index.is_string and not isinstance(inside, Map):
            # The field with this name, of a struct or of each struct in an array.
            return field_of(inside, index.name)
        return element_of(inside)

    def of_generated(self, part: Generate) -> Iterator[tuple[str, Inferred | None]]:
        """The types of the columns of ``explode`` and ``json_tuple``; nothing for other generators."""
        name, argument = function_name(part.function), next(part.function.iter_expressions(), None)
        if name == "json_tuple":
            yield from ((column, STRING) for column in part.columns)
        if name not in ("explode", "explode_outer") or argument is None or len(part.columns) != 1:
            return
        if function_name(argument) == "array":
            yield part.columns[0], common_of([self.of(one) for one in argument.iter_expressions()])
        elif isinstance(array := self.of(argument), Array):
            yield part.columns[0], array.element


_BY_NAME: tuple[tuple[DataType | Kind, frozenset[str]], ...] = (
    (DATE, function_types.OF_DATES),
    (TINYINT, function_types.OF_TINY),
    (SMALLINT, frozenset({"smallint"})),
    (INT, function_types.OF_INTEGERS),
    (BIGINT, function_types.OF_LONGS),
    (Kind.DECIMAL, frozenset({"decimal"})),
    (BOOLEAN, function_types.OF_TRUTH),
    (TIMESTAMP, function_types.OF_TIMES),
    (STRING, function_types.OF_STRINGS),
)


_BY_ARGUMENTS = (
    function_types.NUMERIC
    | function_types.OF_SECOND
    | function_types.OF_ELEMENTS
    | function_types.OF_STRINGS_OR_BYTES
    | function_types.OF_STRINGS_OR_LISTS
) | {"array"}
"""Functions whose type follows from those of their arguments."""


def _of_operands(name: str, first: Inferred | None, others: list[Inferred | None]) -> Inferred | None:
    """The type of a call that chooses one of its arguments, or computes a number of them."""
    if name in function_types.OF_ALL:
        return loosened(common_of([first, *others]))
    if name in function_types.OF_SECOND:
        return loosened(common_of(others))
    if name in function_types.OF_FIRST:
        return loosened(first)
    if name in function_types.SUMS:
        return _total(loosened(first))
    if is_decimal(first) or (others and name in function_types.ROUNDED):
        # ROUND of a decimal has other digits, and CEIL with a number of digits is always a decimal.
        return loosened(first) if name in ("abs", "negative", "positive") else Kind.DECIMAL
    if name in function_types.OF_NUMBER:
        return _number(first)
    is_other = (is_number(first) or first == STRING) and first is not Kind.LONG
    if name in function_types.ROUNDED:
        return BIGINT if is_other else Kind.LONG
    return Kind.FLOATING if is_other else None


def branches_of(value: exp.Case | exp.If) -> list[exp.Expression]:
    """The values of which CASE or IF returns one."""
    branches = value.args["ifs"] if isinstance(value, exp.Case) else [value]
    last = value.args.get("default" if isinstance(value, exp.Case) else "false")
    return [*(one.args["true"] for one in branches), *([] if last is None else [last])]


def _literal(value: exp.Literal, *, negative: bool = False) -> Inferred:
    text = str(value.this).lower()
    if value.is_string:
        return STRING
    if "e" in text or (text.endswith(("d", "f")) and not text.endswith("bd")):
        return Kind.FLOATING
    if "." in text or text.endswith("bd"):
        return Kind.DECIMAL
    found = read_type(whole_type(text, negative=negative))
    return found if found is not None and found in INTEGERS else Kind.DECIMAL


def _number(type_: Inferred | None) -> Inferred | None:
    """The type of a number with another sign: that of a string is cast to a DOUBLE."""
    return Kind.FLOATING if type_ == STRING else loosened(type_)


def _string(value: exp.Expr) -> DataType | None:
    # With an explicit collation in the expression, the meaning of equality is unknown.
    return None if value.find(exp.Collate) is not None else STRING


def _moved_date(value: exp.Expr, sides: Sequence[Inferred | None]) -> Inferred | None:
    """A date plus a number of days is a date. The difference of two dates is an interval."""
    (other,) = [one for one in sides if one != DATE] or [DATE]
    if category_of(other) == "int" and isinstance(value, exp.Add | exp.Sub):
        return DATE
    return _sum_of(value, sides)


def _sum_of(value: exp.Expr, sides: Sequence[Inferred | None]) -> Inferred | None:
    """The type of a sum, a difference, a product or a remainder.

    An interval times a number is an interval, like the difference of two timestamps.
    """
    known = [one for one in sides if one != VOID]
    no_numbers = [category_of(one) for one in known if category_of(one) in ("other", "timestamp")]
    if any(category_of(one) == "float" for one in known) or not no_numbers:
        return widest(known)
    is_between = isinstance(value, exp.Sub) and len(no_numbers) == 2
    return Kind.MOMENT if "timestamp" in no_numbers and not is_between else Kind.NO_NUMBER


def _quotient(left: Inferred | None, right: Inferred | None) -> Inferred | None:
    sides = [one for one in (left, right) if one != VOID]
    if not all(map(is_number, sides)):
        return None
    categories = {category_of(one) for one in sides}
    return Kind.DECIMAL if "decimal" in categories and "float" not in categories else Kind.FLOATING


def _total(type_: Inferred | None) -> Inferred | None:
    """The type of a sum of values of a type."""
    match category_of(type_):
        case "int":
            return BIGINT
        case "bigint":
            return BIGINT if type_ == BIGINT else Kind.LONG
        case "decimal":
            return Kind.DECIMAL
        case "other" if type_ != VOID:
            return Kind.NO_NUMBER
        case _:
            return Kind.FLOATING if is_number(type_) or type_ in (STRING, VOID) else None


__all__ = ["Types", "branches_of", "type_of"]
