"""What a query's result gains and loses, exactly: rows with a sign.

Unlike ``touched``, which may name rows that did not change, the rows here are such that the old result,
without those of sign -1 and with those of sign 1, is the new one, each as often as it is there. So sums and
counts over a result follow from them alone, whatever the size of the rest.

Filters, projections, unions and inner joins pass changes on. Below anything else the old and the new rows
of the touched values are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import singledispatch

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    SIGN_OF_ROW,
    Aggregate,
    Filter,
    Generate,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    State,
    Subquery,
    SubqueryRef,
    UnionAll,
    Window,
    column,
    columns_of,
    equalities,
    plain,
    scans,
)
from dbt_arctic.planner.confined import confined
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.moment import before
from dbt_arctic.planner.near import near
from dbt_arctic.planner.restricted import restricted
from dbt_arctic.planner.rules.condition import moved
from dbt_arctic.planner.touched import Wanted, touched, union_of
from dbt_arctic.planner.unique import unique_keys

SIGN = "_sign"
"""1: a row that the result has gained; -1: one that it has lost."""

_FEW = 2_000_000
"""Changed rows, or what they are joined to, that are sent to each task: the other side is not sorted."""
_SMALL = 100_000
"""Rows of a table that Spark itself sends to each task."""

_CHANGED: tuple[State, State] = ("minus", "plus")

Signed = tuple[Node, ...]
"""Parts to be put together; each has the wanted columns and ``SIGN``."""


class NotSigned(Exception):
    """No rows are known to which a change could be confined."""


class Inline:
    """Touched values where they are needed, each time anew."""

    def keys(self, rows: Node, names: Wanted) -> Node:
        """A relation with the touched values of some columns, in their order and each once.

        :param rows: has these columns, and values in any number.
        """
        return Aggregate(rows, tuple((name, column(name)) for name in names))


def signed(node: Node, wanted: Wanted, facts: Facts, values: Inline | None = None) -> Signed:
    """What changed of the columns ``wanted`` of a query.

    :param values: what becomes of touched values.
    :raises NotSigned: nothing but the whole query, twice, would tell.
    """
    return signed_rule(node, wanted, facts, values or Inline()) if facts.changed(node) else ()


@singledispatch
def signed_rule(node: Node, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    return _compared(node, wanted, facts, values)


@signed_rule.register
def _scan(node: Scan, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    used = tuple((name, stored) for name, stored in node.columns if name in wanted)
    if facts.of(node).signed:
        rows = replace(node, columns=(*used, (SIGN, SIGN_OF_ROW)), state="signed")
        return (_only(rows, wanted),)
    lost, gained = (replace(node, columns=used, state=state) for state in _CHANGED)
    return (UnionAll((_with_sign(lost, wanted, -1), _with_sign(gained, wanted, 1)), (*wanted, SIGN)),)


@signed_rule.register
def _project(node: Project, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    if _linked(node.subqueries, facts):
        return _compared(node, wanted, facts, values)
    items = dict(node.items)
    kept = tuple((name, items[name]) for name in wanted)
    used = _below(node.child, columns_of(*(value for _, value in kept)) | _outer(node.subqueries))
    subqueries = node.subqueries if any(value.find(SubqueryRef) for _, value in kept) else ()
    return tuple(
        Project(rows, (*kept, (SIGN, column(SIGN))), subqueries)
        for rows in signed(node.child, used, facts, values)
    )


@signed_rule.register
def _filter(node: Filter, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    if _linked(node.subqueries, facts):
        return _compared(node, wanted, facts, values)
    used = _below(node.child, columns_of(*node.conditions) | _outer(node.subqueries) | set(wanted))
    # Of what changed, the conditions of last time; and what time moves, of the rows as they are.
    earlier = tuple(before(part) for part in node.conditions)
    found = tuple(
        _only(Filter(rows, earlier, node.subqueries), wanted)
        for rows in signed(node.child, used, facts, values)
    )
    gone_and_come = moved(node)
    if gone_and_come is not None:
        found += tuple(
            _with_sign(rows, wanted, sign) for rows, sign in zip(gone_and_come, (-1, 1), strict=True)
        )
    return found


@signed_rule.register
def _join(node: Join, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    """Each changed relation's changes with the others: those before it as they are, those after it as they
    were. Joined from the changes on, so that what is read of the others is what they meet.
    """
    if node.kind != "inner":
        return _compared(node, wanted, facts, values)
    relations, conditions = _flattened(node)
    # What is large comes first, and so is read as it is: of what was, more tables have to be read.
    relations.sort(key=lambda one: -_size(one, facts))
    used = columns_of(*conditions) | set(wanted)
    found: list[Node] = []
    for place, relation in enumerate(relations):
        others = [*relations[:place], *(facts.before(one) for one in relations[place + 1 :])]
        for rows in signed(relation, _below(relation, used), facts, values):
            found.append(_only(_joined(rows, relation, others, conditions, wanted, facts), wanted))
    return tuple(found)


def _flattened(node: Node) -> tuple[list[Node], list[exp.Expression]]:
    """The relations of nested inner joins, and all conditions."""
    if not isinstance(node, Join) or node.kind != "inner":
        return [node], []
    left, above = _flattened(node.left)
    right, beside = _flattened(node.right)
    return [*left, *right], [*above, *beside, *node.conditions]


def _joined(
    rows: Node,
    relation: Node,
    others: Sequence[Node],
    conditions: Sequence[exp.Expression],
    wanted: Wanted,
    facts: Facts,
) -> Node:
    """A relation's changes with all others, each where a condition links it to those before it; first those
    of which few are met.
    """
    made, left, open_, reached = rows, list(others), list(conditions), [relation]
    count = _changed_rows(relation, facts)
    while left:
        reach = set(made.output)
        met = {theirs for mine, theirs in equalities(open_) if mine in reach}
        linked = [one for one in left if met & set(one.output)]
        picked = min(linked or left, key=lambda one: (_fans_out(one, met, facts), _rows(one, facts)))
        left = [one for one in left if one is not picked]
        both = reach | set(picked.output)
        ready = [part for part in open_ if columns_of(part) <= both]
        if _is_sent(count, picked, facts):
            needed = columns_of(*open_) | {*wanted, SIGN}
            items = tuple((name, column(name)) for name in made.output if name in needed)
            made = Project(made, items, broadcast=True)
        open_ = [part for part in open_ if not columns_of(part) <= both]
        same = {mine: theirs for mine, theirs in equalities(ready) if theirs in picked.output}
        made = Join(made, near(picked, made, same, facts), "inner", tuple(ready))
        count = _met_rows(count, picked, same, reached, facts)
        reached.append(picked)
    return Filter(made, tuple(open_)) if open_ else made


def _changed_rows(relation: Node, facts: Facts) -> float:
    counts = [facts.of(scan).changed_rows for scan in scans(relation) if facts.changed(scan)]
    return sum(counts) if counts and min(counts) >= 0 else math.inf


def _is_sent(count: float, other: Node, facts: Facts) -> bool:
    """Whether rows are known to be few beside those that they are joined with. Spark would take changes, and
    what they meet, for as many as their tables have rows; and would sort a large table for a few of them.
    """
    rows = _rows(other, facts)
    return count <= _FEW and not 0 < rows <= min(count, _SMALL)


def _met_rows(
    count: float, picked: Node, same: Mapping[str, str], reached: Sequence[Node], facts: Facts
) -> float:
    """About how many rows a join has of so many: as many rows of a table meet one of another table's key as
    there are on average.
    """
    if any(key <= set(same.values()) for key in unique_keys(picked, facts)):
        return count
    rows = _rows(picked, facts)
    for one in reached:
        owner = _rows(one, facts)
        if rows and owner and any(key <= same.keys() for key in unique_keys(one, facts)):
            return count * max(1.0, rows / owner)
    return math.inf


def _fans_out(node: Node, met: frozenset[str] | set[str], facts: Facts) -> int:
    """How many rows of a relation one row can meet by the columns ``met``.

    0 where it is one; 1 where they are a part of a key, and so few, as the lines of an order; 2 where nothing
    is known: hundreds of suppliers have the nation of a customer.
    """
    keys = unique_keys(node, facts)
    if any(key <= met for key in keys):
        return 0
    return 1 if any(key & met for key in keys) else 2


def _rows(node: Node, facts: Facts) -> int:
    return sum(facts.of(scan).rows for scan in scans(node))


@signed_rule.register
def _union(node: UnionAll, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    found: list[Node] = []
    for child in node.children:
        names = dict(zip(node.columns, child.output, strict=True))
        used = tuple(dict.fromkeys(names[name] for name in wanted))
        items = (*((name, column(names[name])) for name in wanted), (SIGN, column(SIGN)))
        found += (Project(rows, items) for rows in signed(child, used, facts, values))
    return tuple(found)


@signed_rule.register
def _generate(node: Generate, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    used = _below(node.child, columns_of(node.function) | set(wanted))
    return tuple(_only(replace(node, child=rows), wanted) for rows in signed(node.child, used, facts, values))


# What does not pass changes on


def _compared(node: Node, wanted: Wanted, facts: Facts, values: Inline) -> Signed:
    """The old and the new rows of those values that a change can have touched."""
    whole, names = _showing(node, _confining(node, facts))
    if not names:
        raise NotSigned
    found = touched(whole, names, facts).both()
    if not found:
        return ()
    keys = values.keys(confined(union_of(found, names), whole, facts), names)
    pairs = tuple((column(name), key) for name, key in zip(names, keys.output, strict=True))
    return (
        UnionAll(
            (
                _with_sign(restricted(facts.before(whole), pairs, keys), wanted, -1),
                _with_sign(restricted(whole, pairs, keys), wanted, 1),
            ),
            (*wanted, SIGN),
        ),
    )


def _confining(node: Node, facts: Facts) -> Wanted:
    """Columns of an operator, or of its input, by whose values a change can be confined."""
    match node:
        case Aggregate():
            return tuple(name for name, _ in node.groups)
        case Window():
            return tuple(name for part in node.partition if (name := plain(part)) is not None)
        case SetOperation():
            return node.output
        case Join():
            side = node.right if node.kind == "right" else node.left
            return tuple(dict.fromkeys(a for a, _ in equalities(node.conditions) if a in side.output))
        case Filter() | Project():
            links = [link for subquery in _linked(node.subqueries, facts) for link in subquery.links]
            mine = set(node.child.output)
            return tuple(dict.fromkeys(a for a, b in equalities(links) if a in mine and b not in mine))
        case _:
            return ()


def _showing(node: Node, names: Wanted) -> tuple[Node, Wanted]:
    """The operator with these columns in its output."""
    missing = [name for name in names if name not in node.output]
    if not missing:
        return node, names
    if isinstance(node, Project):
        return replace(node, items=(*node.items, *((name, column(name)) for name in missing))), names
    return node, tuple(name for name in names if name in node.output)


def _linked(subqueries: tuple[Subquery, ...], facts: Facts) -> list[Subquery]:
    """Subqueries whose value can change for one row and not for another. The rest is guarded as a whole."""
    return [one for one in subqueries if one.links and facts.changed(one.plan)]


def _outer(subqueries: tuple[Subquery, ...]) -> frozenset[str]:
    return frozenset(
        name for one in subqueries for name in columns_of(*one.links) if name not in one.plan.output
    )


def _below(node: Node, used: frozenset[str] | set[str]) -> Wanted:
    return tuple(name for name in node.output if name in used)


def _only(node: Node, wanted: Wanted) -> Node:
    return Project(node, tuple((name, column(name)) for name in (*wanted, SIGN)))


def _with_sign(node: Node, wanted: Wanted, sign: int) -> Node:
    value: exp.Expression = exp.Literal.number(abs(sign))
    items = tuple((name, column(name)) for name in wanted)
    return Project(node, (*items, (SIGN, exp.Neg(this=value) if sign < 0 else value)))


def _size(node: Node, facts: Facts) -> int:
    return sum(facts.of(scan).rows for scan in scans(node) if facts.changed(scan))


__all__ = ["SIGN", "Inline", "NotSigned", "Signed", "signed"]
