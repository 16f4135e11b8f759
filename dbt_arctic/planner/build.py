"""From a qualified syntax tree to operators.

Whatever has no operator here raises ``CannotPlan`` with a reason; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    JoinKind,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
    column,
    columns_of,
)
from dbt_arctic.planner.dialect import to_sql
from dbt_arctic.planner.functions import GENERATORS, function_name, is_aggregate
from dbt_arctic.planner.parse import Schemas, dotted
from dbt_arctic.planner.reasons import CannotPlan, line_of
from dbt_arctic.planner.tidy import conjuncts


@dataclass(frozen=True)
class Built:
    """A query as operators. ``names``: output names in order, each with its identifier."""

    node: Node
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cte:
    """A common table expression with those that it can see."""

    query: exp.Expression
    ctes: Mapping[str, Cte]
    columns: tuple[str, ...]


@dataclass
class Scope:
    """The relations that a SELECT can name: alias to column name to identifier."""

    relations: dict[str, dict[str, str]] = field(default_factory=dict)
    outer: Scope | None = None
    linked: set[str] = field(default_factory=set)
    """Identifiers of outer queries that were used."""

    def find(self, table: str, name: str) -> str | None:
        return self.relations.get(table.lower(), {}).get(name.lower())


class Builder:
    """Builds one query; counts identifiers, so that each is unique in it."""

    def __init__(self, schemas: Schemas, views: Mapping[str, exp.Query] | None = None) -> None:
        self.schemas = schemas
        self.views = views or {}
        """The qualified queries of views, by dotted name: a view is read as what it stands for."""
        self.types: dict[str, str] = {}
        """Types of the columns of scans, by identifier."""
        self._used: dict[str, int] = {}

    def identifier(self, wish: str) -> str:
        number = self._used[wish] = self._used.get(wish, 0) + 1
        return wish if number == 1 else f"{wish}__{number}"

    def build(self, tree: exp.Query) -> Built:
        return self._query(tree, {}, None)

    # Queries

    def _query(self, tree: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        with_ = tree.args.get("with_") or tree.args.get("with")
        if with_ is not None:
            if with_.args.get("recursive"):
                raise CannotPlan("recursive", "a recursive common table expression", line=line_of(tree))
            ctes = dict(ctes)
            for cte in with_.expressions:
                # Each sees those before it only.
                ctes[cte.alias.lower()] = Cte(
                    cte.this, dict(ctes), tuple(c.name for c in _alias_columns(cte))
                )
        if isinstance(tree, exp.Subquery):
            inner = self._query(tree.this, ctes, outer)
            return self._ordered(tree, inner, outer)
        if isinstance(tree, exp.SetOperation):
            return self._ordered(tree, self._set_operation(tree, ctes, outer), outer)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer)
        raise CannotPlan("unsupported", f"{tree.key.upper()} in a query", line=line_of(tree))

    def _set_operation(self, tree: exp.SetOperation, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        left, right = self._query(tree.left, ctes, outer), self._query(tree.right, ctes, outer)
        if tree.args.get("by_name"):
            raise CannotPlan("unsupported", "UNION BY NAME", "list the columns in one order", line_of(tree))
        columns = tuple(self.identifier(name) for name, _ in left.names)
        left_node = _picked(left)
        right_node = _picked(right)
        distinct = bool(tree.args.get("distinct"))
        if isinstance(tree, exp.Union):
            node: Node = UnionAll((left_node, right_node), columns)
            if distinct:
                node = self._distinct(node)
                columns = node.output
        else:
            word = "INTERSECT" if isinstance(tree, exp.Intersect) else "EXCEPT"
            node = SetOperation(left_node, right_node, word if distinct else f"{word} ALL", columns)
        names = tuple((name, made) for (name, _), made in zip(left.names, columns, strict=True))
        return Built(node, names)

    def _ordered(self, tree: exp.Expression, built: Built, outer: Scope | None) -> Built:
        """ORDER BY, LIMIT and OFFSET on a set operation or a subquery in parentheses."""
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is None and offset is None:
            return built
        scope = Scope({"": {name.lower(): made for name, made in built.names}}, outer)
        return replace(built, node=self._limited(tree, built.node, scope, []))

    def _limited(self, tree: exp.Expression, node: Node, scope: Scope, order: list[exp.Expression]) -> Node:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if not order and tree.args.get("order") is not None:
            order = [self._plain_expression(part, scope) for part in tree.args["order"].expressions]
        return Limit(
            node,
            tuple(order),
            limit.expression.copy() if limit is not None else None,
            offset.expression.copy() if offset is not None else None,
        )

    def _distinct(self, node: Node) -> Aggregate:
        return Aggregate(node, tuple((self.identifier(name), column(name)) for name in node.output))

    # SELECT

    def _select(self, tree: exp.Select, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        for unsupported in ("match", "connect", "start", "sample", "pivots", "into"):
            if tree.args.get(unsupported):
                raise CannotPlan("unsupported", unsupported.upper(), line=line_of(tree))
        scope = Scope(outer=outer)
        node = self._from(tree, ctes, scope)
        node = self._where(tree.args.get("where"), node, scope, ctes)
        items = [(part.alias_or_name, _unaliased(part)) for part in tree.expressions]
        having, qualify_ = tree.args.get("having"), tree.args.get("qualify")
        if qualify_ is not None:
            raise CannotPlan("unsupported", "QUALIFY", line=line_of(tree))
        order = (
            [] if tree.args.get("limit") is None and tree.args.get("offset") is None else self._order(tree)
        )
        group = tree.args.get("group")
        needs_groups = group is not None or any(
            _has_aggregate(part)
            for part in [value for _, value in items] + order + ([having.this] if having else [])
        )
        values: list[exp.Expression] = [value for _, value in items]
        if needs_groups:
            node, scope, rewritten = self._grouped(
                tree, node, scope, [*values, *order, *([having.this] if having else [])]
            )
            values = rewritten[: len(values)]
            order = rewritten[len(values) : len(values) + len(order)]
            if having is not None:
                node = self._filtered(rewritten[-1], node, scope, ctes)
        elif having is not None:
            node = self._filtered(having.this, node, scope, ctes)
        node, values, order = self._windows(node, scope, values, order)
        subqueries: list[Subquery] = []
        made: list[tuple[str, exp.Expression]] = []
        generators = [value for value in values if function_name(value) in GENERATORS]
        if generators:
            raise CannotPlan(
                "unsupported",
                f"{function_name(generators[0])} in a select list",
                "use LATERAL VIEW",
                line_of(tree),
            )
        for (name, _), value in zip(items, values, strict=True):
            made.append((self.identifier(name or "col"), self._expression(value, scope, ctes, subqueries)))
        names = tuple((name, identifier) for (name, _), (identifier, _) in zip(items, made, strict=True))
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on"):
                raise CannotPlan("unsupported", "DISTINCT ON", line=line_of(tree))
            node = Project(node, tuple(made), _with_nulls(subqueries))
            grouped = self._distinct(node)
            renamed = dict(zip(node.output, grouped.output, strict=True))
            names = tuple((name, renamed[identifier]) for name, identifier in names)
            if tree.args.get("limit") is not None or tree.args.get("offset") is not None:
                positions = {to_sql(value): renamed[identifier] for identifier, value in made}
                order = [self._order_of_distinct(part, positions, scope) for part in order]
                return Built(self._limited(tree, grouped, scope, order or [exp.Literal.number(1)]), names)
            return Built(grouped, names)
        if tree.args.get("limit") is None and tree.args.get("offset") is None:
            return Built(Project(node, tuple(made), _with_nulls(subqueries)), names)
        ordered: list[exp.Expression] = []
        for part in order:
            assert isinstance(part, exp.Ordered)
            converted = self._expression(part.this, scope, ctes, subqueries)
            known = next((identifier for identifier, value in made if value == converted), None)
            if known is None:
                known = self.identifier("order")
                made.append((known, converted))
            again = part.copy()
            again.set("this", column(known))
            ordered.append(again)
        node = Limit(
            Project(node, tuple(made), _with_nulls(subqueries)),
            tuple(ordered),
            tree.args["limit"].expression.copy() if tree.args.get("limit") is not None else None,
            tree.args["offset"].expression.copy() if tree.args.get("offset") is not None else None,
        )
        return Built(node, names)

    def _order_of_distinct(
        self, part: exp.Expression, positions: Mapping[str, str], scope: Scope
    ) -> exp.Expression:
        converted = self._plain_expression(part, scope)
        found = positions.get(to_sql(converted.this))
        if found is None:
            raise CannotPlan("unsupported", "an order of DISTINCT rows by what is not selected")
        converted.set("this", column(found))
        return converted

    def _order(self, tree: exp.Select) -> list[exp.Expression]:
        """ORDER BY with the names of selected columns replaced by what they are."""
        if tree.args.get("order") is None:
            return []
        selected = {part.alias_or_name.lower(): _unaliased(part) for part in tree.expressions}

        def resolve(node: exp.Expression) -> exp.Expression:
            if isinstance(node, exp.Column) and not node.table:
                if node.name.lower() not in selected:
                    raise CannotPlan("not-resolved", f"ORDER BY {node.name}", line=line_of(node))
                return selected[node.name.lower()].copy()
            return node

        return [part.copy().transform(resolve) for part in tree.args["order"].expressions]

    # FROM

    def _from(self, tree: exp.Select, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        from_ = tree.args.get("from_") or tree.args.get("from")
        if from_ is None:
            return Values("SELECT 1 AS `_one`", ("_one",))
        node = self._relation(from_.this, ctes, scope)
        for join in tree.args.get("joins") or []:
            node = self._join(node, join, ctes, scope)
        for lateral in tree.args.get("laterals") or []:
            node = self._lateral(node, lateral, scope)
        return node

    def _relation(self, tree: exp.Expression, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        if (
            tree.args.get("sample")
            or tree.args.get("pivots")
            or tree.args.get("when")
            or tree.args.get("version")
        ):
            raise CannotPlan("unsupported", "TABLESAMPLE, PIVOT or a version of a table", line=line_of(tree))
        if isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            node = self._table(tree, ctes, scope)
        elif isinstance(tree, exp.Subquery):
            # No outer scope: without LATERAL, a derived table is not correlated here.
            built = self._query(tree.this, ctes, None)
            node = self._named(built, tree.alias, [part.name for part in _alias_columns(tree)], scope)
        elif isinstance(tree, exp.Values):
            names = [part.name for part in _alias_columns(tree)]
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
            raise CannotPlan("unsupported", f"{tree.key.upper()} in FROM", line=line_of(tree))
        for join in tree.args.get("joins") or []:
            node = self._join(node, join, ctes, scope)
        return node

    def _table(self, tree: exp.Table, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        name = dotted(tree).lower()
        alias = tree.alias_or_name
        cte = ctes.get(name)
        if cte is not None:
            # No outer scope: a common table expression is not correlated.
            built = self._query(cte.query, cte.ctes, None)
            return self._named(built, alias, list(cte.columns), scope)
        columns = self.schemas.get(name)
        if name in self.views and columns is not None:
            built = self._query(self.views[name], {}, None)
            shown = [part.name for part in _alias_columns(tree)] or [column for column, _ in columns]
            return self._named(built, alias, shown, scope)
        if columns is None:
            raise CannotPlan("unknown-relation", f"{name} is not known", line=line_of(tree))
        renamed = [part.name for part in _alias_columns(tree)]
        stored = [column_name for column_name, _ in columns]
        made = tuple((self.identifier(f"{alias}_{column_name}"), column_name) for column_name in stored)
        self.types.update(zip((name for name, _ in made), (type_ for _, type_ in columns), strict=True))
        shown = renamed or stored
        scope.relations[alias.lower()] = {n.lower(): i for n, (i, _) in zip(shown, made, strict=True)}
        return Scan(name, alias, made)

    def _named(self, built: Built, alias: str, columns: list[str], scope: Scope) -> Node:
        shown = columns or [name for name, _ in built.names]
        scope.relations[alias.lower()] = {
            name.lower(): identifier for name, (_, identifier) in zip(shown, built.names, strict=True)
        }
        return built.node

    def _join(self, left: Node, join: exp.Join, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        if join.args.get("using") or join.method:
            raise CannotPlan("unsupported", f"{join.method or 'USING'} join", "write ON", line_of(join))
        if isinstance(join.this, exp.Lateral):
            raise CannotPlan("unsupported", "LATERAL subquery", line=line_of(join))
        kind = (join.kind or "").upper()
        side = (join.side or "").upper()
        hidden = Scope(outer=scope.outer) if kind in ("SEMI", "ANTI") else scope
        right = self._relation(join.this, ctes, hidden)
        both = Scope({**scope.relations, **hidden.relations}, scope.outer) if hidden is not scope else scope
        subqueries: list[Subquery] = []
        parts = conjuncts(join.args.get("on"))
        conditions = tuple(self._expression(part, both, ctes, subqueries) for part in parts)
        if subqueries:
            raise CannotPlan("unsupported", "a subquery in a join condition", line=line_of(join))
        if kind in ("SEMI", "ANTI"):
            reference: exp.Expression = SubqueryRef(this=0)
            if kind == "ANTI":
                reference = exp.Not(this=reference)
            return Filter(left, (reference,), (Subquery("exists", right, conditions),))
        if side not in ("", "LEFT", "RIGHT", "FULL"):
            raise CannotPlan("unsupported", f"{side} {kind} join", line=line_of(join))
        word: JoinKind = "inner" if side == "" else side.lower()  # type: ignore[assignment]
        return Join(left, right, word, conditions)

    def _lateral(self, node: Node, lateral: exp.Lateral, scope: Scope) -> Node:
        name = function_name(lateral.this)
        if not lateral.args.get("view") or name not in GENERATORS:
            raise CannotPlan("unsupported", "LATERAL", line=line_of(lateral))
        function = self._plain_expression(lateral.this, scope)
        alias = lateral.args["alias"]
        names = [part.name for part in alias.args.get("columns") or []]
        if not names:
            names = {"explode": ["col"], "posexplode": ["pos", "col"]}.get(name, [])
        if not names:
            raise CannotPlan("unsupported", f"{name} without column names", line=line_of(lateral))
        made = tuple(self.identifier(column_name) for column_name in names)
        scope.relations[alias.name.lower()] = {n.lower(): m for n, m in zip(names, made, strict=True)}
        return Generate(node, function, bool(lateral.args.get("outer")), made)

    # Conditions

    def _where(self, where: exp.Where | None, node: Node, scope: Scope, ctes: Mapping[str, Cte]) -> Node:
        return node if where is None else self._filtered(where.this, node, scope, ctes)

    def _filtered(self, condition: exp.Expression, node: Node, scope: Scope, ctes: Mapping[str, Cte]) -> Node:
        subqueries: list[Subquery] = []
        parts = tuple(self._expression(part, scope, ctes, subqueries) for part in conjuncts(condition))
        blind = {number for part in parts for number in _null_blind(part)}
        return Filter(node, parts, _with_nulls(subqueries, blind))

    # Groups

    def _grouped(
        self, tree: exp.Select, node: Node, scope: Scope, parts: list[exp.Expression]
    ) -> tuple[Node, Scope, list[exp.Expression]]:
        """The Aggregate, and the parts with group expressions and aggregates replaced by its output."""
        group = tree.args.get("group")
        written: list[exp.Expression] = []
        sets: tuple[tuple[int, ...], ...] | None = None
        if group is not None:
            written, sets = grouping(group, [_unaliased(part) for part in tree.expressions])
        groups = []
        for part in written:
            converted = self._plain_expression(part, scope)
            wish = part.name if isinstance(part, exp.Column) else "group"
            groups.append((self.identifier(wish or "group"), converted))
        by_text = {to_sql(part): name for part, (name, _) in zip(written, groups, strict=True)}
        aggregates: list[tuple[str, exp.Expression]] = []

        def lift(node_: exp.Expression) -> exp.Expression:
            if not isinstance(node_, exp.Ordered) and to_sql(node_) in by_text:
                return _lifted(by_text[to_sql(node_)])
            if isinstance(node_, exp.Window):
                # The function of a window is not an aggregate of the groups; its arguments may be.
                window = node_.copy()
                function = window.this
                for child in list(function.iter_expressions()):
                    child.replace(lift(child))
                for key in ("partition_by", "order"):
                    for child in _as_list(window.args.get(key)):
                        child.replace(lift(child))
                return window
            if _is_aggregate_call(node_):
                name = function_name(_core(node_))
                converted = self._plain_expression(node_, scope)
                if name in ("grouping", "grouping_id") and sets is None:
                    raise CannotPlan("unsupported", name or "", line=line_of(node_))
                known = next((key for key, value in aggregates if value == converted), None)
                if known is None:
                    known = self.identifier(name or "aggregate")
                    aggregates.append((known, converted))
                return _lifted(known)
            if isinstance(node_, exp.Query | exp.Subquery):
                return node_
            made = node_.copy()
            for child in list(made.iter_expressions()):
                child.replace(lift(child))
            return made

        rewritten = [lift(part) for part in parts]
        made = Aggregate(node, tuple(groups), tuple(aggregates), sets)
        # What is not lifted can only be of an outer query.
        inner = Scope({_LIFTED: {name.lower(): name for name in made.output}}, scope.outer, scope.linked)
        return made, inner, rewritten

    # Windows

    def _windows(
        self, node: Node, scope: Scope, values: list[exp.Expression], order: list[exp.Expression]
    ) -> tuple[Node, list[exp.Expression], list[exp.Expression]]:
        """A Window operator for each PARTITION BY; its functions replaced by their column."""
        found: dict[str, tuple[tuple[exp.Expression, ...], list[tuple[str, exp.Expression]]]] = {}
        known: dict[str, str] = {}

        def lift(node_: exp.Expression) -> exp.Expression:
            if isinstance(node_, exp.Window):
                text = to_sql(node_)
                if text not in known:
                    converted = self._plain_expression(node_, scope)
                    assert isinstance(converted, exp.Window)
                    if converted.args.get("alias"):
                        raise CannotPlan("unsupported", "a named window", line=line_of(node_))
                    partition = tuple(converted.args.get("partition_by") or ())
                    key = ", ".join(to_sql(part) for part in partition)
                    wish = function_name(_core(converted.this)) or "window"
                    known[text] = self.identifier(wish)
                    found.setdefault(key, (partition, []))[1].append((known[text], converted))
                return _lifted(known[text])
            if isinstance(node_, exp.Query | exp.Subquery):
                return node_
            made = node_.copy()
            for child in list(made.iter_expressions()):
                child.replace(lift(child))
            return made

        values, order = [lift(part) for part in values], [lift(part) for part in order]
        for partition, items in found.values():
            node = Window(node, partition, tuple(items))
        scope.relations.setdefault(_LIFTED, {}).update({name.lower(): name for name in known.values()})
        return node, values, order

    # Expressions

    def _plain_expression(self, tree: exp.Expression, scope: Scope) -> exp.Expression:
        """An expression in which no subquery may stand."""
        subqueries: list[Subquery] = []
        made = self._expression(tree, scope, {}, subqueries)
        if subqueries:
            raise CannotPlan("unsupported", "a subquery where only columns can stand", line=line_of(tree))
        return made

    def _expression(
        self,
        tree: exp.Expression,
        scope: Scope,
        ctes: Mapping[str, Cte],
        subqueries: list[Subquery],
    ) -> exp.Expression:
        if isinstance(tree, exp.Column):
            made_column = column(self._resolve(tree, scope))
            if line := line_of(tree):
                made_column.meta["line"] = line
            return made_column
        if isinstance(tree, exp.Exists):
            return self._reference(self._subquery("exists", tree.this, scope, ctes), subqueries)
        if isinstance(tree, exp.In) and tree.args.get("query") is not None:
            return self._in(tree, scope, ctes, subqueries, negated=False)
        if isinstance(tree, exp.Not) and isinstance(_unwrapped(tree.this), exp.In):
            inside = _unwrapped(tree.this)
            if inside.args.get("query") is not None:
                assert isinstance(inside, exp.In)
                return self._in(inside, scope, ctes, subqueries, negated=True)
        if isinstance(tree, exp.Subquery | exp.Query):
            return self._reference(self._subquery("scalar", tree, scope, ctes), subqueries)
        if isinstance(tree, exp.Any | exp.All):
            raise CannotPlan("unsupported", f"{tree.key.upper()} of a subquery", line=line_of(tree))
        made = tree.copy()
        for child, own in zip(list(made.iter_expressions()), list(tree.iter_expressions()), strict=True):
            child.replace(self._expression(own, scope, ctes, subqueries))
        return made

    def _resolve(self, tree: exp.Column, scope: Scope) -> str:
        found = scope.find(tree.table, tree.name)
        if found is not None:
            return found
        between, outer = [scope], scope.outer
        while outer is not None:
            found = outer.find(tree.table, tree.name)
            if found is not None:
                for inner in between:
                    inner.linked.add(found)
                return found
            between.append(outer)
            outer = outer.outer
        raise CannotPlan("not-resolved", f"the column {tree.sql()} could not be resolved", line=line_of(tree))

    def _reference(self, subquery: Subquery, subqueries: list[Subquery]) -> SubqueryRef:
        subqueries.append(subquery)
        return SubqueryRef(this=len(subqueries) - 1)

    def _in(
        self,
        tree: exp.In,
        scope: Scope,
        ctes: Mapping[str, Cte],
        subqueries: list[Subquery],
        negated: bool,
    ) -> exp.Expression:
        if isinstance(tree.this, exp.Tuple):
            raise CannotPlan("unsupported", "IN with several columns", "use EXISTS", line_of(tree))
        operand = self._expression(tree.this, scope, ctes, subqueries)
        made = self._subquery("in", tree.args["query"], scope, ctes)
        return self._reference(replace(made, operand=operand, negated=negated), subqueries)

    def _subquery(self, kind: str, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte]) -> Subquery:
        while isinstance(tree, exp.Subquery) and not (tree.args.get("limit") or tree.args.get("with_")):
            tree = tree.this
        if not _is_linked(tree, scope):
            built = self._query(tree, ctes, None)
            node = _picked(built)
            value = column(node.output[0]) if kind != "exists" else None
            return Subquery(kind, node, (), value)  # type: ignore[arg-type]
        return self._linked_subquery(kind, tree, scope, ctes)

    def _linked_subquery(
        self, kind: str, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte]
    ) -> Subquery:
        """A correlated subquery: its relations, its own conditions, and those that link it."""
        plain_select = isinstance(tree, exp.Select) and not any(
            tree.args.get(part) for part in ("having", "limit", "offset", "with_", "qualify", "laterals")
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
        node = self._from(tree, ctes, inner)
        if inner.linked:
            raise CannotPlan("correlated", "a join condition that names an outer query", line=line_of(tree))
        links: list[exp.Expression] = []
        where = tree.args.get("where")
        for part in conjuncts(where.this if where is not None else None):
            inner.linked.clear()
            subqueries: list[Subquery] = []
            converted = self._expression(part, inner, ctes, subqueries)
            if not inner.linked:
                node = Filter(node, (converted,), _with_nulls(subqueries, _null_blind(converted)))
            elif subqueries:
                raise CannotPlan("correlated", "a subquery in a correlated condition", line=line_of(part))
            else:
                links.append(converted)
        if kind == "exists":
            return Subquery("exists", node, tuple(links))
        item = _unaliased(tree.expressions[0])
        grouped = tree.args.get("group")
        inner.linked.clear()
        value = self._plain_expression(item, inner)
        if inner.linked or grouped is not None or (kind == "in" and _has_aggregate(item)):
            raise CannotPlan("correlated", "a correlated subquery with GROUP BY", line=line_of(tree))
        return Subquery(kind, node, tuple(links), value)  # type: ignore[arg-type]


def _null_blind(part: exp.Expression) -> set[int]:
    """The subqueries of a condition that stand where unknown is as good as false."""
    if isinstance(part, SubqueryRef):
        return {part.number}
    if isinstance(part, exp.And | exp.Or | exp.Paren):
        return {number for child in part.iter_expressions() for number in _null_blind(child)}
    return set()


def _with_nulls(subqueries: list[Subquery], blind: Collection[int] = ()) -> tuple[Subquery, ...]:
    """The subqueries, with a mark on each IN for which NULLs count."""
    return tuple(
        replace(one, nulls_count=one.negated or number not in blind) if one.kind == "in" else one
        for number, one in enumerate(subqueries)
    )


_LIFTED = "\0lifted"
"""The alias of columns that an operator of ours has made; no SQL can name it."""


def _lifted(name: str) -> exp.Column:
    return exp.Column(
        this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(_LIFTED, quoted=True)
    )


def _as_list(value: object) -> list[exp.Expression]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]  # type: ignore[list-item]


def _core(node: exp.Expression) -> exp.Expression:
    """The function inside FILTER and WITHIN GROUP."""
    while isinstance(node, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        node = node.this
    return node


def _is_aggregate_call(node: exp.Expression) -> bool:
    return is_aggregate(_core(node))


def _has_aggregate(tree: exp.Expression) -> bool:
    """Whether an aggregate of the SELECT's own groups stands in an expression."""
    if isinstance(tree, exp.Query | exp.Subquery):
        return False
    if isinstance(tree, exp.Window):
        inside = [*tree.this.iter_expressions(), *_as_list(tree.args.get("partition_by"))]
        inside += _as_list(tree.args.get("order"))
        return any(_has_aggregate(child) for child in inside)
    if _is_aggregate_call(tree):
        return True
    return any(_has_aggregate(child) for child in tree.iter_expressions())


def grouping(
    group: exp.Group, selected: list[exp.Expression]
) -> tuple[list[exp.Expression], tuple[tuple[int, ...], ...] | None]:
    """The group expressions, and the grouping sets where there are any.

    ``GROUP BY a, ROLLUP (b, c)`` has the sets (a, b, c), (a, b) and (a).
    """
    if group.args.get("all"):
        return [part for part in selected if not _has_aggregate(part)], None
    expressions: list[exp.Expression] = []

    def place(part: exp.Expression) -> int:
        part = _unwrapped(part)
        for position, known in enumerate(expressions):
            if known == part:
                return position
        expressions.append(part)
        return len(expressions) - 1

    def members(part: exp.Expression) -> tuple[int, ...]:
        if isinstance(part, exp.Tuple):
            return tuple(place(child) for child in part.expressions)
        return (place(part),)

    def sets_of(part: exp.Expression) -> list[tuple[int, ...]]:
        if isinstance(part, exp.Rollup):
            listed = [members(child) for child in part.expressions]
            return [_joined(listed[:count]) for count in range(len(listed), -1, -1)]
        if isinstance(part, exp.Cube):
            listed = [members(child) for child in part.expressions]
            chosen = reversed(range(2 ** len(listed)))
            return [_joined(one for bit, one in enumerate(listed) if mask >> bit & 1) for mask in chosen]
        if isinstance(part, exp.GroupingSets):
            return [one for child in part.expressions for one in sets_of(child)]
        return [members(part)]

    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    fixed = tuple(place(part) for part in group.expressions if not isinstance(part, several))
    factors = [sets_of(part) for part in group.expressions if isinstance(part, several)]
    for word in ("rollup", "cube", "grouping_sets"):
        for part in group.args.get(word) or []:
            if not part.expressions:
                # GROUP BY a, b WITH ROLLUP
                part = type(part)(expressions=[expressions[position].copy() for position in fixed])
            factors.append(sets_of(part))
            if set(fixed) <= {position for one in factors[-1] for position in one}:
                # GROUP BY a, b GROUPING SETS (...): the list before it only names the expressions.
                fixed = ()
    if not factors:
        return expressions, None
    combined: list[tuple[int, ...]] = [fixed]
    for factor in factors:
        combined = [tuple(dict.fromkeys((*known, *part))) for known in combined for part in factor]
    return expressions, tuple(combined)


def _joined(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(position for part in parts for position in part)


def _picked(built: Built) -> Node:
    """The node with the columns of the query, in order, and no others."""
    wanted = tuple(identifier for _, identifier in built.names)
    if built.node.output == wanted:
        return built.node
    return Project(built.node, tuple((identifier, column(identifier)) for identifier in wanted))


def _is_linked(tree: exp.Expression, scope: Scope) -> bool:
    """Whether a subquery names a relation of the query around it and not of its own."""
    own = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    own |= {sub.alias.lower() for sub in tree.find_all(exp.Subquery) if sub.alias}
    own |= {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    own |= {
        lateral.args["alias"].name.lower()
        for lateral in tree.find_all(exp.Lateral)
        if lateral.args.get("alias")
    }
    own |= {values.alias.lower() for values in tree.find_all(exp.Values) if values.alias}
    return any(found.table and found.table.lower() not in own for found in tree.find_all(exp.Column))


def _unaliased(part: exp.Expression) -> exp.Expression:
    return part.this if isinstance(part, exp.Alias) else part


def _unwrapped(part: exp.Expression) -> exp.Expression:
    while isinstance(part, exp.Paren):
        part = part.this
    return part


def _alias_columns(tree: exp.Expression) -> Iterable[exp.Identifier]:
    alias = tree.args.get("alias")
    return [] if alias is None or not isinstance(alias, exp.TableAlias) else alias.args.get("columns") or []


__all__ = ["Builder", "Built", "columns_of", "grouping"]
