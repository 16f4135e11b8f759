"""Relation aliases that sqlglot would take for column names."""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp


def rename_hidden(tree: exp.Query, columns: Set[str]) -> None:
    """Another alias for what a semi or an anti join names as a column is named.

    ``n.k`` is the column ``k`` of the relation ``n``, whatever other relations have; sqlglot knows these
    relations by their aliases nowhere, and would look for a struct ``n``.

    :param columns: the names of all columns, in lower case.
    """
    taken = {alias.name.lower() for alias in tree.find_all(exp.TableAlias, exp.Table)} | columns
    for join in tree.find_all(exp.Join):
        alias = join.this.args.get("alias")
        if join.kind.upper() not in ("SEMI", "ANTI") or alias is None or alias.name.lower() not in columns:
            continue
        name, other = alias.name.lower(), alias.name
        while other.lower() in taken:
            other += "_"
        taken.add(other.lower())
        for column in list(join.args["on"].find_all(exp.Column)) if join.args.get("on") else ():
            if column.table.lower() == name and not _is_of_inner(column, join, name):
                column.set("table", exp.to_identifier(other))
        alias.set("this", exp.to_identifier(other))


def _is_of_inner(column: exp.Column, join: exp.Join, name: str) -> bool:
    """Whether a subquery in the condition of a join has a relation of this name, which the column is of."""
    query = column.find_ancestor(exp.Select)
    while query is not None and query is not join.parent:
        own = (query.args.get("from_"), *(query.args.get("joins") or ()))
        views = query.args.get("laterals") or ()
        relations = [*(one.this for one in own if one is not None), *views]
        if any(one.alias_or_name.lower() == name for one in relations):
            return True
        query = query.find_ancestor(exp.Select)
    return False
