"""Spark's dialect for sqlglot, which keeps every function as it is written.

sqlglot translates functions between dialects, and not all of Spark's functions survive the round trip
(``to_char``, ``percentile_cont``). In this dialect a function is a name with arguments, which is rendered as
it was parsed. Only functions with their own syntax are parsed.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import TokenType

from dbt_arctic.errors import PackageUnfit

AGGREGATES = ("sum", "count", "min", "max", "avg")
"""Aggregate functions that keep their own class. Their text survives the round trip."""

_SUFFIX = "suffix"
"""Key in the ``meta`` of a type: it is the suffix of a number literal, not a written cast."""
_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING")


BOUND_OTHERWISE = "bound otherwise"
"""Key in the ``meta`` of parentheses that are not in the text: Spark evaluates the comparison before them
first."""
_WHOLE = "whole"
_BY_COLONS = "by colons"


def _marked(cast: exp.Expr) -> exp.Expr:
    cast.meta[_BY_COLONS] = True
    return cast


def _positive(operand: exp.Expr | None) -> exp.Expr | None:
    """Keep a unary plus, which sqlglot leaves out.

    For Spark, ``+`` casts a string to a number, and an integer literal with it has the precision of its type.
    """
    return None if operand is None else exp.Anonymous(this="positive", expressions=[operand])


class TimeFunction(exp.Expression):
    """A function of time with its value: ``this`` now and ``before`` at the last refresh, as literals.

    ``call`` is the call in the text.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "before": True, "call": True}


class Suffixed(exp.Cast):
    """A number literal with a type suffix, such as ``12L``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "suffix": True}


class SameType(exp.Expression):
    """An expression cast to the type of an auxiliary view's column, given by its aggregate's name."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "named": True}


class VerbatimSpark(Spark):
    """Spark's dialect without sqlglot's knowledge of functions."""

    # Otherwise a column named `all` would be parsed as the keyword, even if it is quoted.
    SUPPORTS_ORDER_BY_ALL = False

    class Tokenizer(Spark.Tokenizer):
        """The tokenizer, with Spark 4's doubled quotes."""

        # Since Spark 4.0, a doubled quote in a string is one quote. sqlglot reads two adjacent strings.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        """The parser, without functions that sqlglot would translate."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name.upper(): Spark.Parser.FUNCTIONS[name.upper()] for name in AGGREGATES
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

        COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.COLUMN_OPERATORS,
            TokenType.DCOLON: lambda self, this, to: _marked(
                self.build_cast(strict=self.STRICT_CAST, this=this, to=to)
            ),
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.PLUS: lambda self: _positive(self._parse_unary()),
        }

        def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
            # The operand of IS DISTINCT FROM is a whole comparison, as in Spark.
            found: exp.Expr | None = super()._parse_is_rhs(distinct)
            if found is not None and distinct:
                found.meta[_WHOLE] = True
            return found

        def _build_predicate(
            self, klass: type[exp.Binary], this: Any, expression: Any, *args: Any, **named: Any
        ) -> exp.Expr:
            made: exp.Expr = super()._build_predicate(klass, this, expression, *args, **named)
            bound = made.args.get("expression")
            if bound is not expression and isinstance(bound, exp.Paren) and _WHOLE not in expression.meta:
                bound.meta[BOUND_OTHERWISE] = True
            return made

        def _parse_dcolon(self) -> exp.Expr | None:
            # `12L` is parsed as `12::BIGINT`, which has another precision in arithmetic with decimals.
            suffix = self._curr.text.upper()
            found: exp.Expr | None = super()._parse_dcolon()
            if found is not None and suffix in self.dialect.tokenizer_class.NUMERIC_LITERALS:
                found.meta[_SUFFIX] = suffix
            return found

    class Generator(Spark.Generator):  # type: ignore[misc,valid-type]
        """The generator for the added expressions, and for Spark's TIME."""

        # Spark has a type TIME since 4.1. sqlglot would render it as TIMESTAMP, which is another type.
        TYPE_MAPPING: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TYPE_MAPPING,
            exp.DataType.Type.TIME: "TIME",
        }
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TRANSFORMS,
            TimeFunction: lambda self, call: call.this,
            SameType: lambda self, one: f"CAST({self.sql(one, 'this')} AS {one.args['named']})",
            Suffixed: lambda self, number: f"{self.sql(number, 'this')}{number.args['suffix']}",
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            """Render TIME with its precision."""
            if expression.this == exp.DataType.Type.TIME and expression.expressions:
                return f"TIME({self.expressions(expression, flat=True)})"
            return str(super().datatype_sql(expression))

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            """Render a TIME literal as a literal."""
            # Spark accepts the literal even if the type is disabled.
            if expression.to.this == exp.DataType.Type.TIME and expression.this.is_string:
                return f"TIME {self.sql(expression, 'this')}"
            return str(super().cast_sql(expression, safe_prefix))


@cache
def verbatim() -> VerbatimSpark:
    """The dialect to parse and render texts with.

    :raises PackageUnfit: sqlglot is installed in compiled form (``sqlglotc``), whose classes cannot be
        extended.
    """
    dialect = VerbatimSpark()
    try:
        dialect.parser()
        dialect.generator()
    except TypeError as error:
        raise PackageUnfit(
            "sqlglot is installed in its compiled form, which does not allow another dialect",
            where="the Python package sqlglotc, which sqlglot[c] installs",
            why=str(error),
            fix="pip uninstall sqlglotc; sqlglot itself stays, and runs as plain Python",
        ) from error
    return dialect


def with_suffixes(tree: exp.Query) -> None:
    """Replace casts that stand for ``12L``. In arithmetic with decimals, the two have different precision."""
    for cast in list(tree.find_all(exp.Cast)):
        suffix = cast.to.meta.get(_SUFFIX)
        if suffix is not None:
            cast.replace(Suffixed(this=cast.this, to=cast.to, suffix=suffix))


def with_signs(tree: exp.Query) -> None:
    """Move signs into casts: ``-1::STRING`` casts -1 in Spark, but sqlglot casts 1 first.

    The sign of ``INTERVAL +1 DAY`` is moved as well.
    """
    for interval in tree.find_all(exp.Interval):
        amount = interval.this.unnest() if interval.this is not None else None
        if isinstance(amount, exp.Anonymous) and amount.name == "positive":
            interval.set("this", exp.Literal.string(amount.expressions[0].name))
    for negative in list(tree.find_all(exp.Neg)):
        innermost, operand = None, negative.this
        while isinstance(operand, exp.Cast) and _BY_COLONS in operand.meta:
            innermost, operand = operand, operand.this
        is_number = isinstance(operand, Suffixed) or (
            isinstance(operand, exp.Literal) and not operand.is_string
        )
        if innermost is not None and is_number:
            innermost.set("this", exp.Neg(this=operand.copy()))
            negative.replace(negative.this)


def expression(text: str) -> exp.Expression:
    """Parse an expression of ours.

    Its columns are real columns, as each reader of a relation has its own scan.
    """
    found = sqlglot.parse_one(text, dialect=verbatim())
    assert isinstance(found, exp.Expression)
    return found


def to_sql(value: exp.Expression) -> str:
    """Render an expression for Spark."""
    if isinstance(value, exp.Column):
        # Most expressions are columns, and sqlglot's generator is slow for a single name.
        parts = value.parts
        if all(isinstance(part, exp.Identifier) and part.args.get("quoted") for part in parts):
            return ".".join(f"`{part.name.replace('`', '``')}`" for part in parts)
    return value.sql(dialect=verbatim())
