"""Renders a tree of operators as readable SQL text.

Operators are folded into one SELECT if that does not change the meaning. The caller supplies the relation
that stands for an upstream at a given state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    State,
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import substitute
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.spark.identifiers import Identifiers

_LOOKUP_STATES: dict[State, State] = {"new": "lookup_new", "old": "lookup_old"}


class Sources(Protocol):
    """The relation that stands for an upstream at a state: a table's name, or a query in parentheses."""

    def relation(self, source: str, state: State) -> str:
        """SQL of a relation in a state."""


@dataclass(frozen=True)
class Select:
    """A SELECT under construction. ``items``: identifier to expression over the relations of FROM."""

    items: Mapping[str, exp.Expression]
    from_: str
    where: tuple[str, ...] = ()
    tail: str = ""
    """GROUP BY and the clauses after it. If it is set, no further operator can be folded in."""
    joined: bool = False
    """Whether ``from_`` is a join. As the right side of another join it needs its own SELECT."""
    lateral: bool = False
    """Whether ``from_`` ends with a LATERAL VIEW, which nothing can be joined to."""

    def text(self, columns: Sequence[str]) -> str:
        """The text of the SELECT with the given columns, in that order."""
        selected = ", ".join(_aliased(self.items[name], name) for name in columns) or "1 AS `_one`"
        where = "\nWHERE " + "\n  AND ".join(self.where) if self.where else ""
        return f"SELECT {selected}\nFROM {self.from_}{where}{self.tail}"


def _aliased(expression: exp.Expression, name: str) -> str:
    text = to_sql(expression)
    own = isinstance(expression, exp.Column) and expression.name == name
    return text if own else f"{text} AS {quoted(name)}"


def quoted(identifier: str) -> str:
    """An identifier in backticks."""
    return "`" + identifier.replace("`", "``") + "`"


def _of(alias: str, name: str) -> exp.Column:
    return exp.Column(
        this=exp.Identifier(this=name, quoted=True), table=exp.Identifier(this=alias, quoted=True)
    )


@dataclass
class Renderer:
    """Renders the trees of one statement. An alias stands for the same relation in all of them."""

    sources: Sources
    ranges: Ranges = field(default_factory=dict)
    """MIN and MAX of key columns that are never NULL, as literals. Spark skips files whose bounds exclude
    them."""
    _alias: Identifiers = field(default_factory=lambda: Identifiers("_"))

    def query(self, node: Node, columns: Sequence[str] | None = None) -> str:
        """The SELECT of a tree, with the given columns (default: all) in that order."""
        return self._select(node).text(node.output if columns is None else columns)

    # Folding

    def _select(self, node: Node) -> Select:
        match node:
            case Scan():
                return self._scan(node)
            case Values():
                return self._derived(node.sql, node.columns)
            case Project():
                return self._project(node)
            case Filter():
                return self._filter(node)
            case Join():
                return self._semi(node) if node.kind == "semi" else self._join(node)
            case KeySemiJoin():
                return self._restrict(node)
            case Aggregate():
                return self._aggregate(node)
            case Window():
                return self._window(node)
            case UnionAll():
                return self._union(node)
            case SetOperation():
                return self._set_operation(node)
            case Generate():
                return self._generate(node)
            case Limit():
                return self._limit(node)

    def _open(self, node: Node) -> Select:
        """A SELECT that can still take conditions."""
        made = self._select(node)
        return made if not made.tail else self._derived(made.text(node.output), node.output)

    def _side(self, node: Node) -> Select:
        """A SELECT that can be the side of a join."""
        made = self._select(node)
        return self._derived(made.text(node.output), node.output) if made.tail or made.lateral else made

    def _derived(self, text: str, columns: Sequence[str]) -> Select:
        alias = self._alias("_q")
        names = columns or ("_one",)
        return Select(
            {name: _of(alias, name) for name in names}, f"(\n{_indented(text)}\n) AS {quoted(alias)}"
        )

    def _scan(self, node: Scan) -> Select:
        alias = self._alias(node.alias)
        items: dict[str, exp.Expression] = {name: _of(alias, stored) for name, stored in node.columns}
        state = _LOOKUP_STATES[node.state] if node.lookup_keys else node.state
        return Select(items, f"{self.sources.relation(node.source, state)} AS {quoted(alias)}")

    def _project(self, node: Project) -> Select:
        if node.broadcast:
            text = self._select(replace(node, broadcast=False)).text(node.output)
            return self._derived(f"SELECT /*+ BROADCAST */{text.removeprefix('SELECT')}", node.output)
        below = self._select(node.child)
        if below.tail and any(_complex(expression) for _, expression in node.items):
            below = self._derived(below.text(node.child.output), node.child.output)
        if below.tail:
            # Renaming the output of a GROUP BY needs no SELECT around it.
            return replace(below, items={name: substitute(value, below.items) for name, value in node.items})
        items = {name: self._expression(value, below, node.subqueries) for name, value in node.items}
        made = replace(below, items=items)
        # Spark allows no subquery in GROUP BY, ON, a window or a LATERAL VIEW, so they read it as a column.
        return self._derived(made.text(node.output), node.output) if node.subqueries else made

    def _filter(self, node: Filter) -> Select:
        below = self._open(node.child)
        where = tuple(_condition(self._expression(part, below, node.subqueries)) for part in node.conditions)
        return replace(below, where=(*below.where, *where))

    def _join(self, node: Join) -> Select:
        left, right = self._side(node.left), self._side(node.right)
        # A condition of the null-supplying side is applied below the join. A computed column of that side is
        # computed there as well: it is NULL for an unmatched row, even if its expression maps NULL to a
        # value.
        if node.kind in ("right", "full") and (left.where or any(map(_complex, left.items.values()))):
            left = self._closed(node.left)
        null_side = node.kind in ("left", "full")
        if right.joined or (null_side and (right.where or any(map(_complex, right.items.values())))):
            right = self._closed(node.right)
        items = {**left.items, **right.items}
        on = " AND ".join(_condition(substitute(part, items)) for part in node.conditions)
        if not on and node.kind == "inner":
            text = f"{left.from_}\nCROSS JOIN {right.from_}"
        else:
            text = f"{left.from_}\n{node.kind.upper()} JOIN {right.from_}\n  ON {on or 'true'}"
        return Select(items, text, (*left.where, *right.where), joined=True)

    def _closed(self, node: Node) -> Select:
        return self._derived(self._select(node).text(node.output), node.output)

    def _semi(self, node: Join) -> Select:
        left, right = self._side(node.left), self._closed(node.right)
        both = {**left.items, **right.items}
        on = " AND ".join(_condition(substitute(part, both)) for part in node.conditions)
        text = f"{left.from_}\nLEFT SEMI JOIN {right.from_}\n  ON {on or 'true'}"
        return replace(left, from_=text, joined=True)

    def _restrict(self, node: KeySemiJoin) -> Select:
        left = self._side(node.child)
        keys = self._derived(self._select(node.keys).text(node.keys.output), node.keys.output)
        on = " AND ".join(
            f"{_operand(substitute(value, left.items))} <=> {to_sql(keys.items[name])}"
            for value, name in node.pairs
        )
        text = f"{left.from_}\nLEFT SEMI JOIN {keys.from_}\n  ON {on or 'true'}"
        between = tuple(
            self.ranges[name].holds(to_sql(substitute(value, left.items)))
            for value, name in node.pairs
            if isinstance(value, exp.Column) and name in self.ranges
        )
        return replace(left, from_=text, where=(*left.where, *between), joined=True)

    def _aggregate(self, node: Aggregate) -> Select:
        below = self._open(node.child)
        items = {name: self._expression(value, below, ()) for name, value in (*node.groups, *node.aggregates)}
        grouped = [to_sql(items[name]) for name, _ in node.groups]
        same = node.grouping_sets is not None and len(set(grouped)) < len(grouped)
        if same or any(_is_constant(items[name]) for name, _ in node.groups):
            # GROUP BY reads a number as a position, and grouping sets merge two equal groups into one.
            below = self._derived(
                Select(
                    {**below.items, **{name: items[name] for name, _ in node.groups}},
                    below.from_,
                    below.where,
                ).text([*node.child.output, *(name for name, _ in node.groups)]),
                [*node.child.output, *(name for name, _ in node.groups)],
            )
            items = {
                **{name: below.items[name] for name, _ in node.groups},
                **{name: self._expression(value, below, ()) for name, value in node.aggregates},
            }
            grouped = [to_sql(items[name]) for name, _ in node.groups]
        if node.grouping_sets is not None:
            sets = ", ".join(
                "(" + ", ".join(grouped[place] for place in places) + ")" for places in node.grouping_sets
            )
            # grouping_id() counts the expressions in the order in which they are listed.
            tail = f"\nGROUP BY {', '.join(grouped)} GROUPING SETS ({sets})"
        elif grouped:
            tail = "\nGROUP BY " + ", ".join(grouped)
        else:
            # A SELECT with an aggregate and no GROUP BY takes no further condition.
            tail = "\n"
        if not node.groups and not node.aggregates:
            items, tail = {}, "\nHAVING count(*) >= 0"
        return Select(items, below.from_, below.where, tail)

    def _window(self, node: Window) -> Select:
        below = self._open(node.child)
        items = {**below.items, **{name: substitute(value, below.items) for name, value in node.items}}
        # A condition above a window function must not move below it.
        made = Select(items, below.from_, below.where)
        return self._derived(made.text(node.output), node.output)

    def _union(self, node: UnionAll) -> Select:
        parts = []
        for child in node.children:
            made = self._select(child)
            if made.tail:
                # Otherwise a LIMIT would apply to the whole union.
                made = self._derived(made.text(child.output), child.output)
            pairs = zip(node.columns, child.output, strict=True)
            renamed = replace(made, items={name: made.items[old] for name, old in pairs})
            parts.append(renamed.text(node.columns))
        return self._derived("\nUNION ALL\n".join(parts), node.columns)

    def _set_operation(self, node: SetOperation) -> Select:
        left, right = (
            self._derived(self._select(child).text(child.output), child.output).from_
            for child in (node.left, node.right)
        )
        named = ", ".join(
            f"{quoted(old)} AS {quoted(new)}" for old, new in zip(node.left.output, node.columns, strict=True)
        )
        text = f"SELECT {named}\nFROM {left}\n{node.operator}\nSELECT *\nFROM {right}"
        return self._derived(text, node.columns)

    def _generate(self, node: Generate) -> Select:
        below = self._open(node.child)
        if below.where:
            # A LATERAL VIEW is evaluated before WHERE, which could then fail for rows that it was not written
            # for.
            below = self._closed(node.child)
        alias = self._alias("_g")
        outer = "OUTER " if node.outer else ""
        names = ", ".join(quoted(name) for name in node.columns)
        function = to_sql(substitute(node.function, below.items))
        items = {**below.items, **{name: _of(alias, name) for name in node.columns}}
        text = f"{below.from_}\nLATERAL VIEW {outer}{function} {quoted(alias)} AS {names}"
        return Select(items, text, joined=True, lateral=True)

    def _limit(self, node: Limit) -> Select:
        below = self._select(node.child)
        if below.tail:
            below = self._derived(below.text(node.child.output), node.child.output)
        placed = [substitute(part, below.items) for part in node.order]
        # ORDER BY reads a number as a position. A constant does not order anything, so it is left out.
        order = ", ".join(to_sql(part) for part in placed if not _is_number(part))
        tail = f"\nORDER BY {order}" if order else ""
        tail += f"\nLIMIT {to_sql(node.limit)}" if node.limit is not None else ""
        tail += f"\nOFFSET {to_sql(node.offset)}" if node.offset is not None else ""
        return replace(below, tail=tail)

    # Expressions

    def _expression(
        self, expression: exp.Expression, below: Select, subqueries: Sequence[Subquery]
    ) -> exp.Expression:
        made = substitute(expression, below.items)
        if not subqueries:
            return made

        def fill(node: exp.Expression) -> exp.Expression:
            if isinstance(node, SubqueryRef):
                return exp.Var(this=self._subquery(subqueries[node.number], below))
            return node

        return made.transform(fill, copy=False)

    def _subquery(self, subquery: Subquery, outer: Select) -> str:
        inner = self._open(subquery.plan)
        both = {**outer.items, **inner.items}
        where = tuple(_condition(substitute(part, both)) for part in subquery.correlation)
        inner = replace(inner, where=(*inner.where, *where))
        if subquery.kind == "exists":
            text = replace(inner, items={"_one": exp.Literal.number(1)}).text(["_one"])
            return f"EXISTS (\n{_indented(text)}\n)"
        assert subquery.value is not None
        value = {"_value": substitute(subquery.value, inner.items)}
        text = replace(inner, items=value).text(["_value"])
        if subquery.kind == "scalar":
            return f"(\n{_indented(text)}\n)"
        assert subquery.operand is not None
        word = "NOT IN" if subquery.negated else "IN"
        return f"{_operand(substitute(subquery.operand, outer.items))} {word} (\n{_indented(text)}\n)"


def _complex(expression: exp.Expression) -> bool:
    return not isinstance(expression, exp.Column)


def _is_constant(expression: exp.Expression) -> bool:
    return expression.find(exp.Column) is None


def _condition(expression: exp.Expression) -> str:
    text = to_sql(expression)
    return f"({text})" if isinstance(expression, exp.Or) else text


def _operand(expression: exp.Expression) -> str:
    text = to_sql(expression)
    return text if isinstance(expression, exp.Column | exp.Paren | exp.Literal) else f"({text})"


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _is_number(node: exp.Expr) -> bool:
    while isinstance(node, exp.Ordered | exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string
