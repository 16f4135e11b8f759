"""Builds operators from a qualified syntax tree.

A construct without an operator raises ``CannotPlan`` with a reason. The builder never guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Scan,
    ScannedColumn,
    SetOperation,
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
)
from dbt_arctic.planner.algebra.query import Built, OutputColumn, Schemas
from dbt_arctic.planner.algebra.rewrite import conjuncts, filtered
from dbt_arctic.planner.algebra.scalars import as_operand, column
from dbt_arctic.planner.frontend.grouping import grouped
from dbt_arctic.planner.frontend.lateral_subqueries import (
    has_one_row,
    is_lateral_query,
    with_late_values,
    with_plain_join,
    with_values,
)
from dbt_arctic.planner.frontend.lateral_views import lateral_view
from dbt_arctic.planner.frontend.scope import Cte, Scope, projected
from dbt_arctic.planner.frontend.subqueries import in_subquery, null_blind, reference, subquery, with_nulls
from dbt_arctic.planner.frontend.unsupported import (
    no_relation,
    refuse_clauses,
    refuse_generators,
    refuse_join,
    refuse_part,
    refuse_recursive,
    refused,
)
from dbt_arctic.planner.frontend.windows import windows
from dbt_arctic.planner.reasons import CannotPlan, at_line, line_of
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.spark.identifiers import Identifiers
from dbt_arctic.planner.spark.syntax import (
    alias_columns,
    dotted,
    from_of,
    has_aggregate,
    is_wrapped_relation,
    joins_of,
    unaliased,
    unwrapped,
)
from dbt_arctic.planner.typing.view_types import as_stored


class Builder:
    """Builds the operators of one query, with identifiers that are unique in it."""

    def __init__(self, schemas: Schemas, views: Mapping[str, exp.Query] | None = None) -> None:
        self.schemas = schemas
        self.views = views or {}
        """The qualified queries of views, by dotted name. A view is replaced by its query."""
        self.types: dict[str, str] = {}
        """The types of the columns of scans, by identifier."""
        self.identifier = Identifiers()
        self._stored = {name.lower() for columns in schemas.values() for name, _ in columns}

    def build(self, tree: exp.Query) -> Built:
        """The operators of a whole query."""
        return self.query(tree, {}, None)

    def query(self, tree: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        """Build the operators of a query."""
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is not None:
            refuse_recursive(with_)
            ctes = dict(ctes)
            for cte in with_.expressions:
                # A common table expression sees only those before it.
                ctes[cte.alias.lower()] = Cte(cte.this, dict(ctes), tuple(c.name for c in alias_columns(cte)))
        if isinstance(tree, exp.Subquery):
            inner = self.query(tree.this, ctes, outer)
            return self._ordered(tree, inner, outer)
        if isinstance(tree, exp.SetOperation):
            return self._ordered(tree, self._set_operation(tree, ctes, outer), outer)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer)
        raise refused(f"{tree.key.upper()} in place of a SELECT", "write SELECT * FROM it", tree)

    def _set_operation(self, tree: exp.SetOperation, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        left, right = self.query(tree.left, ctes, outer), self.query(tree.right, ctes, outer)
        if tree.args.get("by_name"):
            raise refused("UNION BY NAME", "list the columns in one order", tree)
        columns = tuple(self.identifier(one.name) for one in left.columns)
        left_node = projected(left)
        right_node = projected(right)
        distinct = bool(tree.args.get("distinct"))
        if isinstance(tree, exp.Union):
            node: Node = UnionAll((left_node, right_node), columns)
            if distinct:
                node = self._distinct(node)
                columns = node.output
        else:
            word = "INTERSECT" if isinstance(tree, exp.Intersect) else "EXCEPT"
            node = SetOperation(left_node, right_node, word if distinct else f"{word} ALL", columns)
        return Built(node, tuple(map(OutputColumn, (one.name for one in left.columns), columns)))

    def _ordered(self, tree: exp.Expression, built: Built, outer: Scope | None) -> Built:
        """Apply ORDER BY, LIMIT and OFFSET of a set operation or a subquery in parentheses."""
        if tree.args.get("limit") is None and tree.args.get("offset") is None:
            return built
        scope = Scope({"": {one.name.lower(): one.identifier for one in built.columns}}, outer)
        return replace(built, node=self._limited(tree, built.node, scope, []))

    def _limited(self, tree: exp.Expression, node: Node, scope: Scope, order: list[exp.Expression]) -> Node:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is not None and limit.expression == exp.Literal.number(0):
            return Filter(node, (exp.false(),))  # No order decides which rows there are.
        if not order and tree.args.get("order") is not None:
            order = [self.plain_expression(part, scope) for part in tree.args["order"].expressions]
        return Limit(
            node,
            tuple(order),
            limit.expression.copy() if limit is not None else None,
            offset.expression.copy() if offset is not None else None,
        )

    def _distinct(self, node: Node) -> Aggregate:
        return Aggregate(node, tuple((self.identifier(name), column(name)) for name in node.output))

    def _select(self, tree: exp.Select, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        refuse_clauses(tree)
        scope = Scope(outer=outer)
        node = self.from_(tree, ctes, scope)
        node = self._where(tree.args.get("where"), node, scope, ctes)
        items = [(part.alias_or_name, unaliased(part)) for part in tree.expressions]
        having = tree.args.get("having")
        limited = tree.args.get("limit") is not None or tree.args.get("offset") is not None
        order = self._order(tree) if limited else []
        group = tree.args.get("group")
        needs_groups = (
            group is not None
            or having is not None
            or any(
                has_aggregate(part)
                for part in [value for _, value in items] + order + ([having.this] if having else [])
            )
        )
        values: list[exp.Expression] = [value for _, value in items]
        if needs_groups:
            node, scope, rewritten = grouped(
                self, tree, node, scope, [*values, *order, *([having.this] if having else [])]
            )
            values = rewritten[: len(values)]
            order = rewritten[len(values) : len(values) + len(order)]
            if having is not None:
                node = self._filtered(rewritten[-1], node, scope, ctes)
        node, values, order = windows(self, node, scope, values, order)
        subqueries: list[Subquery] = []
        made: list[tuple[str, exp.Expression]] = []
        refuse_generators(values)
        for (name, _), value in zip(items, values, strict=True):
            made.append((self.identifier(name or "col"), self.expression(value, scope, ctes, subqueries)))
        shown = tuple(
            OutputColumn(name, identifier) for (name, _), (identifier, _) in zip(items, made, strict=True)
        )
        if tree.args.get("distinct") is not None:
            node = Project(node, tuple(made), with_nulls(subqueries))
            distinct = self._distinct(node)
            renamed = dict(zip(node.output, distinct.output, strict=True))
            shown = tuple(OutputColumn(name, renamed[identifier]) for name, identifier in shown)
            if limited:
                positions = {to_sql(value): renamed[identifier] for identifier, value in made}
                order = [self._order_of_distinct(part, positions, scope) for part in order]
                return Built(self._limited(tree, distinct, scope, order or [exp.Literal.number(1)]), shown)
            return Built(distinct, shown)
        if not limited:
            return Built(Project(node, tuple(made), with_nulls(subqueries)), shown)
        ordered: list[exp.Expression] = []
        for part in order:
            assert isinstance(part, exp.Ordered)
            converted = self.expression(part.this, scope, ctes, subqueries)
            known = next((identifier for identifier, value in made if value == converted), None)
            if known is None:
                known = self.identifier("order")
                made.append((known, converted))
            again = part.copy()
            again.set("this", column(known))
            ordered.append(again)
        node = Project(node, tuple(made), with_nulls(subqueries))
        return Built(self._limited(tree, node, scope, ordered), shown)

    def _order_of_distinct(
        self, part: exp.Expression, positions: Mapping[str, str], scope: Scope
    ) -> exp.Expression:
        converted = self.plain_expression(part, scope)
        found = positions.get(to_sql(converted.this))
        if found is None:
            what = "an order of DISTINCT rows by what is not selected"
            raise refused(what, "select what it is ordered by", part)
        converted.set("this", column(found))
        return converted

    def _order(self, tree: exp.Select) -> list[exp.Expression]:
        """The ORDER BY of a SELECT, with the names of selected columns replaced by their expressions."""
        if tree.args.get("order") is None:
            return []
        selected = {part.alias_or_name.lower(): unaliased(part) for part in tree.expressions}

        def resolve(node: exp.Expression) -> exp.Expression:
            if isinstance(node, exp.Column) and not node.table:
                if node.name.lower() not in selected:
                    fix = "order by a column that is selected"
                    raise CannotPlan("not-resolved", f"ORDER BY {node.name}", fix, line_of(node))
                value = selected[node.name.lower()]
                return value.copy() if isinstance(node.parent, exp.Ordered) else as_operand(value)
            return node

        return [part.copy().transform(resolve) for part in tree.args["order"].expressions]

    def from_(self, tree: exp.Select, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        """Build the operators of a FROM clause."""
        if (first := from_of(tree)) is None:
            return Values("SELECT 1 AS `_one`", ("_one",))
        node = self._relation(first, ctes, scope)
        for join in joins_of(tree):
            node = self._join(node, join, ctes, scope)
        for lateral in tree.args.get("laterals") or []:
            node = lateral_view(self, node, lateral, scope, self.types)
        return node

    def _relation(self, tree: exp.Expression, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        refuse_part(tree)
        if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            node = self._table(tree, ctes, scope)
        elif is_wrapped_relation(tree):
            node = self._relation(tree.this, ctes, scope)
        elif isinstance(tree, exp.Subquery):
            # No outer scope: a derived table without LATERAL is not correlated.
            built = self.query(tree.this, ctes, None)
            node = self._named(built, tree, [part.name for part in alias_columns(tree)], scope)
        elif isinstance(tree, exp.Values):
            names = [part.name for part in alias_columns(tree)]
            rows = ", ".join(to_sql(row) for row in tree.expressions)
            if not names:
                first = tree.expressions[0]
                width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
                names = [f"col{place + 1}" for place in range(width)]
            made = tuple(self.identifier(name) for name in names)
            listed = ", ".join(f"`{name}`" for name in made)
            node = Values(f"SELECT * FROM VALUES {rows} AS v({listed})", made)
            scope.relations[tree.alias.lower()] = {n.lower(): m for n, m in zip(names, made, strict=True)}
        else:
            raise no_relation(tree)
        for join in joins_of(tree):
            node = self._join(node, join, ctes, scope)
        return node

    def _table(self, tree: exp.Table, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        name = dotted(tree).lower()
        alias = tree.alias_or_name
        cte = ctes.get(name)
        if cte is not None:
            # No outer scope: a common table expression is not correlated.
            built = self.query(cte.query, cte.ctes, None)
            return self._named(built, tree, list(cte.columns), scope)
        columns = self.schemas.get(name)
        if name in self.views and columns is not None:
            text = self.query(self.views[name], {}, None)
            built = as_stored(text, columns, self.types, self.identifier)
            shown = [part.name for part in alias_columns(tree)] or [column for column, _ in columns]
            return self._named(built, tree, shown, scope)
        if columns is None:
            fix = "read a table, a view or a model"
            raise CannotPlan("unknown-relation", f"{name} is not known", fix, line_of(tree))
        stored = [column_name for column_name, _ in columns]
        made = tuple(ScannedColumn(self.identifier(f"{alias}_{own}"), own) for own in stored)
        self.types.update(zip((one.identifier for one in made), (type_ for _, type_ in columns), strict=True))
        written = alias
        while written.lower() in self._stored:
            # In a subquery, `a.b` means the field b of a column a rather than the column b of a relation a.
            written += "_"
        output = tuple(OutputColumn(one.name, one.identifier) for one in made)
        return self._named(
            Built(Scan(name, written, made), output), tree, [part.name for part in alias_columns(tree)], scope
        )

    def _named(self, built: Built, tree: exp.Expression, columns: list[str], scope: Scope) -> Node:
        alias = tree.alias_or_name
        shown = columns or [one.name for one in built.columns]
        if len(shown) != len(built.columns):
            what = f"{alias} names {len(shown)} of {len(built.columns)} columns"
            raise CannotPlan("not-resolved", what, "give each column a name", line_of(tree))
        scope.relations[alias.lower()] = {
            name.lower(): identifier for name, (_, identifier) in zip(shown, built.columns, strict=True)
        }
        return built.node

    def _join(self, left: Node, join: exp.Join, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        refuse_join(join)
        if is_lateral_query(join):
            if has_one_row(join):
                return with_values(self, left, join, ctes, scope)
            plain_join, late = with_plain_join(join)
            node = self._join(left, plain_join, ctes, scope)
            return with_late_values(self, node, join, late, ctes, scope) if late else node
        kind = (join.kind or "").upper()
        side = (join.side or "").upper()
        hidden = Scope(outer=scope.outer) if kind in ("SEMI", "ANTI") else scope
        right = self._relation(join.this, ctes, hidden)
        both = Scope({**scope.relations, **hidden.relations}, scope.outer) if hidden is not scope else scope
        subqueries: list[Subquery] = []
        parts = conjuncts(join.args.get("on"))
        conditions = tuple(self.expression(part, both, ctes, subqueries) for part in parts)
        if subqueries:
            holding = (part for part, made in zip(parts, conditions, strict=True) if made.find(SubqueryRef))
            fix = "write it in the WHERE of a subquery in FROM, which is joined"
            raise refused("a subquery in a join condition", fix, *holding, join)
        if kind in ("SEMI", "ANTI"):
            reference: exp.Expression = SubqueryRef(this=0)
            if kind == "ANTI":
                reference = exp.Not(this=reference)
            return Filter(left, (reference,), (Subquery("exists", right, conditions),))
        if side not in ("", "LEFT", "RIGHT", "FULL"):
            raise refused(f"a {side} {kind} join", "write INNER, LEFT, RIGHT, FULL, SEMI or ANTI", join)
        word: JoinKind = "inner" if side == "" else side.lower()  # type: ignore[assignment]
        return Join(left, right, word, conditions)

    # Conditions

    def _where(self, where: exp.Where | None, node: Node, scope: Scope, ctes: Mapping[str, Cte]) -> Node:
        return node if where is None else self._filtered(where.this, node, scope, ctes)

    def _filtered(self, condition: exp.Expression, node: Node, scope: Scope, ctes: Mapping[str, Cte]) -> Node:
        subqueries: list[Subquery] = []
        parts = tuple(self.expression(part, scope, ctes, subqueries) for part in conjuncts(condition))
        blind = {number for part in parts for number in null_blind(part)}
        return filtered(node, parts, with_nulls(subqueries, blind))

    # Expressions

    def plain_expression(self, tree: exp.Expression, scope: Scope) -> exp.Expression:
        """An expression in a place where no subquery is allowed."""
        subqueries: list[Subquery] = []
        made = self.expression(tree, scope, {}, subqueries)
        if subqueries:
            what = "a subquery inside GROUP BY, an aggregate, a window or a LATERAL VIEW"
            fix = "select its value in a subquery in FROM"
            raise refused(what, fix, *tree.find_all(exp.Query, exp.Subquery), tree)
        return made

    def expression(
        self,
        tree: exp.Expression,
        scope: Scope,
        ctes: Mapping[str, Cte],
        subqueries: list[Subquery],
    ) -> exp.Expression:
        """Resolve the columns and subqueries of an expression."""
        if isinstance(tree, exp.Column):
            made_column = column(self._resolve(tree, scope))
            at_line(made_column, line_of(tree))
            return made_column
        if isinstance(tree, exp.Exists):
            return reference(subquery(self, "exists", tree.this, scope, ctes), subqueries)
        if isinstance(tree, exp.In) and tree.args.get("query") is not None:
            return in_subquery(self, tree, scope, ctes, subqueries, negated=False)
        if isinstance(tree, exp.Not) and isinstance(unwrapped(tree.this), exp.In):
            inside = unwrapped(tree.this)
            if inside.args.get("query") is not None:
                assert isinstance(inside, exp.In)
                return in_subquery(self, inside, scope, ctes, subqueries, negated=True)
        if isinstance(tree, exp.Subquery | exp.Query):
            return reference(subquery(self, "scalar", tree, scope, ctes), subqueries)
        if isinstance(tree, exp.Any | exp.All):
            fix = "write EXISTS or NOT EXISTS with the comparison in its WHERE"
            raise refused(f"{tree.key.upper()} of a subquery", fix, tree)
        made = tree.copy()
        for child, own in zip(list(made.iter_expressions()), list(tree.iter_expressions()), strict=True):
            child.replace(self.expression(own, scope, ctes, subqueries))
        return made

    def _resolve(self, tree: exp.Column, scope: Scope) -> str:
        if (found := scope.resolve(tree.table, tree.name)) is not None:
            return found
        what = f"the column {tree.sql()} could not be resolved"
        raise CannotPlan("not-resolved", what, "qualify it by the alias of its relation", line_of(tree))
