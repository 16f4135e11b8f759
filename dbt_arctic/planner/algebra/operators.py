"""Relational operators: a query as a tree.

Every column has an identifier that is unique in the tree, so an expression needs no qualifier, and a
subtree can stand in another place, or beside itself at another version, and still mean the same.
Expressions are sqlglot's, with columns named by these identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

from sqlglot import exp

from dbt_arctic.planner.algebra.scalars import SAME_TYPE

State = Literal["new", "old", "minus", "plus", "changed", "signed", "keys", "lookup_new", "lookup_old"]
"""What a scan reads of its upstream: all rows now, all rows as last consumed, the rows of the old state
that changed since, those of the new state, both of these, both with ``SIGN_OF_ROW``, or their keys. Of
``new`` and ``old`` a statement may ask for those rows only that changed keys meet (``Scan.lookup_keys``)."""

OF_CHANGES: tuple[State, ...] = ("minus", "plus", "changed", "signed", "keys")
"""Those that have nothing but changed rows, or their keys."""


class KeyColumn(NamedTuple):
    """A column of an upstream's key, as stored."""

    source: str
    column: str


MetBy = frozenset[KeyColumn]
"""Upstreams, each with a column of its key: the values that changed rows have there, in either state."""

SIGN_OF_ROW = "_arctic_sign"
"""The column of changed rows that is 1 for those of the new state and -1 for those of the old one."""

JoinKind = Literal["inner", "left", "right", "full", "semi"]
SubqueryKind = Literal["exists", "in", "scalar"]


class SubqueryRef(exp.Expression):
    """The place of a subquery in an expression: the number of the subquery in its operator."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def number(self) -> int:
        return int(self.this)


@dataclass(frozen=True)
class Subquery:
    """A subquery of a condition or a select list.

    :param plan: what it reads, without its link to the outer row.
    :param correlation: conditions over the outer row's columns and those of ``plan``.
    :param value: ``in`` and ``scalar``: the value, over the columns of ``plan``.
    :param operand: ``in``: the outer value that is looked for.
    :param negated: ``NOT IN``.
    :param nulls_count: ``in``: where it stands, unknown is not as good as false, so that NULLs and an empty
        set count.
    """

    kind: SubqueryKind
    plan: Node
    correlation: tuple[exp.Expression, ...] = ()
    value: exp.Expression | None = None
    operand: exp.Expression | None = None
    negated: bool = False
    nulls_count: bool = False

    @property
    def links(self) -> tuple[exp.Expression, ...]:
        """What ties an outer row to the rows of ``plan`` that matter for it."""
        if self.kind != "in":
            return self.correlation
        assert self.operand is not None
        assert self.value is not None
        link = exp.EQ(this=_closed(self.operand), expression=_closed(self.value))
        link.meta[SAME_TYPE] = bool(self.operand.meta.get(SAME_TYPE))
        return (*self.correlation, link)


def _closed(expression: exp.Expression) -> exp.Expression:
    """An expression that may stand beside an operator."""
    alone = isinstance(expression, exp.Column | exp.Literal | exp.Paren)
    return expression.copy() if alone else exp.Paren(this=expression.copy())


@dataclass(frozen=True)
class Scan:
    """Rows of an upstream. ``columns``: identifier and stored name.

    :param lookup_keys: where it is not empty, only those rows are asked for whose first key column has one of
        these values. More rows do no harm.
    """

    source: str
    alias: str
    columns: tuple[tuple[str, str], ...]
    state: State = "new"
    lookup_keys: MetBy = frozenset()

    @property
    def output(self) -> tuple[str, ...]:
        return tuple(identifier for identifier, _ in self.columns)


@dataclass(frozen=True)
class Values:
    """Constant rows, as SQL text that produces ``columns`` under these names."""

    sql: str
    columns: tuple[str, ...]

    @property
    def output(self) -> tuple[str, ...]:
        return self.columns


@dataclass(frozen=True)
class Project:
    """Selects and computes columns.

    :param broadcast: whether there are so few rows that each task of a join gets them all.
    """

    child: Node
    items: tuple[tuple[str, exp.Expression], ...]
    subqueries: tuple[Subquery, ...] = ()
    broadcast: bool = False

    @property
    def output(self) -> tuple[str, ...]:
        return tuple(identifier for identifier, _ in self.items)


@dataclass(frozen=True)
class Filter:
    child: Node
    conditions: tuple[exp.Expression, ...]
    subqueries: tuple[Subquery, ...] = ()

    @property
    def output(self) -> tuple[str, ...]:
        return self.child.output


@dataclass(frozen=True)
class Join:
    left: Node
    right: Node
    kind: JoinKind
    conditions: tuple[exp.Expression, ...] = ()

    @property
    def output(self) -> tuple[str, ...]:
        return self.left.output if self.kind == "semi" else (*self.left.output, *self.right.output)


@dataclass(frozen=True)
class Restrict:
    """The rows of ``child`` whose ``pairs`` expressions equal (``<=>``) a row of ``keys``.

    :param pairs: an expression over the child's columns, and the column of ``keys`` to meet.
    """

    child: Node
    keys: Node
    pairs: tuple[tuple[exp.Expression, str], ...]

    @property
    def output(self) -> tuple[str, ...]:
        return self.child.output


@dataclass(frozen=True)
class Aggregate:
    """Groups and what is computed of them; without ``groups``, one row.

    :param grouping_sets: for each set, the positions in ``groups`` that it groups by.
    """

    child: Node
    groups: tuple[tuple[str, exp.Expression], ...]
    aggregates: tuple[tuple[str, exp.Expression], ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def items(self) -> tuple[tuple[str, exp.Expression], ...]:
        return (*self.groups, *self.aggregates)

    @property
    def output(self) -> tuple[str, ...]:
        return tuple(identifier for identifier, _ in self.items)


@dataclass(frozen=True)
class Window:
    """Window functions of one PARTITION BY; ``items`` are whole window expressions."""

    child: Node
    partition: tuple[exp.Expression, ...]
    items: tuple[tuple[str, exp.Expression], ...]

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.child.output, *(identifier for identifier, _ in self.items))


@dataclass(frozen=True)
class UnionAll:
    children: tuple[Node, ...]
    columns: tuple[str, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.children

    @property
    def output(self) -> tuple[str, ...]:
        return self.columns


@dataclass(frozen=True)
class SetOperation:
    """``INTERSECT`` and ``EXCEPT``, distinct or not."""

    left: Node
    right: Node
    operator: str
    columns: tuple[str, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def output(self) -> tuple[str, ...]:
        return self.columns


@dataclass(frozen=True)
class Generate:
    """``LATERAL VIEW``: for each row of the child the rows that a function makes of it."""

    child: Node
    function: exp.Expression
    outer: bool
    columns: tuple[str, ...]

    @property
    def output(self) -> tuple[str, ...]:
        return (*self.child.output, *self.columns)


@dataclass(frozen=True)
class Limit:
    """The first rows of an order."""

    child: Node
    order: tuple[exp.Expression, ...]
    limit: exp.Expression | None
    offset: exp.Expression | None

    @property
    def output(self) -> tuple[str, ...]:
        return self.child.output


Node = (
    Scan
    | Values
    | Project
    | Filter
    | Join
    | Restrict
    | Aggregate
    | Window
    | UnionAll
    | SetOperation
    | Generate
    | Limit
)


def children(node: Any) -> tuple[Node, ...]:
    """The inputs of an operator; the plans of its subqueries come last."""
    found: list[Node] = []
    for attribute in ("child", "left", "right", "keys"):
        if hasattr(node, attribute):
            found.append(getattr(node, attribute))
    found.extend(getattr(node, "children", ()))
    found.extend(subquery.plan for subquery in getattr(node, "subqueries", ()))
    return tuple(found)


def walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from walk(child)


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same operator over changed inputs, those of its subqueries included."""
    changed: dict[str, Any] = {}
    for entry in fields(node):
        value = getattr(node, entry.name)
        if entry.name in ("child", "left", "right", "keys"):
            changed[entry.name] = change(value)
        elif entry.name == "children":
            changed[entry.name] = tuple(change(child) for child in value)
        elif entry.name == "subqueries":
            changed[entry.name] = tuple(replace(subquery, plan=change(subquery.plan)) for subquery in value)
    return replace(node, **changed) if changed else node


def at(node: Node, state: State) -> Node:
    """The same query over another state of every upstream."""
    if isinstance(node, Scan):
        return replace(node, state=state)
    return map_children(node, lambda child: at(child, state))


def scans(node: Node) -> tuple[Scan, ...]:
    return tuple(found for found in walk(node) if isinstance(found, Scan))
