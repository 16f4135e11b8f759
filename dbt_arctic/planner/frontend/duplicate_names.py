"""Columns of one name in a common table expression or a derived table, of which nothing names any.

sqlglot expands no star over them. To Spark a star is what it stands for, whatever names that has; only to
name one of them is an error, unless all are the same column.
"""

from __future__ import annotations

from itertools import count

from sqlglot import exp

from dbt_arctic.planner.spark.syntax import unaliased


def rename_duplicates(tree: exp.Query) -> bool:
    """Give such columns names that nothing else has, where no star is left to be expanded. The tree changes.

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
            # One column that is listed twice may be named: Spark takes either.
            is_one = all(unaliased(item) == unaliased(items[0]) for item in items)
            for item in items[is_one:]:
                changed = True
                item.replace(exp.alias_(unaliased(item).copy(), next(free), quoted=True))
    return changed


def _is_relation(select: exp.Select) -> bool:
    """Whether a SELECT, or the union that it is a part of, is read by its columns' names."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.SetOperation):
        node = node.parent
    if isinstance(node.parent, exp.CTE):
        return True
    return isinstance(node.parent, exp.Subquery) and isinstance(node.parent.parent, exp.From | exp.Join)


__all__ = ["rename_duplicates"]
