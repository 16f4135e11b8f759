"""Replaces the relations in the user's own SQL text, and leaves the rest unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

from sqlglot import exp

from dbt_arctic.planner.frontend.parse import is_cte, named_columns, parsed
from dbt_arctic.planner.frontend.point_in_time import KNOWN, Time, calls
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.reasons import CannotPlan, line_of
from dbt_arctic.planner.spark.syntax import dotted


def with_relations(
    sql: str,
    text_of: Callable[[str], str | None],
    time: Time | None = None,
    columns: Iterable[str] = (),
) -> str:
    """The text with each relation replaced by the result of ``text_of`` for its dotted name.

    :param text_of: returns ``None`` for a relation that stays.
    :param time: supplies replacements for functions of time.
    :param columns: the columns of the relations. A function without parentheses cannot have such a name.

    :raises CannotPlan: the text cannot be parsed, or a reference cannot be replaced in place.
    """
    tree = parsed(sql)
    places: list[tuple[int, int, str]] = []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or is_cte(table):
            continue
        text = text_of(dotted(table))
        if text is None:
            continue
        for part in ("version", "when", "sample"):
            if table.args.get(part):
                raise refused(
                    f"{dotted(table)} is read only in part or at an older version",
                    "read the whole current table, and select rows in WHERE",
                    table,
                )
        first, last = table.parts[0].meta, table.parts[-1].meta
        if "start" not in first or "end" not in last:
            raise _not_found(f"the reference to {dotted(table)}", table)
        alias = "" if table.alias else f" AS {table.parts[-1].sql(dialect='spark', identify=True)}"
        places.append((int(first["start"]), int(last["end"]) + 1, f"(\n{text}\n){alias}"))
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and _names_a_table(column, tree):
            raise CannotPlan(
                "qualified-column",
                f"the column {column.sql()} names its schema",
                "give the relation an alias, and qualify columns with that",
                line_of(column),
            )
    places += _times(sql, tree, time, named_columns(tree, columns)) if time is not None else []
    made = sql
    for start, end, text in sorted(places, reverse=True):
        made = made[:start] + text + made[end:]
    return made


_NO_ARGUMENTS = re.compile(r"\s*\(\s*\)")


def _times(sql: str, tree: exp.Query, time: Time, columns: Container[str]) -> list[tuple[int, int, str]]:
    """The positions of functions of time, and their replacements."""
    found = []
    for call, name in calls(tree, columns):
        if name not in KNOWN:
            continue
        meta = call.meta if isinstance(call, exp.Anonymous) else call.this.meta
        if "start" not in meta or "end" not in meta:
            raise _not_found(f"the call of {name}", call)
        end = int(meta["end"]) + 1
        if isinstance(call, exp.Anonymous):
            arguments = _NO_ARGUMENTS.match(sql, end)
            if arguments is None:
                raise _not_found(f"the arguments of {name}", call)
            end = arguments.end()
        found.append((int(meta["start"]), end, time.literal(name)))
    return found


def _not_found(what: str, where: exp.Expr) -> CannotPlan:
    fix = "write it plainly, with no comment inside"
    return CannotPlan("not-replaced", f"{what} could not be found in the SQL", fix, line_of(where))


def _names_a_table(column: exp.Column, tree: exp.Query) -> bool:
    """Whether a dotted name begins with a relation's name, rather than with a struct column."""
    parts = [part.name.lower() for part in column.parts]
    for table in tree.find_all(exp.Table):
        named = [part.name.lower() for part in table.parts]
        if any(parts[: len(named[skip:])] == named[skip:] for skip in range(len(named) - 1)):
            return True
    return False
