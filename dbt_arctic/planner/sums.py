"""Sums and counts that follow from their stored values and what a query's rows have gained and lost.

A query is of this kind if it shows, for each group, ``count(*)`` and besides nothing but ``sum``, ``count``,
``min`` and ``max``, for each ``sum(x)`` also ``count(x)``, and what can be computed from these: then its
stored result knows all that its next one depends on. Where a group has no row left it is gone; where a sum
has no value left it is NULL. Only where a ``min`` or ``max`` has lost its value, and gained none as good, the
rows have to be asked: that is found when it is computed. For ``count(DISTINCT x)`` the values that changed
rows have are looked up.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sqlglot import exp

from dbt_arctic.planner.algebra import Aggregate, Node, Project, Scan, UnionAll, scans, walk
from dbt_arctic.planner.columns import trimmed
from dbt_arctic.planner.determined import check_determined
from dbt_arctic.planner.dialect import to_sql
from dbt_arctic.planner.distinct import VALUE, counted_once, values_of_groups
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.gathered import Gathered, gather
from dbt_arctic.planner.met import with_met_scans
from dbt_arctic.planner.plan import LARGEST, Guard, guards_of
from dbt_arctic.planner.query import Query
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.render import Renderer, Sources
from dbt_arctic.planner.restricted import restricted
from dbt_arctic.planner.scalars import column, columns_of, plain, substitute
from dbt_arctic.planner.signed import SIGN, NotSigned, signed
from dbt_arctic.planner.staged import Collected, Staged, WithStaged, inline
from dbt_arctic.planner.stored import may_change_types
from dbt_arctic.planner.types import is_ordered, sort_of, sorts
from dbt_arctic.planner.unique import has_small_groups

_EXACT = ("whole", "big", "decimal")

Extreme = Literal["min", "max"]
_Items = dict[str, exp.Expression]

LEFT = "\0left"
"""What stands for the groups that have lost an extreme: ``key_0``, ``key_1``, ..."""

_LOOK_UPS = 2
"""Of so many expressions the different values are looked up, each by itself."""


@dataclass(frozen=True)
class OverKept:
    """The same changes where rows that changed keys meet are at hand, and need not be gathered.

    :param sources: the upstreams of which they have to be.
    """

    sources: frozenset[str]
    changes: Node
    gathered: tuple[Gathered, ...]


@dataclass(frozen=True)
class Sums:
    """:param staged: what to compute before.
    :param changes: what to add to each group: the key, and for each other column a signed number.
    ``None`` where nothing changed.
    :param rows: the column that counts rows; without a row a group is gone, unless it is the only one.
    :param counts: all columns that count.
    :param counted: for each sum the column that counts its values.
    :param extremes: for each ``min`` and ``max`` which of the two it is. In ``changes``, they are not signed:
        the column has the value of the row.
    :param ends: for extremes of which both ends are kept: the column of the other end, and the one that
        counts the values. Where both ends are one value, so many rows have it.
    :param spare: of these, what nothing is computed from. Once such an end has left its group it is NULL,
        until the group is computed anew.
    :param derived: columns that are not in ``changes``: SQL over the other columns of the same row.
    :param looks_up: whether different values are counted, which are looked up among all rows.
    :param over_kept: what to run instead where rows are kept that it would gather.
    :param of_left: the extremes of the groups of ``LEFT``, of all rows as they are: the key and ``extremes``.
        ``None`` where none is shown, or there is one group.
    """

    key: tuple[str, ...]
    changes: Node | None
    rows: str
    counts: tuple[str, ...]
    counted: dict[str, str]
    whole: bool
    guards: tuple[Guard, ...]
    staged: Staged = field(default_factory=Staged)
    extremes: dict[str, Extreme] = field(default_factory=dict)
    ends: dict[str, tuple[str, str]] = field(default_factory=dict)
    spare: frozenset[str] = frozenset()
    derived: dict[str, str] = field(default_factory=dict)
    looks_up: bool = False
    over_kept: OverKept | None = None
    of_left: Node | None = None

    @property
    def nodes(self) -> list[Node]:
        """All that it reads, whichever of the two ways it goes."""
        found = [one.rows for one in self.staged.touched]
        gathered = self.staged.gathered
        if self.changes is not None:
            found.append(self.changes)
        if self.over_kept is not None:
            found.append(self.over_kept.changes)
            gathered += self.over_kept.gathered
        return [*found, *(one.rows for one in gathered)]

    def where_kept(self, sources: Collection[str]) -> Sums:
        """What to run where the rows of these upstreams that changed keys meet are kept."""
        over = self.over_kept
        if over is None or not over.sources <= set(sources):
            return self
        staged = replace(self.staged, gathered=over.gathered)
        return replace(self, changes=over.changes, staged=staged, over_kept=None)


def plan_sums(
    query: Query,
    key: Sequence[str],
    facts: Facts,
    accept: frozenset[str] = frozenset(),
    hidden: Collection[str] = (),
) -> Sums | None:
    """:param hidden: the columns of the query that nobody is shown.
    :returns: ``None`` where a query is not of this kind, or nothing confines its changes.

    :raises CannotPlan: its rows do not determine its result.
    """
    found = _roles(query, key)
    if found is None:
        return None
    check_determined(query.node, query.types, facts, accept)
    aggregate, keys, values, derived = found
    if not _comes_out_again(aggregate.child, query, facts) or (derived and may_change_types(aggregate)):
        return None
    groups = dict(aggregate.groups)
    known = sorts(query.node, query.types)
    once = {name: value for name, call in values.items() if (value := counted_once(call)) is not None}
    keys_of = {source: upstream.key for source, upstream in facts.upstreams.items()}
    if once and (len(set(once.values())) > _LOOK_UPS or has_small_groups(aggregate, keys_of)):
        return None  # to compute the touched groups anew costs less
    arguments = {name: _argument(value) for name, value in values.items() if name not in once}
    counts = {name: value for name, value in arguments.items() if isinstance(values[name], exp.Count)}
    rows = next((name for name, argument in counts.items() if argument is None), None)
    if rows is None:
        return None
    counted = {}
    extremes: dict[str, Extreme] = {}
    for name, argument in arguments.items():
        if name in counts:
            continue
        if isinstance(values[name], exp.Min | exp.Max):
            if argument is None or not is_ordered(argument, known, query.types):
                return None
            extremes[name] = "min" if isinstance(values[name], exp.Min) else "max"
            continue
        counter = next((other for other, value in counts.items() if value == argument), None)
        if isinstance(argument, exp.Literal):
            counter = rows
        if counter is None or argument is None or sort_of(argument, known) not in _EXACT:
            return None
        counted[name] = counter
    items = {name: substitute(value, groups) for name, value in keys.items()}
    used = columns_of(*items.values(), *(one for one in arguments.values() if one is not None))
    for name, argument in arguments.items():
        if name in extremes and argument is not None:
            items[name] = argument
        else:
            is_short = argument is not None and sort_of(argument, known) == "whole"
            items[name] = _signed_value(argument, is_count=name in counts, is_short=is_short)
    items.update(dict.fromkeys(once, exp.Literal.number(0)))
    wanted = tuple(name for name in aggregate.child.output if name in used)
    numbers = {*counts, *once}
    nothing = {name: exp.Literal.number(0) if name in numbers else exp.Null() for name in values}
    staged = Collected()
    found_rows: list[tuple[Node, Mapping[str, exp.Expression]]] = []
    try:
        found_rows += ((part, items) for part in signed(aggregate.child, wanted, facts, staged))
        for value in dict.fromkeys(once.values()):
            those = values_of_groups(aggregate, value, query.types, facts)
            if those is None:
                return None
            number = _signed_value(column(VALUE), is_count=True)
            shown = {**keys, **nothing, **{name: number for name, one in once.items() if one == value}}
            found_rows += ((part, shown) for part in signed(those, those.output, facts, staged))
    except NotSigned:
        return None
    names = (*keys, *values)
    made_of = {one.name: one.rows for one in staged.found}

    def marked(node: Node) -> Node:
        return with_met_scans(node, facts, made_of)

    def over_gathered(kept: bool = False) -> tuple[Node | None, tuple[Gathered, ...]]:
        met = are_met if kept else lambda rows: False
        parts, gathered = gather((part for part, _ in found_rows), facts, met)
        made = [
            marked(trimmed(Project(part, tuple((name, shown[name]) for name in names))))
            for part, (_, shown) in zip(parts, found_rows, strict=True)
        ]
        whole = None if not made else made[0] if len(made) == 1 else UnionAll(tuple(made), names)
        return whole, tuple(replace(one, rows=marked(one.rows)) for one in gathered)

    def are_met(rows: Node) -> bool:
        read = [scan for scan in scans(marked(rows)) if scan.source in facts.upstreams]
        return all(scan.met_by or scan.state not in ("new", "old") for scan in read)

    changes, gathered = over_gathered()
    if changes is not None and sum(1 for _ in walk(changes)) > LARGEST:
        return None
    over_kept = None
    if met := frozenset(scan.source for one in gathered for scan in scans(one.rows) if scan.met_by):
        again, left = over_gathered(kept=True)
        if again is not None and sum(1 for _ in walk(again)) <= LARGEST:
            over_kept = OverKept(met, again, left)
    ends, read = _ends(extremes, arguments, counts), columns_of(*derived.values())
    spare = frozenset(name for name in ends if name in hidden and name not in read)
    every_end = {name: values[name] for name in extremes}
    asks = spare < extremes.keys() and aggregate.groups
    return Sums(
        key=tuple(keys),
        changes=changes,
        rows=rows,
        counts=(*counts, *once),
        counted=counted,
        whole=not aggregate.groups,
        guards=tuple(guards_of(aggregate.child, facts)),
        staged=Staged(tuple(replace(one, rows=marked(one.rows)) for one in staged.found), gathered),
        extremes=extremes,
        ends=ends,
        spare=spare,
        derived={name: to_sql(value) for name, value in derived.items()},
        looks_up=bool(once),
        over_kept=over_kept,
        of_left=_of_left(aggregate, keys, every_end) if asks else None,
    )


def _comes_out_again(node: Node, query: Query, facts: Facts) -> bool:
    """Whether old rows that are computed again are those of which the stored sums were made. What a user
    accepts to come out otherwise may be taken away from a group that it was never added to.
    """
    try:
        check_determined(node, query.types, facts)
    except CannotPlan:
        return False
    return True


def _of_left(aggregate: Aggregate, keys: _Items, ends: Mapping[str, exp.Expression]) -> Node:
    found = tuple((f"_arctic_end_{place}", call) for place, call in enumerate(ends.values()))
    groups = Aggregate(aggregate.child, aggregate.groups, found)
    names = tuple(f"key_{place}" for place in range(len(keys)))
    left = Scan(LEFT, "left_groups", tuple((name, name) for name in names))
    rows = restricted(groups, tuple(zip(keys.values(), names, strict=True)), left)
    shown = ((name, column(one)) for name, (one, _) in zip(ends, found, strict=True))
    return trimmed(Project(rows, (*keys.items(), *shown)))


def _ends(
    extremes: Mapping[str, Extreme],
    arguments: Mapping[str, exp.Expression | None],
    counts: Mapping[str, exp.Expression | None],
) -> dict[str, tuple[str, str]]:
    found = {}
    for name, which in extremes.items():
        value = arguments[name]
        others = (one for one, end in extremes.items() if end != which and arguments[one] == value)
        other, counter = next(others, None), next((one for one in counts if counts[one] == value), None)
        if other is not None and counter is not None:
            found[name] = (other, counter)
    return found


def changes_sql(
    sums: Sums,
    sources: Sources,
    staged: Mapping[str, str] | None = None,
    ranges: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """SQL of what to add to each group, as columns of the model.

    :param staged: for each staged relation what stands for it; without it, their queries.
    :param ranges: least and greatest of touched values without NULLs, as literals.
    """
    assert sums.changes is not None
    named = inline(sums.staged, sources) if staged is None else staged
    return Renderer(WithStaged(sources, named), ranges or {}).query(sums.changes)


def extremes_of_left_sql(
    sums: Sums, sources: Sources, left: str, ranges: Mapping[str, tuple[str, str]] | None = None
) -> str:
    """SQL of the extremes of groups that have lost one. :param left: the relation that has these."""
    assert sums.of_left is not None
    return Renderer(WithStaged(sources, {LEFT: left}), ranges or {}).query(sums.of_left)


def _roles(query: Query, key: Sequence[str]) -> tuple[Aggregate, _Items, _Items, _Items] | None:
    """The aggregate, what key columns are of its groups, the calls of other columns, and those derived."""
    shown: dict[str, exp.Expression] = {name: column(identifier) for name, identifier in query.columns}
    node = query.node
    while isinstance(node, Project) and not node.subqueries:
        items = dict(node.items)
        shown = {name: substitute(value, items) for name, value in shown.items()}
        node = node.child
    if not isinstance(node, Aggregate) or node.grouping_sets is not None:
        return None
    groups, calls = dict(node.groups), dict(node.aggregates)
    wanted = {name.lower() for name in key}
    keys: dict[str, exp.Expression] = {}
    values: dict[str, exp.Expression] = {}
    others: dict[str, exp.Expression] = {}
    stored: dict[str, exp.Expression] = {}
    named = set()
    for name, value in shown.items():
        below = plain(value)
        if name.lower() in wanted:
            if below in groups:
                named.add(below)
                keys[name] = column(str(below))
            elif isinstance(value, exp.Literal) and not groups:
                keys[name] = value
            else:
                return None
        elif below in calls:
            values[name] = calls[str(below)]
        else:
            others[name] = value
            continue
        if below is not None:
            stored.setdefault(below, column(name))
    if named != set(groups) or len(keys) != len(wanted):
        return None
    if any(_is_other(call) for call in values.values()):
        return None
    if not columns_of(*others.values()) <= set(stored):
        return None
    return node, keys, values, {name: substitute(value, stored) for name, value in others.items()}


def _is_other(call: exp.Expression) -> bool:
    plain_call = isinstance(call, exp.Count | exp.Sum | exp.Min | exp.Max) and not call.args.get(
        "expressions"
    )
    is_distinct = isinstance(call.this, exp.Distinct) and counted_once(call) is None
    return not plain_call or is_distinct or call.find(exp.Filter) is not None


def _argument(call: exp.Expression) -> exp.Expression | None:
    """What a call counts or sums; ``None`` for ``count(*)`` and the like."""
    value = call.this
    return None if isinstance(value, exp.Star | exp.Literal) and isinstance(call, exp.Count) else value


def _signed_value(
    argument: exp.Expression | None, *, is_count: bool, is_short: bool = False
) -> exp.Expression:
    """:param is_short: it is a whole number of 32 bits."""
    sign = column(SIGN)
    if argument is None:
        return sign
    if is_count:
        missing = exp.Is(this=exp.Paren(this=argument), expression=exp.Null())
        zero = exp.Literal.number(0)
        return exp.Case(ifs=[exp.If(this=missing, true=zero)], default=sign)
    gained = exp.GT(this=sign, expression=exp.Literal.number(0))
    # The least value of a type has no counterpart in it.
    wider = exp.cast(argument.copy(), "BIGINT", dialect="spark") if is_short else argument
    lost = exp.Neg(this=exp.Paren(this=wider))
    return exp.Case(ifs=[exp.If(this=gained, true=argument)], default=lost)
