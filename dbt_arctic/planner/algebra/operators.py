"""Relational operators: a query as a tree.

Each column has an identifier that is unique in the tree. So expressions need no qualifiers, and a subtree
keeps its meaning when it is moved, or repeated over another version of its upstreams. Expressions are
sqlglot's, with columns named by these identifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, NamedTuple

from sqlglot import exp

from dbt_arctic.planner.algebra.scalars import SAME_TYPE

State = Literal["new", "old", "minus", "plus", "changed", "weighted", "keys", "lookup_new", "lookup_old"]
"""What a scan reads of its upstream: all rows now (``new``), all rows at the consumed version (``old``), the
changed rows of the old state (``minus``), those of the new state (``plus``), both (``changed``), both with
``SIGN_OF_ROW`` (``weighted``), or their keys (``keys``). ``lookup_new`` and ``lookup_old`` are the rows of
``new`` and ``old`` that can join changed keys (``Scan.lookup_keys``)."""

OF_CHANGES: tuple[State, ...] = ("minus", "plus", "changed", "weighted", "keys")
"""States that contain only changed rows, or their keys."""


class KeyColumn(NamedTuple):
    """A column of an upstream's key, by its stored name."""

    source: str
    column: str


class ScannedColumn(NamedTuple):
    """A column that a scan reads: the identifier that the query gives it, and its stored name."""

    identifier: str
    name: str


LookupKeys = frozenset[KeyColumn]
"""Key columns of upstreams. They stand for the values that changed rows have there, in the old or the new
state."""

SIGN_OF_ROW = "_arctic_sign"
"""The weight of a changed row: a column that is 1 for rows of the new state and -1 for rows of the old one.
"""

JoinKind = Literal["inner", "left", "right", "full", "semi"]
SubqueryKind = Literal["exists", "in", "scalar"]


class SubqueryRef(exp.Expression):
    """A placeholder for a subquery in an expression: the number of the subquery in its operator."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}

    @property
    def number(self) -> int:
        """The position of the subquery in its operator's ``subqueries``."""
        return int(self.this)


@dataclass(frozen=True)
class Subquery:
    """A subquery of a condition or a select list.

    :param plan: the query without its correlation to the outer row.
    :param correlation: conditions over the columns of the outer row and those of ``plan``.
    :param value: for ``in`` and ``scalar``: the selected value, over the columns of ``plan``.
    :param operand: for ``in``: the outer expression on its left side.
    :param negated: whether it is ``NOT IN``.
    :param nulls_count: for ``in``: whether unknown differs from false in its place, so that NULLs and an
        empty set matter.
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
        """The conditions that link an outer row to the rows of ``plan`` that it depends on."""
        if self.kind != "in":
            return self.correlation
        assert self.operand is not None
        assert self.value is not None
        link = exp.EQ(this=_closed(self.operand), expression=_closed(self.value))
        link.meta[SAME_TYPE] = bool(self.operand.meta.get(SAME_TYPE))
        return (*self.correlation, link)


def _closed(expression: exp.Expression) -> exp.Expression:
    """An expression as the operand of an operator, in parentheses if it needs them."""
    alone = isinstance(expression, exp.Column | exp.Literal | exp.Paren)
    return expression.copy() if alone else exp.Paren(this=expression.copy())


@dataclass(frozen=True)
class Scan:
    """The rows of an upstream.

    :param lookup_keys: if not empty, only rows whose first key column has one of these values are needed.
        Additional rows do not change the result.
    """

    source: str
    alias: str
    columns: tuple[ScannedColumn, ...]
    state: State = "new"
    lookup_keys: LookupKeys = frozenset()

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return tuple(one.identifier for one in self.columns)

    @property
    def stored(self) -> dict[str, str]:
        """The stored names of the columns, by identifier."""
        return {one.identifier: one.name for one in self.columns}


def own_names(names: Iterable[str]) -> tuple[ScannedColumn, ...]:
    """Scanned columns whose identifiers are their stored names."""
    return tuple(ScannedColumn(name, name) for name in names)


@dataclass(frozen=True)
class Values:
    """Constant rows, as SQL text that produces ``columns`` under these names."""

    sql: str
    columns: tuple[str, ...]

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.columns


@dataclass(frozen=True)
class Project:
    """Selects and computes columns.

    :param broadcast: whether there are so few rows that a join should broadcast them to each task.
    """

    child: Node
    items: tuple[tuple[str, exp.Expression], ...]
    subqueries: tuple[Subquery, ...] = ()
    broadcast: bool = False

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return tuple(identifier for identifier, _ in self.items)


@dataclass(frozen=True)
class Filter:
    """The rows of ``child`` that satisfy all ``conditions``."""

    child: Node
    conditions: tuple[exp.Expression, ...]
    subqueries: tuple[Subquery, ...] = ()

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.child.output


@dataclass(frozen=True)
class Join:
    """A join of two inputs. A semi-join outputs the columns of ``left`` only."""

    left: Node
    right: Node
    kind: JoinKind
    conditions: tuple[exp.Expression, ...] = ()

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.left.output if self.kind == "semi" else (*self.left.output, *self.right.output)


@dataclass(frozen=True)
class KeySemiJoin:
    """The rows of ``child`` whose expressions in ``pairs`` equal a row of ``keys`` (null-safe, ``<=>``).

    :param pairs: an expression over the child's columns, and the column of ``keys`` that it is compared with.
    """

    child: Node
    keys: Node
    pairs: tuple[tuple[exp.Expression, str], ...]

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.child.output


@dataclass(frozen=True)
class Aggregate:
    """Groups with their aggregates; one row if ``groups`` is empty.

    :param grouping_sets: for each set, the positions in ``groups`` of its columns.
    """

    child: Node
    groups: tuple[tuple[str, exp.Expression], ...]
    aggregates: tuple[tuple[str, exp.Expression], ...] = ()
    grouping_sets: tuple[tuple[int, ...], ...] | None = None

    @property
    def items(self) -> tuple[tuple[str, exp.Expression], ...]:
        """The groups and the aggregates, each with its identifier."""
        return (*self.groups, *self.aggregates)

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return tuple(identifier for identifier, _ in self.items)


@dataclass(frozen=True)
class Window:
    """Window functions with the same PARTITION BY; ``items`` are complete window expressions."""

    child: Node
    partition: tuple[exp.Expression, ...]
    items: tuple[tuple[str, exp.Expression], ...]

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return (*self.child.output, *(identifier for identifier, _ in self.items))


@dataclass(frozen=True)
class UnionAll:
    """``UNION ALL``: the columns of the children are matched by position and named ``columns``."""

    children: tuple[Node, ...]
    columns: tuple[str, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """The inputs, in order."""
        return self.children

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.columns


@dataclass(frozen=True)
class SetOperation:
    """``INTERSECT`` and ``EXCEPT``, with ``DISTINCT`` or ``ALL``."""

    left: Node
    right: Node
    operator: str
    columns: tuple[str, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        """The inputs, in order."""
        return (self.left, self.right)

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.columns


@dataclass(frozen=True)
class Generate:
    """``LATERAL VIEW``: each row of the child, with each row that a generator function returns for it."""

    child: Node
    function: exp.Expression
    outer: bool
    columns: tuple[str, ...]

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return (*self.child.output, *self.columns)


@dataclass(frozen=True)
class Limit:
    """``ORDER BY`` with ``LIMIT`` and ``OFFSET``."""

    child: Node
    order: tuple[exp.Expression, ...]
    limit: exp.Expression | None
    offset: exp.Expression | None

    @property
    def output(self) -> tuple[str, ...]:
        """The identifiers of the columns, in order."""
        return self.child.output


Node = (
    Scan
    | Values
    | Project
    | Filter
    | Join
    | KeySemiJoin
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
    """The operators of a tree, each before its inputs."""
    yield node
    for child in children(node):
        yield from walk(child)


def map_children(node: Node, change: Callable[[Node], Node]) -> Node:
    """The same operator over changed inputs, including the plans of its subqueries."""
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
    """The same query over another state of each upstream."""
    if isinstance(node, Scan):
        return replace(node, state=state)
    return map_children(node, lambda child: at(child, state))


def scans(node: Node) -> tuple[Scan, ...]:
    """The scans of a tree, in the order of ``walk``."""
    return tuple(found for found in walk(node) if isinstance(found, Scan))
