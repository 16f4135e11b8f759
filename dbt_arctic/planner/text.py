"""The user's own SQL with its references to relations replaced, and nothing else touched."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_arctic.planner.parse import dotted, is_cte, parse
from dbt_arctic.planner.reasons import CannotPlan


def with_relations(sql: str, text_of: Callable[[str], str | None]) -> str:
    """The text with each relation replaced by what ``text_of`` gives for its dotted name (``None``: left).

    :raises CannotPlan: the text cannot be read, or a reference cannot be replaced in place.
    """
    tree = parse(sql)
    places: list[tuple[int, int, str]] = []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or is_cte(table):
            continue
        text = text_of(dotted(table))
        if text is None:
            continue
        first, last = table.parts[0].meta, table.parts[-1].meta
        if "start" not in first or "end" not in last:
            raise CannotPlan(
                "not-replaced", f"the reference to {dotted(table)} could not be found in the SQL"
            )
        alias = "" if table.alias else f" AS {table.parts[-1].sql(dialect='spark', identify=True)}"
        places.append((int(first["start"]), int(last["end"]) + 1, f"(\n{text}\n){alias}"))
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and _names_a_table(column, tree):
            raise CannotPlan(
                "qualified-column",
                f"the column {column.sql()} names its schema",
                "give the relation an alias, and qualify columns with that",
            )
    made = sql
    for start, end, text in sorted(places, reverse=True):
        made = made[:start] + text + made[end:]
    return made


def _names_a_table(column: exp.Column, tree: exp.Query) -> bool:
    """Whether a dotted name starts with a relation's, and not with a column that is a struct."""
    parts = [part.name.lower() for part in column.parts]
    for table in tree.find_all(exp.Table):
        named = [part.name.lower() for part in table.parts]
        if any(parts[: len(named[skip:])] == named[skip:] for skip in range(len(named) - 1)):
            return True
    return False
