"""Spark SQL as sqlglot reads it, with every function left as it was written.

sqlglot maps functions of one dialect to those of another, and not every one of Spark's survives the
way back (``to_char``, ``percentile_cont``). Here a function is a name and its arguments, whatever it is:
what is read is written again word for word. Only functions with a syntax of their own are parsed.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

AGGREGATES = ("sum", "count", "min", "max", "avg")
"""Aggregate functions that keep a class of their own; their text survives."""

_OWN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "OVERLAY", "SUBSTRING")


class VerbatimSpark(Spark):
    """Spark's dialect without knowledge of its functions."""

    class Parser(Spark.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name.upper(): Spark.Parser.FUNCTIONS[name.upper()] for name in AGGREGATES
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}


def to_sql(expression: exp.Expression) -> str:
    """An expression as Spark reads it."""
    if isinstance(expression, exp.Column):
        # Most of what is written is a column, and the generator costs a lot for a name.
        parts = expression.parts
        if all(isinstance(part, exp.Identifier) and part.args.get("quoted") for part in parts):
            return ".".join(f"`{part.name.replace('`', '``')}`" for part in parts)
    return expression.sql(dialect=VerbatimSpark)
