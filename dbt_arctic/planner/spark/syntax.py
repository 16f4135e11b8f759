"""Predicates and accessors of syntax trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from dbt_arctic.planner.reasons import CannotPlan, line_of
from dbt_arctic.planner.spark.functions import is_aggregate


def as_list(value: object) -> list[exp.Expression]:
    """The value of an argument as a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]  # type: ignore[list-item]


def is_bare(tree: exp.Subquery) -> bool:
    """Whether a subquery is only parentheses around a query. ORDER BY without LIMIT has no effect."""
    return not any(value for name, value in tree.args.items() if name not in ("this", "order"))


def is_wrapped_relation(tree: exp.Expression) -> bool:
    """Whether a subquery is only parentheses around a table or a join, whose aliases are visible outside."""
    if not isinstance(tree, exp.Subquery) or tree.alias:
        return False
    return isinstance(tree.this, exp.Table) or is_wrapped_relation(tree.this)


def core(node: exp.Expression) -> exp.Expression:
    """The function inside FILTER and WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def is_aggregate_call(node: exp.Expression) -> bool:
    """Whether an expression is an aggregate, also with FILTER or WITHIN GROUP."""
    return is_aggregate(core(node))


def joins_of(tree: exp.Expression) -> list[exp.Join]:
    """The joins of a relation, from left to right.

    :raises CannotPlan: an outer join follows a comma. It would only preserve rows of the relations after the
        comma, but sqlglot parses the comma as a CROSS JOIN.
    """
    joins: list[exp.Join] = tree.args.get("joins") or []
    apart = False
    for join in joins:
        side = (join.side or "").upper()
        if apart and side in ("RIGHT", "FULL"):
            what = f"a {side} JOIN after a comma or a CROSS JOIN"
            raise CannotPlan("unsupported", what, "put one of the two into a subquery", line_of(join))
        apart = apart or (join.kind or "").upper() == "CROSS" or not (side or join.args.get("on"))
    return joins


def has_aggregate(tree: exp.Expression) -> bool:
    """Whether an expression contains an aggregate over the groups of its own SELECT."""
    if isinstance(tree, exp.Query | exp.Subquery):
        return False
    if isinstance(tree, exp.Window):
        inside = [*core(tree.this).iter_expressions(), *as_list(tree.args.get("partition_by"))]
        inside += as_list(tree.args.get("order"))
        return any(has_aggregate(child) for child in inside)
    if is_aggregate_call(tree):
        return True
    return any(has_aggregate(child) for child in tree.iter_expressions())


def unaliased(part: exp.Expression) -> exp.Expression:
    """An item of a select list without its alias."""
    return part.this if isinstance(part, exp.Alias) else part


def unwrapped(part: exp.Expression) -> exp.Expression:
    """An expression without parentheses around it."""
    while isinstance(part, exp.Paren):
        part = part.this
    return part


def from_of(select: exp.Expression) -> exp.Expression | None:
    """The first relation of FROM; ``None`` without FROM."""
    # The name of the argument depends on sqlglot's version.
    found = select.args.get("from_") or select.args.get("from")
    return None if found is None else found.this


def dotted(table: exp.Table) -> str:
    """The dotted name of a table as written."""
    return ".".join(part.name for part in table.parts)


def alias_columns(tree: exp.Expression) -> Iterable[exp.Identifier]:
    """The column aliases of a relation."""
    alias = tree.args.get("alias")
    return [] if alias is None or not isinstance(alias, exp.TableAlias) else alias.args.get("columns") or []


def names_given(select: exp.Select) -> set[str]:
    """The aliases of a SELECT for anything but a column of the same name."""
    return {
        item.alias.lower()
        for item in select.expressions
        if isinstance(item, exp.Alias)
        and not (isinstance(item.this, exp.Column) and item.this.name.lower() == item.alias.lower())
    }


def plain_columns(*parts: exp.Expr | None) -> Iterator[exp.Column]:
    """The unqualified columns of some expressions."""
    return (one for part in parts if part is not None for one in part.find_all(exp.Column) if not one.table)


def cte_of(table: exp.Table) -> exp.CTE | None:
    """The common table expression that a table's name refers to, if it is one.

    A common table expression sees only those before it, and itself if it is recursive.
    """
    if table.db:
        return None
    name = table.name.lower()
    node: exp.Expr | None = table
    inside: exp.Expr | None = None
    while node is not None:
        with_ = node.args.get("with_") or node.args.get("with")
        is_recursive = with_ is not None and with_.args.get("recursive")
        for cte in with_.expressions if with_ is not None else ():
            if cte is inside and not is_recursive:
                break
            if cte.alias.lower() == name:
                assert isinstance(cte, exp.CTE)
                return cte
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return None
