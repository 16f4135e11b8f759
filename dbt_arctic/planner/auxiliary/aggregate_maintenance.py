"""Sums and counts maintained from stored values and the query's delta (counting algorithm, Gupta 1993).

A query is of this kind if it shows, for each group, ``count(*)`` and besides nothing but ``sum``, ``count``,
``min`` and ``max``, for each ``sum(x)`` also ``count(x)``, and what can be computed from these: then its
stored result knows all that its next one depends on. Where a group has no row left it is gone; where a sum
has no value left it is NULL. Only where a ``min`` or ``max`` has lost its value, and gained none as good, the
rows have to be asked: that is found when it is computed. For ``count(DISTINCT x)`` the values that changed
rows have are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_arctic.keyed.comparison import Sort
from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.columns import trimmed
from dbt_arctic.planner.algebra.operators import Aggregate, Node, Project, Scan, UnionAll, scans, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import Renderer, Sources
from dbt_arctic.planner.algebra.scalars import column, columns_of, substitute
from dbt_arctic.planner.auxiliary.measures import Extreme, Measures, Roles, read_measures, roles
from dbt_arctic.planner.delta.count_distinct import VALUE, values_of_groups
from dbt_arctic.planner.delta.lookup_keys import with_lookup_keys
from dbt_arctic.planner.delta.plan import LARGEST, Guard, guards_of
from dbt_arctic.planner.delta.restriction import restricted
from dbt_arctic.planner.delta.shared_lookups import SharedLookup, share_lookups
from dbt_arctic.planner.delta.stages import Collected, Staged, WithStaged
from dbt_arctic.planner.delta.weighted_delta import SIGN, NoDelta, signed
from dbt_arctic.planner.properties.determinism import check_determined
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.unique_keys import has_small_groups
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.typing.numeric_types import sort_of, sorts
from dbt_arctic.planner.typing.stored_types import may_change_types

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
    gathered: tuple[SharedLookup, ...]


@dataclass(frozen=True)
class Sums:
    """A plan that adds changes to stored aggregates.

    :param staged: what to compute before.
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
    """Plan a refresh that adds changes to stored sums and counts.

    :param hidden: the columns of the query that nobody is shown.
    :returns: ``None`` where a query is not of this kind, or nothing confines its changes.

    :raises CannotPlan: its rows do not determine its result.
    """
    found = roles(query, key)
    if found is None:
        return None
    check_determined(query.node, query.types, facts, accept)
    aggregate, keys, values, derived = found
    if not _comes_out_again(aggregate.child, query, facts) or (derived and may_change_types(aggregate)):
        return None
    known = sorts(query.node, query.types)
    measures = read_measures(values, known, query.types)
    if measures is None or _costs_more_than_groups(aggregate, measures, facts):
        return None
    staged = Collected()
    try:
        changed = _changed_rows(found, measures, known, query, facts, staged)
    except NoDelta:
        return None
    over = _OverGathered(changed, (*keys, *values), staged, facts)
    changes, gathered = over.all()
    if changes is not None and sum(1 for _ in walk(changes)) > LARGEST:
        return None
    extremes, read = measures.extremes, columns_of(*derived.values())
    spare = frozenset(name for name in measures.ends if name in hidden and name not in read)
    every_end = {name: values[name] for name in extremes}
    asks = spare < extremes.keys() and aggregate.groups
    return Sums(
        key=tuple(keys),
        changes=changes,
        rows=measures.rows,
        counts=(*measures.counts, *measures.distinct),
        counted=measures.counted,
        whole=not aggregate.groups,
        guards=tuple(guards_of(aggregate.child, facts)),
        staged=Staged(tuple(replace(one, rows=over.marked(one.rows)) for one in staged.found), gathered),
        extremes=extremes,
        ends=measures.ends,
        spare=spare,
        derived={name: to_sql(value) for name, value in derived.items()},
        looks_up=bool(measures.distinct),
        over_kept=over.kept(gathered),
        of_left=_of_left(aggregate, keys, every_end) if asks else None,
    )


def _costs_more_than_groups(aggregate: Aggregate, measures: Measures, facts: Facts) -> bool:
    """Whether to compute the affected groups anew costs less than to look up different values."""
    if not measures.distinct:
        return False
    keys_of = {source: upstream.key for source, upstream in facts.upstreams.items()}
    return len(set(measures.distinct.values())) > _LOOK_UPS or has_small_groups(aggregate, keys_of)


def _changed_rows(
    found: Roles,
    measures: Measures,
    known: Mapping[str, Sort],
    query: Query,
    facts: Facts,
    staged: Collected,
) -> list[tuple[Node, _Items]]:
    """Rows with signs, each with what the key and the other columns are of them.

    :raises NotSigned: nothing confines them.
    """
    aggregate, keys, values, _ = found
    groups = dict(aggregate.groups)
    items = {name: substitute(value, groups) for name, value in keys.items()}
    used = columns_of(*items.values(), *(one for one in measures.arguments.values() if one is not None))
    for name, argument in measures.arguments.items():
        if name in measures.extremes and argument is not None:
            items[name] = argument
        else:
            is_short = argument is not None and sort_of(argument, known) == "whole"
            items[name] = _signed_value(argument, is_count=name in measures.counts, is_short=is_short)
    items.update(dict.fromkeys(measures.distinct, exp.Literal.number(0)))
    wanted = tuple(name for name in aggregate.child.output if name in used)
    numbers = {*measures.counts, *measures.distinct}
    nothing = {name: exp.Literal.number(0) if name in numbers else exp.Null() for name in values}
    rows = [(part, items) for part in signed(aggregate.child, wanted, facts, staged)]
    for value in dict.fromkeys(measures.distinct.values()):
        those = values_of_groups(aggregate, value, query.types, facts)
        if those is None:
            raise NoDelta
        number = _signed_value(column(VALUE), is_count=True)
        counted = {name: number for name, one in measures.distinct.items() if one == value}
        shown = {**keys, **nothing, **counted}
        rows += ((part, shown) for part in signed(those, those.output, facts, staged))
    return rows


@dataclass(frozen=True)
class _OverGathered:
    """Changed rows as columns of the result, over what is gathered of the upstreams."""

    changed: Sequence[tuple[Node, _Items]]
    names: tuple[str, ...]
    staged: Collected
    facts: Facts

    def all(self) -> tuple[Node | None, tuple[SharedLookup, ...]]:
        """With everything gathered that changed keys meet."""
        return self._over(lambda rows: False)

    def kept(self, gathered: Sequence[SharedLookup]) -> OverKept | None:
        """The same where of ``gathered`` the rows that are met are kept; ``None`` where none are."""
        met = frozenset(scan.source for one in gathered for scan in scans(one.rows) if scan.lookup_keys)
        if not met:
            return None
        again, left = self._over(self._are_met)
        if again is None or sum(1 for _ in walk(again)) > LARGEST:
            return None
        return OverKept(met, again, left)

    def marked(self, node: Node) -> Node:
        return with_lookup_keys(node, self.facts, {one.name: one.rows for one in self.staged.found})

    def _over(self, met: Callable[[Node], bool]) -> tuple[Node | None, tuple[SharedLookup, ...]]:
        parts, gathered = share_lookups((part for part, _ in self.changed), self.facts, met)
        made = [
            self.marked(trimmed(Project(part, tuple((name, shown[name]) for name in self.names))))
            for part, (_, shown) in zip(parts, self.changed, strict=True)
        ]
        whole = None if not made else made[0] if len(made) == 1 else UnionAll(tuple(made), self.names)
        return whole, tuple(replace(one, rows=self.marked(one.rows)) for one in gathered)

    def _are_met(self, rows: Node) -> bool:
        read = [scan for scan in scans(self.marked(rows)) if scan.source in self.facts.upstreams]
        return all(scan.lookup_keys or scan.state not in ("new", "old") for scan in read)


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


def changes_sql(sums: Sums, sources: Sources, staged: Mapping[str, str], ranges: Ranges) -> str:
    """SQL of what to add to each group, as columns of the model.

    :param staged: for each staged relation what stands for it.
    :param ranges: of touched values without NULLs.
    """
    assert sums.changes is not None
    return Renderer(WithStaged(sources, staged), ranges).query(sums.changes)


def extremes_of_left_sql(sums: Sums, sources: Sources, left: str, ranges: Ranges) -> str:
    """SQL of the extremes of groups that have lost one. :param left: the relation that has these."""
    assert sums.of_left is not None
    return Renderer(WithStaged(sources, {LEFT: left}), ranges).query(sums.of_left)


def _signed_value(
    argument: exp.Expression | None, *, is_count: bool, is_short: bool = False
) -> exp.Expression:
    """An aggregate's argument, negated for rows that are gone.

    :param is_short: it is a whole number of 32 bits.
    """
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
