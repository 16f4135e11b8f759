"""Duplicate column names in a common table expression or a derived table that no expression refers to.

sqlglot does not expand ``*`` over them. Spark does, whatever the names are. For Spark, only a reference to a
duplicate name is an error, unless all columns of this name are the same column.
"""

from __future__ import annotations

from itertools import count

from sqlglot import exp

from dbt_arctic.planner.spark.syntax import unaliased


def rename_duplicates(tree: exp.Query) -> bool:
    """Rename duplicate columns if no ``*`` remains to be expanded. The tree is changed in place.

    :returns: whether there are any.
    """
    taken = {name.name.lower() for name in tree.find_all(exp.Identifier)}
    free = (f"_same_{number}" for number in count(1) if f"_same_{number}" not in taken)
    changed = False
    for select in list(tree.find_all(exp.Select)):
        if not _is_relation(select) or select.is_star:
            continue
        by_name: dict[str, list[exp.Expression]] = {}
        for item in select.expressions:
            by_name.setdefault(item.alias_or_name.lower(), []).append(item)
        for name, items in by_name.items():
            if not name or len(items) == 1:
                continue
            # A column that is selected twice may be referred to, because both are the same.
            is_one = all(unaliased(item) == unaliased(items[0]) for item in items)
            for item in items[is_one:]:
                changed = True
                item.replace(exp.alias_(unaliased(item).copy(), next(free), quoted=True))
    return changed


def _is_relation(select: exp.Select) -> bool:
    """Whether the columns of a SELECT, or of the union that contains it, are referred to by name."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.SetOperation):
        node = node.parent
    if isinstance(node.parent, exp.CTE):
        return True
    return isinstance(node.parent, exp.Subquery) and isinstance(node.parent.parent, exp.From | exp.Join)


__all__ = ["rename_duplicates"]
