"""LATERAL subqueries, decorrelated (Neumann and Kemper 2015).

* Rows become a join: conditions that name an outer relation move to ON. With a ``LIMIT``, the rows are
  numbered within the values that the conditions compare; groups get these values as additional groups.
* Aggregates without groups are one row for each outer row: a scalar subquery for each column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Join, Node, Project, Subquery, walk
from dbt_arctic.planner.algebra.rewrite import conjuncts, filtered
from dbt_arctic.planner.algebra.scalars import SAME_TYPE, column
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.scope import Cte, Scope
from dbt_arctic.planner.frontend.subqueries import with_nulls
from dbt_arctic.planner.reasons import CannotPlan, line_of
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.spark.syntax import (
    alias_columns,
    from_of,
    has_aggregate,
    is_bare,
    unaliased,
    unwrapped,
)

_FIX = "join with a subquery in FROM that selects the compared columns as well"
_BY_VALUE = "by_value"
"""Marks equalities of which one side must have one value in all rows that equal the other side."""
_CLAUSES = ("qualify", "laterals", "offset", "windows", "with_", "with")


def require_same_types(built: Node, typed: Node) -> None:
    """Refuse rows that are numbered or grouped by values of another type than they are compared with.

    ``'1'`` and ``'01'`` both equal the number 1, but are two values.

    :param built: the operators, as ``with_plain_join`` made them.
    :param typed: the same with marked equalities.

    :raises CannotPlan: there are such rows.
    """
    wanted = {to_sql(one): one for one in _conditions(built) if one.meta.get(_BY_VALUE)}
    same = {to_sql(one) for one in _conditions(typed) if one.meta.get(SAME_TYPE)} if wanted else set()
    for text, link in wanted.items():
        if text not in same:
            raise _correlated(
                "LIMIT, GROUP BY or DISTINCT in a LATERAL subquery, by values of several types", link
            )


def _conditions(node: Node) -> Iterator[exp.Expression]:
    return (one for part in walk(node) if isinstance(part, Join) for one in part.conditions)


def is_lateral_query(join: exp.Join) -> bool:
    """Whether a query is joined that may refer to the relations before it."""
    return isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery)


def lateral_query(lateral: exp.Lateral) -> exp.Select:
    """The query of a LATERAL subquery.

    :raises CannotPlan: it has a clause that is not decorrelated.
    """
    tree: exp.Expr = lateral.this
    while isinstance(tree, exp.Subquery) and is_bare(tree):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise _correlated(f"{tree.key.upper()} in a LATERAL subquery", lateral)
    found = next((clause for clause in _CLAUSES if tree.args.get(clause)), None)
    if found is not None:
        raise _correlated(f"{found.strip('_').upper()} in a LATERAL subquery", tree)
    if tree.args.get("having") and tree.args.get("group") is None:
        raise _correlated("HAVING without GROUP BY in a LATERAL subquery", tree)
    if any(item.find(exp.Window) is not None for item in tree.expressions):
        raise _correlated("a window function in a LATERAL subquery", tree)
    return tree


def has_one_row(join: exp.Join) -> bool:
    """Whether a LATERAL subquery has one row, whatever it reads.

    :raises CannotPlan: it cannot be decorrelated.
    """
    if join.side not in ("", "LEFT") or join.kind not in ("", "CROSS", "INNER", "OUTER"):
        raise _correlated(f"a {join.side} {join.kind} JOIN with a LATERAL subquery", join)
    tree = lateral_query(join.this)
    if from_of(tree) is None and not tree.args.get("where") and not tree.args.get("limit"):
        return True
    return tree.args.get("group") is None and any(map(has_aggregate, tree.expressions))


def with_values(
    builder: QueryBuilder, left: Node, join: exp.Join, ctes: Mapping[str, Cte], scope: Scope
) -> Node:
    """Add the columns of a LATERAL subquery with one row to the rows before it.

    :raises CannotPlan: it has a ``LIMIT``, or an outer join has a condition.
    """
    lateral = join.this
    tree = lateral_query(lateral)
    if tree.args.get("limit"):
        raise _correlated("LIMIT combined with an aggregate in a LATERAL subquery", tree)
    subqueries: list[Subquery] = []
    made: list[tuple[str, exp.Expression]] = []
    names: dict[str, str] = {}
    for name, item in zip(_names(lateral, tree), tree.expressions, strict=True):
        value: exp.Expression = unaliased(item)
        if from_of(tree) is not None:
            value = tree.copy()
            value.set("expressions", [unaliased(item).copy()])
            value.set("order", None)
            value.set("distinct", None)
        made.append((builder.identifier(name), builder.expression(value, scope, ctes, subqueries)))
        names[name.lower()] = made[-1][0]
    scope.relations[lateral.alias.lower()] = names
    own = tuple((name, column(name)) for name in left.output)
    node: Node = Project(left, (*own, *made), with_nulls(subqueries))
    if join.side and any(one != exp.true() for one in conjuncts(join.args.get("on"))):
        raise _correlated("an outer join with a condition on a LATERAL subquery of one row", join)
    return _with_condition(builder, node, join, ctes, scope)


def _with_condition(
    builder: QueryBuilder, node: Node, join: exp.Join, ctes: Mapping[str, Cte], scope: Scope
) -> Node:
    """The rows that satisfy the condition of an inner join."""
    subqueries: list[Subquery] = []
    conditions = [one for one in conjuncts(join.args.get("on")) if one != exp.true()]
    converted = tuple(builder.expression(one, scope, ctes, subqueries) for one in conditions)
    if subqueries:
        raise _correlated("a subquery in a condition on a LATERAL subquery", join)
    return filtered(node, converted)


def with_plain_join(join: exp.Join) -> tuple[exp.Join, list[tuple[str, exp.Expression]]]:
    """A join with a LATERAL subquery as a join with a query that refers to no outer relation.

    :returns: the join, and the columns of the subquery that are computed from its row and the outer one.
    :raises CannotPlan: it cannot be decorrelated.
    """
    lateral, alias = join.this, join.this.alias
    tree = lateral_query(lateral).copy()
    own = {source.alias_or_name.lower() for source in _sources(tree)}
    names = _names(lateral, tree)
    values = list(zip(names, map(unaliased, tree.expressions), strict=True))
    late = [(name, value) for name, value in values if _outer(value, own)]
    items: list[exp.Expression] = [_named(value, name) for name, value in values if not _outer(value, own)]
    of_outer = _outer_elsewhere(tree, own, [name for name, _ in late])
    # Spark does not accept outer columns next to groups.
    is_of_rows = not (join.side or tree.args.get("distinct") or tree.args.get("group"))
    if not is_of_rows or any(_is_not_of_row(value) for _, value in late):
        of_outer += [one for _, value in late for one in _outer(value, own)]
    if of_outer:
        raise _correlated("an outer column in this place of a LATERAL subquery", of_outer[0])
    free = (name for name in map("_link_{}".format, count(1)) if name not in names)
    links: list[exp.Expression] = []
    compared: list[exp.Expression | None] = []
    kept: list[exp.Expression] = []
    where = tree.args.get("where")
    for part in conjuncts(where.this if where is not None else None):
        if not _outer(part, own):
            kept.append(part)
            continue
        if part.find(exp.Query) is not None:
            raise _correlated("a subquery in a condition with an outer column", part)
        compared.append(_inner_side(part, own))
        links.append(_over(unwrapped(part), own, alias, items, free))
    late = [(name, _over(value, own, alias, items, free)) for name, value in late]
    tree.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
    group, distinct = tree.args.get("group"), tree.args.get("distinct")
    if group is not None:
        _group(group, compared)
    if distinct is not None:
        if tree.args.get("limit"):
            raise _correlated("LIMIT combined with DISTINCT in a LATERAL subquery", tree)
        _all(compared, tree)
    if group is not None or distinct is not None or tree.args.get("limit"):
        for link in links:
            link.meta[_BY_VALUE] = True
    if tree.args.get("limit"):
        number = next(free)
        links.append(exp.LTE(this=_column(number, alias), expression=tree.args["limit"].expression.copy()))
        items.append(_named(_numbered(tree, compared), number))
    for clause in ("order", "limit"):
        tree.set(clause, None)
    tree.set("expressions", items)
    made = join.copy()
    named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    made.set("this", exp.Subquery(this=tree, alias=named))
    if not late and (on := join.args.get("on")) is not None:
        links.append(on.copy())
    made.set("on", exp.and_(*links, copy=False) if links else None)
    if links and not made.side:
        made.set("kind", None)
    return made, late


def with_late_values(
    builder: QueryBuilder,
    node: Node,
    join: exp.Join,
    late: Sequence[tuple[str, exp.Expression]],
    ctes: Mapping[str, Cte],
    scope: Scope,
) -> Node:
    """Add the columns that ``with_plain_join`` has left out, and then the condition of the join.

    :param node: the join without them.
    :param join: as the query has it.
    """
    names = scope.relations[join.this.alias.lower()]
    subqueries: list[Subquery] = []
    made = []
    for name, value in late:
        made.append((builder.identifier(name), builder.expression(value, scope, ctes, subqueries)))
    names.update({name.lower(): made[place][0] for place, (name, _) in enumerate(late)})
    own = tuple((name, column(name)) for name in node.output)
    node = Project(node, (*own, *made), with_nulls(subqueries))
    return _with_condition(builder, node, join, ctes, scope)


def _outer_elsewhere(tree: exp.Select, own: Collection[str], late: Collection[str]) -> list[exp.Column]:
    """The outer columns outside the select list and WHERE.

    :param late: the columns of the select list that have outer columns.
    """
    conditions = [inner.args.get("on") for inner in tree.args.get("joins") or []]
    parts = (tree.args.get("group"), tree.args.get("having"), *conditions)
    found = [one for part in parts for one in _outer(part, own)]
    order = tree.args.get("order")
    for one in order.find_all(exp.Column) if order is not None and tree.args.get("limit") else ():
        if one.name in late if not one.table else one.table.lower() not in own:
            found.append(one)
    return found


def _is_not_of_row(value: exp.Expression) -> bool:
    return has_aggregate(value) or value.find(exp.Query) is not None


def _over(
    part: exp.Expression, own: Collection[str], alias: str, items: list[exp.Expression], free: Iterator[str]
) -> exp.Expression:
    """A condition over the columns of the subquery, to whose ``items`` the needed ones are added."""
    shown: dict[str, str] = {}

    def swap(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.table.lower() not in own:
            return node
        name = shown.get(node.sql())
        if name is None:
            name = shown[node.sql()] = next(free)
            items.append(_named(node.copy(), name))
        return _column(name, alias)

    made = part.copy().transform(swap)
    assert isinstance(made, exp.Expression)
    return made


def _group(group: exp.Group, compared: Sequence[exp.Expression | None]) -> None:
    """Add the compared values to the groups.

    :raises CannotPlan: there are grouping sets, or rows are compared by anything but equality.
    """
    if any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets", "all", "totals")):
        raise _correlated("grouping sets in a LATERAL subquery", group)
    group.set("expressions", [*group.expressions, *_all(compared, group)])


def _numbered(tree: exp.Select, compared: Sequence[exp.Expression | None]) -> exp.Expression:
    """The number of a row among those with the same compared values.

    :raises CannotPlan: there is no ORDER BY, or rows are compared by anything but equality.
    """
    order = tree.args.get("order")
    if order is None:
        raise _correlated("LIMIT without ORDER BY in a LATERAL subquery", tree)
    values = {item.alias.lower(): unaliased(item) for item in tree.expressions if isinstance(item, exp.Alias)}

    def resolved(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column) and not node.table and node.name.lower() in values
        return values[node.name.lower()].copy() if is_name else node

    if any(isinstance(part.this, exp.Literal) for part in order.expressions):
        raise _correlated("ORDER BY a position in a LATERAL subquery", order)
    made = exp.Order(expressions=[part.transform(resolved) for part in order.expressions])
    made.meta.update(order.meta)
    number = exp.Anonymous(this="row_number")
    return exp.Window(this=number, partition_by=_all(compared, tree), order=made)


def _all(compared: Sequence[exp.Expression | None], where: exp.Expression) -> list[exp.Expression]:
    found = [one.copy() for one in compared if one is not None]
    if len(found) < len(compared):
        raise _correlated(
            "LIMIT or GROUP BY with another condition than equality in a LATERAL subquery", where
        )
    return found


def _named(value: exp.Expression, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _column(name: str, table: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def _correlated(what: str, where: exp.Expr) -> CannotPlan:
    return CannotPlan("correlated", what, _FIX, line_of(where))


def _names(lateral: exp.Lateral, tree: exp.Select) -> list[str]:
    """The names of the columns of a LATERAL subquery.

    :raises CannotPlan: the alias names another number of columns.
    """
    given = [name.name for name in alias_columns(lateral)]
    if given and len(given) != len(tree.expressions):
        what = f"{lateral.alias} names {len(given)} of {len(tree.expressions)} columns"
        raise CannotPlan("not-resolved", what, "give each column a name", line_of(lateral))
    return given or [item.alias_or_name for item in tree.expressions]


def _sources(tree: exp.Select) -> list[exp.Expression]:
    """The relations of FROM.

    :raises CannotPlan: there are none, or one of them is LATERAL itself.
    """
    first, joins = from_of(tree), tree.args.get("joins") or []
    found = [first, *(join.this for join in joins)]
    if first is None or any(isinstance(one, exp.Lateral) for one in found):
        raise _correlated("a LATERAL subquery without a relation, or with another one inside", tree)
    return found


def _outer(part: exp.Expr | None, own: Collection[str]) -> list[exp.Column]:
    """The columns of an expression that are not of the relations ``own``."""
    found = part.find_all(exp.Column) if part is not None else ()
    return [one for one in found if one.table.lower() not in own]


def _inner_side(part: exp.Expression, own: Collection[str]) -> exp.Expression | None:
    """What a condition compares with a value of the outer row; ``None`` if it is no such equality."""
    bare = unwrapped(part)
    if not isinstance(bare, exp.EQ):
        return None
    for inside, outside in ((bare.this, bare.expression), (bare.expression, bare.this)):
        of_outer = _outer(outside, own)
        if not _outer(inside, own) and of_outer and len(of_outer) == len(list(outside.find_all(exp.Column))):
            assert isinstance(inside, exp.Expression)
            return inside
    return None


__all__ = [
    "has_one_row",
    "is_lateral_query",
    "require_same_types",
    "with_late_values",
    "with_plain_join",
    "with_values",
]
