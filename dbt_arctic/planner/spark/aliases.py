"""Renames relation aliases that sqlglot would resolve as column names."""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp


def rename_hidden(tree: exp.Query, columns: Set[str]) -> None:
    """Rename the alias of a semi- or anti-joined relation if it is also the name of a column.

    For Spark, ``n.k`` is the column ``k`` of the relation ``n``, whatever columns other relations have.
    sqlglot does not keep the aliases of these relations, and would look for a struct ``n``.

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
    """Whether the column belongs to a relation of this name in a subquery of the join condition."""
    query = column.find_ancestor(exp.Select)
    while query is not None and query is not join.parent:
        own = (query.args.get("from_"), *(query.args.get("joins") or ()))
        views = query.args.get("laterals") or ()
        relations = [*(one.this for one in own if one is not None), *views]
        if any(one.alias_or_name.lower() == name for one in relations):
            return True
        query = query.find_ancestor(exp.Select)
    return False
