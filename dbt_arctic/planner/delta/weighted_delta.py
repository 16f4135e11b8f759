"""Delta propagation: the exact change of a query's result, as rows with a weight.

The affected keys may include rows that did not change. The delta is exact, with multiplicities: the old
result minus the rows of weight -1 plus the rows of weight 1 is the new result (Blakeley et al. 1986, Gupta,
Mumick and Subrahmanian 1993, with duplicates: Griffin and Libkin 1995). So sums and counts over a result can
be maintained from its delta alone, whatever its size.

Filters, projections, unions and inner joins propagate deltas. For other operators, the old and new rows of
the affected values are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    SIGN_OF_ROW,
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    ScannedColumn,
    SetOperation,
    State,
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
    scans,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities, plain
from dbt_arctic.planner.delta.affected_keys import Wanted, affected_rows, union_of
from dbt_arctic.planner.delta.join_order import (
    NONE,
    Chain,
    changed_rows,
    flattened,
    joined,
    matches_few_rows,
)
from dbt_arctic.planner.delta.restriction import restricted
from dbt_arctic.planner.delta.rules.condition import rows_changed_by_time
from dbt_arctic.planner.delta.semi_join_reduction import semi_join_reduced
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, differs
from dbt_arctic.planner.properties.facts import Facts

SIGN = "_sign"
"""The weight of a row. 1: the result gained the row; -1: the result lost it."""

_CHANGED: tuple[State, State] = ("minus", "plus")

WeightedRows = tuple[Node, ...]
"""The parts of a delta, to be combined by UNION ALL. Each has the wanted columns and ``SIGN``."""


class NoDelta(Exception):
    """Raised if no columns limit a change to some rows of an operator."""


class Inline:
    """Computes affected values in place, each time that they are used."""

    def keys(self, rows: Node, names: Wanted) -> Node:
        """A relation with the affected values of some columns, in their order and each once.

        :param rows: has these columns, with any number of duplicates.
        """
        return Aggregate(rows, tuple((name, column(name)) for name in names))


def weighted_rows(node: Node, wanted: Wanted, facts: Facts, values: Inline | None = None) -> WeightedRows:
    """The delta of a query for the columns ``wanted``.

    :param values: how affected values are computed; in place by default.

    :raises NoDelta: only a comparison of the whole result in both states would find the change.
    """
    return delta_rule(node, wanted, facts, values or Inline()) if facts.changed(node) else ()


@singledispatch
def delta_rule(node: Node, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    """The rule for an operator."""
    raise NotImplementedError(f"no rule for {type(node).__name__}")


@delta_rule.register(Aggregate)
@delta_rule.register(Window)
@delta_rule.register(SetOperation)
@delta_rule.register(Limit)
@delta_rule.register(KeySemiJoin)
@delta_rule.register(Values)
def _by_comparison(node: Node, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    rows = _compared(node, wanted, facts, values)
    return conservative(rows, "one changed row can change many rows: all rows of its values are compared")


@delta_rule.register
def _scan(node: Scan, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    used = tuple(one for one in node.columns if one.identifier in wanted)
    if facts.of(node).has_weights:
        rows = replace(node, columns=(*used, ScannedColumn(SIGN, SIGN_OF_ROW)), state="weighted")
        return (_only(rows, wanted),)
    lost, gained = (replace(node, columns=used, state=state) for state in _CHANGED)
    return (UnionAll((_with_sign(lost, wanted, -1), _with_sign(gained, wanted, 1)), (*wanted, SIGN)),)


@delta_rule.register
def _project(node: Project, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    if _linked(node.subqueries, facts):
        return _compared(node, wanted, facts, values)
    items = dict(node.items)
    kept = tuple((name, items[name]) for name in wanted)
    used = _below(node.child, columns_of(*(value for _, value in kept)) | _outer(node.subqueries))
    subqueries = node.subqueries if any(value.find(SubqueryRef) for _, value in kept) else ()
    # Changed rows have the values at the last refresh. A later step replaces those of unchanged rows.
    earlier = tuple((name, at_last_refresh(value)) for name, value in kept)
    found: list[Node] = [
        Project(rows, (*earlier, (SIGN, column(SIGN))), subqueries)
        for rows in weighted_rows(node.child, used, facts, values)
    ]
    other = differs([value for _, value in kept])
    if other is not None:
        moved_rows = Filter(node.child, (other,))
        for shown, sign in ((earlier, -1), (kept, 1)):
            found.append(_with_sign(Project(moved_rows, shown, subqueries), wanted, sign))
    return tuple(found)


@delta_rule.register
def _filter(node: Filter, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    if _linked(node.subqueries, facts):
        return _compared(node, wanted, facts, values)
    used = _below(node.child, columns_of(*node.conditions) | _outer(node.subqueries) | set(wanted))
    # Changed rows are filtered by the conditions at the last refresh. A later step handles the unchanged rows
    # that enter or leave only because of the time.
    earlier = tuple(at_last_refresh(part) for part in node.conditions)
    found = tuple(
        _only(Filter(rows, earlier, node.subqueries), wanted)
        for rows in weighted_rows(node.child, used, facts, values)
    )
    moved_rows = rows_changed_by_time(node)
    if moved_rows is not None:
        found += tuple(_with_sign(rows, wanted, sign) for rows, sign in zip(moved_rows, (-1, 1), strict=True))
    return found


@delta_rule.register
def _join(node: Join, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    """The delta of an inner join.

    The delta of each changed relation is joined with the other changed relations: those before it in their
    new state, those after it in their old state. The result is then joined once with the unchanged relations.
    Joins start from the delta, so only matching rows of the other relations are used.
    """
    if node.kind != "inner":
        return _compared(node, wanted, facts, values)
    relations, conditions = flattened(node)
    # The largest relation comes first, so that it is only read in its new state. The old state needs more
    # reads.
    relations.sort(key=lambda one: -_size(one, facts))
    used = columns_of(*conditions) | set(wanted)
    core = _core(relations, conditions, facts)
    rest = [one for one in relations if not any(one is other for other in core)]
    inside = {name for one in core for name in one.output}
    first = [part for part in conditions if columns_of(part) <= inside]
    last = [part for part in conditions if not columns_of(part) <= inside]
    needed = columns_of(*last) | set(wanted)
    shown = tuple(name for one in core for name in one.output if name in needed) if rest else wanted
    found: list[Node] = []
    count = NONE
    for place, relation in enumerate(core):
        others = [*core[:place], *(facts.before(one) for one in core[place + 1 :])]
        changes = changed_rows(relation, facts)
        made = NONE
        for rows in weighted_rows(relation, _below(relation, used), facts, values):
            start = Chain(rows, (relation,), changes)
            chain = joined(start, others, first, {*shown, SIGN}, facts)
            found.append(_only(chain.rows, shown))
            made = chain.count
        count += made
    if not found or not rest:
        return tuple(found)
    whole = found[0] if len(found) == 1 else UnionAll(tuple(found), (*shown, SIGN))
    chain = joined(Chain(whole, tuple(core), count), rest, last, {*wanted, SIGN}, facts)
    return (_only(chain.rows, wanted),)


def _core(relations: Sequence[Node], conditions: Sequence[exp.Expression], facts: Facts) -> Sequence[Node]:
    """The changed relations, if conditions link them to each other; otherwise all relations.

    They are also all if the links are many-to-many, as between customers and suppliers of one nation.
    """

    def are_linked(one: Node, other: Node) -> bool:
        pairs = [(a, b) for a, b in equalities(conditions) if a in one.output and b in other.output]
        return bool(pairs) and (
            matches_few_rows(one, (a for a, _ in pairs), facts)
            or matches_few_rows(other, (b for _, b in pairs), facts)
        )

    changed = [one for one in relations if facts.changed(one)]
    linked, left = changed[:1], changed[1:]
    while left:
        found = next((one for one in left if any(are_linked(one, other) for other in linked)), None)
        if found is None:
            return relations
        linked.append(found)
        left = [one for one in left if one is not found]
    return changed


@delta_rule.register
def _union(node: UnionAll, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    found: list[Node] = []
    for child in node.children:
        names = dict(zip(node.columns, child.output, strict=True))
        used = tuple(dict.fromkeys(names[name] for name in wanted))
        items = (*((name, column(names[name])) for name in wanted), (SIGN, column(SIGN)))
        found += (Project(rows, items) for rows in weighted_rows(child, used, facts, values))
    return tuple(found)


@delta_rule.register
def _generate(node: Generate, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    used = _below(node.child, columns_of(node.function) | set(wanted))
    return tuple(
        _only(replace(node, child=rows), wanted) for rows in weighted_rows(node.child, used, facts, values)
    )


# Operators that do not propagate deltas


def _compared(node: Node, wanted: Wanted, facts: Facts, values: Inline) -> WeightedRows:
    """The old and the new rows of the values that a change may affect."""
    whole, names = _with_columns(node, _limiting(node, facts))
    if not names:
        raise NoDelta
    found = affected_rows(whole, names, facts).both()
    if not found:
        return ()
    keys = values.keys(semi_join_reduced(union_of(found, names), whole, facts), names)
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


def _limiting(node: Node, facts: Facts) -> Wanted:
    """Columns of an operator, or of its input, whose values limit a change to some rows."""
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
        case Limit():
            return conservative((), "any row can move another one out of the first rows")
        case Scan() | UnionAll() | Generate() | Values() | KeySemiJoin():
            return ()  # They propagate deltas, or never change, so they are not compared.


def _with_columns(node: Node, names: Wanted) -> tuple[Node, Wanted]:
    """The operator with these columns in its output."""
    missing = [name for name in names if name not in node.output]
    if not missing:
        return node, names
    if isinstance(node, Project):
        return replace(node, items=(*node.items, *((name, column(name)) for name in missing))), names
    return node, tuple(name for name in names if name in node.output)


def _linked(subqueries: tuple[Subquery, ...], facts: Facts) -> list[Subquery]:
    """Subqueries whose value can change for some rows only. The others are guarded as a whole."""
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
    return facts.known_rows(scan for scan in scans(node) if facts.changed(scan))


__all__ = ["SIGN", "Inline", "NoDelta", "WeightedRows", "weighted_rows"]
