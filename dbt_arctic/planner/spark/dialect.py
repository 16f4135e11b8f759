"""Spark's dialect for sqlglot, with every function left as it was written.

sqlglot maps functions of one dialect to those of another, and not every one of Spark's survives the
way back (``to_char``, ``percentile_cont``). Here a function is a name and its arguments, whatever it is:
what is read is written again word for word. Only functions with a syntax of their own are parsed.
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
"""Aggregate functions that keep a class of their own; their text survives."""

_SUFFIX = "suffix"
"""In the ``meta`` of a type: it is the suffix of a number, and not written out."""
_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING")


BOUND_OTHERWISE = "bound otherwise"
"""In the ``meta`` of parentheses that are not written: Spark compares what is in front of them first."""
_WHOLE = "whole"
_BY_COLONS = "by colons"


def _marked(cast: exp.Expr) -> exp.Expr:
    cast.meta[_BY_COLONS] = True
    return cast


def _positive(operand: exp.Expr | None) -> exp.Expr | None:
    """A text with ``+`` in front is a number, to Spark, and a number with it none of its own digits; sqlglot
    leaves the sign out.
    """
    return None if operand is None else exp.Anonymous(this="positive", expressions=[operand])


class Moment(exp.Expression):
    """A function of time with its value: ``this`` now and ``before`` at the last refresh, as literals.

    ``call`` is the function as it is called.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "before": True, "call": True}


class Suffixed(exp.Cast):
    """A number with its type, as ``12L``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "to": True, "suffix": True}


class SameType(exp.Expression):
    """An expression cast to the type of a state's column, by the name of the aggregate that this has."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "named": True}


class VerbatimSpark(Spark):
    """Spark's dialect without knowledge of its functions."""

    # Else a column that is called `all` is taken for the word, in quotes, too.
    SUPPORTS_ORDER_BY_ALL = False

    class Tokenizer(Spark.Tokenizer):
        # A quote written twice is one, since Spark 4.0; sqlglot takes it for two strings side by side.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
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
            # What is to be distinct is compared whole, as in Spark.
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
            # `12L` is read as `12::BIGINT`, which beside a decimal has other digits.
            suffix = self._curr.text.upper()
            found: exp.Expr | None = super()._parse_dcolon()
            if found is not None and suffix in self.dialect.tokenizer_class.NUMERIC_LITERALS:
                found.meta[_SUFFIX] = suffix
            return found

    class Generator(Spark.Generator):  # type: ignore[misc,valid-type]
        # Spark has a type TIME since 4.1; sqlglot makes a TIMESTAMP of it, which is something else.
        TYPE_MAPPING: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TYPE_MAPPING,
            exp.DataType.Type.TIME: "TIME",
        }
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TRANSFORMS,
            Moment: lambda self, moment: moment.this,
            SameType: lambda self, one: f"CAST({self.sql(one, 'this')} AS {one.args['named']})",
            Suffixed: lambda self, number: f"{self.sql(number, 'this')}{number.args['suffix']}",
        }

        def datatype_sql(self, expression: exp.DataType) -> str:
            if expression.this == exp.DataType.Type.TIME and expression.expressions:
                return f"TIME({self.expressions(expression, flat=True)})"
            return str(super().datatype_sql(expression))

        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
            # Spark takes the literal even where the type is switched off.
            if expression.to.this == exp.DataType.Type.TIME and expression.this.is_string:
                return f"TIME {self.sql(expression, 'this')}"
            return str(super().cast_sql(expression, safe_prefix))


@cache
def verbatim() -> VerbatimSpark:
    """The dialect, in which texts can be read.

    :raises PackageUnfit: sqlglot is there as compiled by ``sqlglotc``, whose classes let nobody extend them.
    """
    dialect = VerbatimSpark()
    try:
        dialect.parser()
        dialect.generator()
    except TypeError as error:
        raise PackageUnfit(
            "sqlglot is there in its compiled form, to which no dialect can be added",
            where="the Python package sqlglotc, which sqlglot[c] installs",
            why=str(error),
            fix="pip uninstall sqlglotc; sqlglot itself stays, and is read as Python",
        ) from error
    return dialect


def with_suffixes(tree: exp.Query) -> None:
    """``12L`` is read as a cast of 12, which it is not beside a decimal, or beside such a cast."""
    for cast in list(tree.find_all(exp.Cast)):
        suffix = cast.to.meta.get(_SUFFIX)
        if suffix is not None:
            cast.replace(Suffixed(this=cast.this, to=cast.to, suffix=suffix))


def with_signs(tree: exp.Query) -> None:
    """``-1::STRING`` is a cast of -1: the sign belongs to the number. sqlglot casts first. The sign of
    ``INTERVAL +1 DAY`` does, too.
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
    """An expression of ours by its text. Its columns are columns: each reader of a relation has its own."""
    found = sqlglot.parse_one(text, dialect=verbatim())
    assert isinstance(found, exp.Expression)
    return found


def to_sql(value: exp.Expression) -> str:
    """An expression as Spark reads it."""
    if isinstance(value, exp.Column):
        # Most of what is written is a column, and the generator costs a lot for a name.
        parts = value.parts
        if all(isinstance(part, exp.Identifier) and part.args.get("quoted") for part in parts):
            return ".".join(f"`{part.name.replace('`', '``')}`" for part in parts)
    return value.sql(dialect=verbatim())
