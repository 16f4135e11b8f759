"""Aggregate maintenance: stored sums and counts plus the delta (counting algorithm, Gupta et al. 1993).

A query is self-maintainable (Quass et al. 1996) in this way if it selects for each group ``count(*)``,
otherwise only ``sum``, ``count``, ``min`` and ``max``, for each ``sum(x)`` also ``count(x)``, and values
computed from these. Its next result then follows from the stored one and the delta. A group without rows
disappears, and a sum without values is NULL.

A ``min`` or ``max`` that loses its value, without gaining one at least as extreme, must be recomputed from
the rows (Palpanas et al. 2002). The refresh finds these groups while it runs. For ``count(DISTINCT x)``, the
values of the changed rows are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_arctic.keyed.summary_delta import OppositeEnd
from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Node,
    Project,
    Scan,
    UnionAll,
    own_names,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import Renderer, Sources
from dbt_arctic.planner.algebra.scalars import column, columns_of, substitute
from dbt_arctic.planner.auxiliary.measures import Extreme, Measures, Roles, read_measures, roles
from dbt_arctic.planner.delta.count_distinct import VALUE, values_of_groups
from dbt_arctic.planner.delta.exact_averages import has_inexact_averages
from dbt_arctic.planner.delta.lookup_keys import with_lookup_keys
from dbt_arctic.planner.delta.plan import LARGEST, Guard, guards_of
from dbt_arctic.planner.delta.restriction import restricted
from dbt_arctic.planner.delta.shared_lookups import SharedLookup, share_lookups
from dbt_arctic.planner.delta.stages import Collected, Staged, WithStaged
from dbt_arctic.planner.delta.weighted_delta import SIGN, NoDelta, weighted_rows
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.unique_keys import has_small_groups
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.stored_types import may_change_types

_Items = dict[str, exp.Expression]

LOST_EXTREMES = "\0left"
"""The relation of the groups that lost a MIN or MAX: ``key_0``, ``key_1``, ..."""

_LOOK_UPS = 2
"""The most expressions whose distinct values are looked up. Each needs its own lookup."""


@dataclass(frozen=True)
class OverCachedLookups:
    """The same changes for cached lookups: rows that match changed keys are not staged again.

    :param sources: the upstreams whose rows must be cached.
    """

    sources: frozenset[str]
    changes: Node
    lookups: tuple[SharedLookup, ...]


@dataclass(frozen=True)
class SummaryDelta:
    """A plan that adds the delta of aggregates to their stored values.

    :param staged: the relations to compute first.
    :param changes: the change of each group: the key, and a number to add to each other column. ``None`` if
        nothing changed.
    :param rows: the column that counts rows. A group without rows disappears, unless it is the only one.
    :param counts: all columns that count.
    :param counted: for each sum, the column that counts its values.
    :param extremes: for each ``min`` and ``max``, which of the two it is. In ``changes``, these columns are
        not a difference: they have the value of the row.
    :param ends: for an extreme stored with its opposite: the column of the opposite, and the one that counts
        the values. If both are equal, all values of the group are equal, so the count says how many there
        are.
    :param spare: columns of ``ends`` from which nothing is computed. If such a value leaves its group, the
        column is NULL until the group is recomputed.
    :param derived: columns that are not in ``changes``: SQL over other columns of the same row.
    :param carried: columns with the groups from which key columns are computed. A key belongs to one group.
    :param group_columns: for each group, the column that holds it: a key column, or one of ``carried``.
    :param looks_up: whether distinct values are counted, which are looked up in all rows.
    :param over_cached: what to run instead if the rows of lookups are cached.
    :param new_extremes: the query of the extremes of the groups in ``LOST_EXTREMES``, over all current rows:
        the key and ``extremes``. ``None`` if no extreme is selected, or if there is only one group.
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
    ends: dict[str, OppositeEnd] = field(default_factory=dict)
    spare: frozenset[str] = frozenset()
    derived: dict[str, str] = field(default_factory=dict)
    carried: tuple[str, ...] = ()
    group_columns: tuple[str, ...] = ()
    looks_up: bool = False
    over_cached: OverCachedLookups | None = None
    new_extremes: Node | None = None

    @property
    def nodes(self) -> list[Node]:
        """All trees that the plan reads, with cached lookups or without."""
        found = [one.rows for one in self.staged.affected_values]
        lookups = self.staged.shared_lookups
        if self.changes is not None:
            found.append(self.changes)
        if self.over_cached is not None:
            found.append(self.over_cached.changes)
            lookups += self.over_cached.lookups
        return [*found, *(one.rows for one in lookups)]

    def with_cached_lookups(self, sources: Collection[str]) -> SummaryDelta:
        """The plan if the rows of these upstreams that match changed keys are cached."""
        over = self.over_cached
        if over is None or not over.sources <= set(sources):
            return self
        staged = replace(self.staged, shared_lookups=over.lookups)
        return replace(self, changes=over.changes, staged=staged, over_cached=None)


def plan_summary_delta(
    query: Query,
    key: Sequence[str],
    facts: Facts,
    accept: frozenset[str] = frozenset(),
    hidden: Collection[str] = (),
) -> SummaryDelta | None:
    """Plan a refresh that adds the delta of sums and counts to their stored values.

    :param hidden: the columns of the query that the model's view does not show.

    :returns: ``None`` if the query is not self-maintainable in this way, or if its delta is unknown.

    :raises CannotPlan: the query is not deterministic.
    """
    found = roles(query, key)
    if found is None or ("float_sum" not in accept and has_inexact_averages(query)):
        return None
    require_determinism(query.node, query.types, facts, accept)
    aggregate, keys, values, derived = found.aggregate, found.keys, found.values, found.derived
    if not _is_repeatable(aggregate.child, query, facts) or (derived and may_change_types(aggregate)):
        return None
    types = Types(query.node, query.types)
    measures = read_measures(values, types)
    if measures is None or _costs_more_than_groups(aggregate, measures, facts):
        return None
    staged = Collected()
    try:
        changed = _changed_rows(found, measures, types, query, facts, staged)
    except NoDelta:
        return None
    over = _DeltaOverLookups(changed, (*keys, *found.carried, *values), staged, facts)
    changes, lookups = over.all()
    if changes is not None and sum(1 for _ in walk(changes)) > LARGEST:
        return None
    extremes, read = measures.extremes, columns_of(*derived.values())
    spare = frozenset(name for name in measures.ends if name in hidden and name not in read)
    every_end = {name: values[name] for name in extremes}
    needs_query = spare < extremes.keys() and aggregate.groups
    return SummaryDelta(
        key=tuple(keys),
        changes=changes,
        rows=measures.rows,
        counts=(*measures.counts, *measures.distinct),
        counted=measures.counted,
        whole=not aggregate.groups,
        guards=tuple(guards_of(aggregate.child, facts)),
        staged=Staged(tuple(replace(one, rows=over.marked(one.rows)) for one in staged.found), lookups),
        extremes=extremes,
        ends=measures.ends,
        spare=spare,
        derived={name: to_sql(value) for name, value in derived.items()},
        carried=tuple(found.carried),
        group_columns=found.group_columns,
        looks_up=bool(measures.distinct),
        over_cached=over.kept(lookups),
        new_extremes=_new_extremes(found, every_end) if needs_query else None,
    )


def _costs_more_than_groups(aggregate: Aggregate, measures: Measures, facts: Facts) -> bool:
    """Whether recomputing the affected groups costs less than looking up distinct values."""
    if not measures.distinct:
        return False
    keys_of = {source: upstream.key for source, upstream in facts.upstreams.items()}
    return len(set(measures.distinct.values())) > _LOOK_UPS or has_small_groups(aggregate, keys_of)


def _changed_rows(
    found: Roles,
    measures: Measures,
    types: Types,
    query: Query,
    facts: Facts,
    staged: Collected,
) -> list[tuple[Node, _Items]]:
    """The delta, with the expressions of the key and the other columns for each of its parts.

    :raises NoDelta: no columns limit the change.
    """
    aggregate, values, keys = found.aggregate, found.values, {**found.keys, **found.carried}
    groups = dict(aggregate.groups)
    items = {name: substitute(value, groups) for name, value in keys.items()}
    used = columns_of(*items.values(), *(one for one in measures.arguments.values() if one is not None))
    for name, argument in measures.arguments.items():
        if name in measures.extremes and argument is not None:
            items[name] = argument
        else:
            is_short = argument is not None and types.category(argument) == "int"
            items[name] = _weighted_value(argument, is_count=name in measures.counts, is_short=is_short)
    items.update(dict.fromkeys(measures.distinct, exp.Literal.number(0)))
    wanted = tuple(name for name in aggregate.child.output if name in used)
    numbers = {*measures.counts, *measures.distinct}
    nothing = {name: exp.Literal.number(0) if name in numbers else exp.Null() for name in values}
    rows = [(part, items) for part in weighted_rows(aggregate.child, wanted, facts, staged)]
    for value in dict.fromkeys(measures.distinct.values()):
        distinct = values_of_groups(aggregate, value, query.types, facts)
        if distinct is None:
            raise NoDelta
        number = _weighted_value(column(VALUE), is_count=True)
        counted = {name: number for name, one in measures.distinct.items() if one == value}
        shown = {**keys, **nothing, **counted}
        rows += ((part, shown) for part in weighted_rows(distinct, distinct.output, facts, staged))
    return rows


@dataclass(frozen=True)
class _DeltaOverLookups:
    """The delta as columns of the result, over shared lookups."""

    changed: Sequence[tuple[Node, _Items]]
    names: tuple[str, ...]
    staged: Collected
    facts: Facts

    def all(self) -> tuple[Node | None, tuple[SharedLookup, ...]]:
        """The delta with shared lookups for all rows that match changed keys."""
        return self._over(lambda rows: False)

    def kept(self, lookups: Sequence[SharedLookup]) -> OverCachedLookups | None:
        """The delta if the looked-up rows of ``lookups`` are cached; ``None`` if none of them are."""
        cached = frozenset(scan.source for one in lookups for scan in scans(one.rows) if scan.lookup_keys)
        if not cached:
            return None
        again, left = self._over(self._are_cached)
        if again is None or sum(1 for _ in walk(again)) > LARGEST:
            return None
        return OverCachedLookups(cached, again, left)

    def marked(self, node: Node) -> Node:
        return with_lookup_keys(node, self.facts, {one.name: one.rows for one in self.staged.found})

    def _over(self, cached: Callable[[Node], bool]) -> tuple[Node | None, tuple[SharedLookup, ...]]:
        parts, lookups = share_lookups((part for part, _ in self.changed), self.facts, cached)
        made = [
            self.marked(prune_columns(Project(part, tuple((name, shown[name]) for name in self.names))))
            for part, (_, shown) in zip(parts, self.changed, strict=True)
        ]
        whole = None if not made else made[0] if len(made) == 1 else UnionAll(tuple(made), self.names)
        return whole, tuple(replace(one, rows=self.marked(one.rows)) for one in lookups)

    def _are_cached(self, rows: Node) -> bool:
        read = [scan for scan in scans(self.marked(rows)) if scan.source in self.facts.upstreams]
        return all(scan.lookup_keys or scan.state not in ("new", "old") for scan in read)


def _is_repeatable(node: Node, query: Query, facts: Facts) -> bool:
    """Whether recomputed old rows equal those that the stored sums were made of.

    With accepted nondeterminism, a row might be subtracted from a group that it was never added to.
    """
    try:
        require_determinism(node, query.types, facts)
    except CannotPlan:
        return False
    return True


def _new_extremes(roles: Roles, ends: Mapping[str, exp.Expression]) -> Node:
    aggregate = roles.aggregate
    found = tuple((f"_arctic_end_{place}", call) for place, call in enumerate(ends.values()))
    groups = Aggregate(aggregate.child, aggregate.groups, found)
    names = tuple(f"key_{place}" for place in range(len(aggregate.groups)))
    left = Scan(LOST_EXTREMES, "groups_without_extreme", own_names(names))
    # By the groups: no table can be restricted by a value that is computed from several columns.
    pairs = tuple((column(group), name) for (group, _), name in zip(aggregate.groups, names, strict=True))
    rows = restricted(groups, pairs, left)
    shown = ((name, column(one)) for name, (one, _) in zip(ends, found, strict=True))
    return prune_columns(Project(rows, (*roles.keys.items(), *shown)))


def changes_sql(sums: SummaryDelta, sources: Sources, staged: Mapping[str, str], ranges: Ranges) -> str:
    """The SQL of the change of each group, as columns of the model.

    :param staged: the relation that stands for each staged one.
    :param ranges: the ranges of affected values without NULLs.
    """
    assert sums.changes is not None
    return Renderer(WithStaged(sources, staged), ranges).query(sums.changes)


def new_extremes_sql(sums: SummaryDelta, sources: Sources, left: str, ranges: Ranges) -> str:
    """The SQL of the extremes of the groups that lost one.

    :param left: the relation of these groups.
    """
    assert sums.new_extremes is not None
    return Renderer(WithStaged(sources, {LOST_EXTREMES: left}), ranges).query(sums.new_extremes)


def _weighted_value(
    argument: exp.Expression | None, *, is_count: bool, is_short: bool = False
) -> exp.Expression:
    """The argument of an aggregate, negated for rows of weight -1.

    :param is_short: whether it is an integer of at most 32 bits.
    """
    sign = column(SIGN)
    if argument is None:
        return sign
    if is_count:
        missing = exp.Is(this=exp.Paren(this=argument), expression=exp.Null())
        zero = exp.Literal.number(0)
        return exp.Case(ifs=[exp.If(this=missing, true=zero)], default=sign)
    gained = exp.GT(this=sign, expression=exp.Literal.number(0))
    # The negation of a type's smallest value does not fit into the type.
    wider = exp.cast(argument.copy(), "BIGINT", dialect="spark") if is_short else argument
    lost = exp.Neg(this=exp.Paren(this=wider))
    return exp.Case(ifs=[exp.If(this=gained, true=argument)], default=lost)
