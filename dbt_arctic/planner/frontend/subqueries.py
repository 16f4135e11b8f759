"""Subqueries in conditions and select lists: their relations, and how they are correlated."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Subquery, SubqueryRef
from dbt_arctic.planner.algebra.rewrite import conjuncts
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.scope import Cte, Scope, is_linked, projected
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.reasons import CannotPlan, Line, first_line, line_of
from dbt_arctic.planner.spark.functions import GENERATORS, function_name
from dbt_arctic.planner.spark.syntax import has_aggregate, is_bare, unaliased


def reference(made: Subquery, subqueries: list[Subquery]) -> SubqueryRef:
    """Add a subquery to the list of its operator, and return its placeholder for the expression."""
    subqueries.append(made)
    return SubqueryRef(this=len(subqueries) - 1)


def in_subquery(
    builder: QueryBuilder,
    tree: exp.In,
    scope: Scope,
    ctes: Mapping[str, Cte],
    subqueries: list[Subquery],
    negated: bool,
) -> exp.Expression:
    """An IN with a subquery.

    :raises CannotPlan: it compares several columns.
    """
    if isinstance(tree.this, exp.Tuple):
        raise refused("IN with several columns", "join it, or use EXISTS", tree)
    operand = builder.expression(tree.this, scope, ctes, subqueries)
    if operand.find(SubqueryRef) is not None:
        raise refused("a subquery before IN", "join it, or use EXISTS", tree)
    made = subquery(builder, "in", tree.args["query"], scope, ctes)
    return reference(replace(made, operand=operand, negated=negated), subqueries)


def subquery(
    builder: QueryBuilder, kind: str, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte]
) -> Subquery:
    """A subquery of the given kind, correlated or not."""
    while isinstance(tree, exp.Subquery) and is_bare(tree):
        tree = tree.this
    if not is_linked(tree, scope):
        built = builder.query(tree, ctes, None)
        node = projected(built)
        value = column(node.output[0]) if kind != "exists" else None
        return Subquery(kind, node, (), value)  # type: ignore[arg-type]
    return _linked(builder, kind, tree, scope, ctes)


def _linked(
    builder: QueryBuilder, kind: str, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte]
) -> Subquery:
    """A correlated subquery: its relations, its own conditions, and those that link it to the outer row."""
    plain_select = isinstance(tree, exp.Select) and not any(
        tree.args.get(part) for part in ("having", "limit", "offset", "with_", "qualify", "laterals")
    )
    if isinstance(tree, exp.Select) and (tree.args.get("limit") or tree.args.get("offset")):
        raise CannotPlan(
            "correlated",
            "a correlated subquery with LIMIT or OFFSET",
            "number the rows with row_number() in a separate query, and join the ones that you need",
            line_of(tree),
        )
    if not plain_select or (kind != "exists" and tree.args.get("distinct")):
        raise CannotPlan(
            "correlated",
            "a correlated subquery with more than FROM, WHERE and a value",
            "join with a grouped subquery instead",
            line_of(tree),
        )
    assert isinstance(tree, exp.Select)
    inner = Scope(outer=scope)
    node = builder.from_(tree, ctes, inner)
    if inner.linked:
        what = "a join condition that names an outer query"
        raise CannotPlan("correlated", what, "write the condition in WHERE", _line_of_outer(tree, inner))
    links: list[exp.Expression] = []
    where = tree.args.get("where")
    for part in conjuncts(where.this if where is not None else None):
        inner.linked.clear()
        subqueries: list[Subquery] = []
        converted = builder.expression(part, inner, ctes, subqueries)
        if not inner.linked:
            node = Filter(node, (converted,), with_nulls(subqueries, null_blind(converted)))
        elif subqueries:
            what = "a subquery in a correlated condition"
            raise CannotPlan("correlated", what, "join with the inner subquery instead", line_of(part))
        else:
            links.append(converted)
    if kind == "exists":
        _require_rows(tree)
        return Subquery("exists", node, tuple(links))
    item = unaliased(tree.expressions[0])
    grouped = tree.args.get("group")
    inner.linked.clear()
    value = builder.plain_expression(item, inner)
    if inner.linked or grouped is not None or (kind == "in" and has_aggregate(item)):
        what = "a correlated subquery with GROUP BY, or with a value of the outer query"
        raise CannotPlan("correlated", what, "join with a grouped subquery instead", line_of(tree))
    return Subquery(kind, node, tuple(links), value)  # type: ignore[arg-type]


def _line_of_outer(tree: exp.Select, inner: Scope) -> Line | None:
    """The line of a join condition that refers to a relation outside the subquery."""
    conditions = (join.args["on"] for join in tree.args.get("joins") or [] if join.args.get("on"))
    named = (column for one in conditions for column in one.find_all(exp.Column))
    return first_line(*(one for one in named if one.table.lower() not in inner.relations), tree)


def _require_rows(tree: exp.Select) -> None:
    """Refuse EXISTS over a query whose number of rows depends on its select list.

    :raises CannotPlan: the select list has a generator, or an aggregate without GROUP BY.
    """
    makes_rows = any(function_name(unaliased(item)) in GENERATORS for item in tree.expressions)
    if makes_rows or (tree.args.get("group") is None and any(map(has_aggregate, tree.expressions))):
        raise CannotPlan(
            "correlated",
            "EXISTS of an aggregate or of rows that a function makes",
            "select 1, or compare the aggregate",
            line_of(tree),
        )


def null_blind(part: exp.Expression) -> set[int]:
    """The subqueries of a condition for which unknown has the same effect as false."""
    if isinstance(part, SubqueryRef):
        return {part.number}
    if isinstance(part, exp.And | exp.Or | exp.Paren):
        return {number for child in part.iter_expressions() for number in null_blind(child)}
    return set()


def with_nulls(subqueries: list[Subquery], blind: Collection[int] = ()) -> tuple[Subquery, ...]:
    """The subqueries, with ``nulls_count`` set for each IN whose NULLs matter."""
    return tuple(
        replace(one, nulls_count=one.negated or number not in blind) if one.kind == "in" else one
        for number, one in enumerate(subqueries)
    )
