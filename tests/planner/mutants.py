"""Planners that are wrong on purpose: one or more for each rule, and the two classic mistakes.

``python -m tests.planner.mutants 0 500 [name ...]`` looks for seeds that catch them, to be noted in
``test_mutants``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    SIGN_OF_ROW,
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Project,
    Scan,
    SetOperation,
    State,
    SubqueryRef,
    UnionAll,
    Window,
    map_children,
)
from dbt_arctic.planner.algebra.render import Sources
from dbt_arctic.planner.algebra.scalars import columns_of, plain, substitute
from dbt_arctic.planner.delta import (
    lookup_keys,
    old_or_new,
    plan,
    range_pruning,
    rows_from_log,
    semi_join_reduction,
    shared_lookups,
    static_filters,
    weighted_delta,
)
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    affected_keys_rule,
    affected_rows,
    only,
)
from dbt_arctic.planner.delta.restriction import restricted, restricted_rule, some_of
from dbt_arctic.planner.delta.rules import aggregate, condition, join, project, subquery, window
from dbt_arctic.planner.delta.weighted_delta import WeightedRows, delta_rule
from dbt_arctic.planner.frontend import lateral_subqueries
from dbt_arctic.planner.properties import column_equivalences, union_branch_pruning
from dbt_arctic.planner.properties.facts import Facts
from tests.planner.common_queries import draw_shaped
from tests.planner.oracle import Database, InDuckDB, Prepared, compare, judge, prepare
from tests.planner.random_queries import Case, draw


class AfterImagesOnly(InDuckDB):
    """What was deleted, and what a row was before, is not looked at."""

    def relation(self, source: str, state: State) -> str:
        if state == "minus":
            return f"(SELECT * FROM `{source}` WHERE false)"
        if state == "weighted":
            return f"(SELECT *, 1 AS {SIGN_OF_ROW} FROM `{source}@plus`)"
        return super().relation(source, "plus" if state in ("changed", "keys") else state)


class CurrentForOld(InDuckDB):
    """The old state is thought to be as the one now."""

    def relation(self, source: str, state: State) -> str:
        wrong: dict[State, State] = {"old": "new", "lookup_old": "lookup_new"}
        return super().relation(source, wrong.get(state, state))


Mutant = Callable[[], AbstractContextManager[Sources]]
MUTANTS: dict[str, Mutant] = {}


def mutant(made: Callable[[], Iterator[Sources | None]]) -> Callable[[], Iterator[Sources | None]]:
    @contextmanager
    def entered() -> Iterator[Sources]:
        for sources in made():
            yield sources or InDuckDB()

    MUTANTS[made.__name__] = entered
    return made


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


@contextmanager
def rule(dispatcher: Any, operator: type, wrong: Callable[[Any], Any]) -> Iterator[None]:
    """The rule of an operator replaced by what ``wrong`` makes of it."""
    right = dispatcher.dispatch(operator)
    dispatcher.register(operator, wrong(right))
    try:
        yield
    finally:
        dispatcher.register(operator, right)


def _plus_only(right: Any) -> Any:
    def wrong(node: Any, wanted: Any, facts: Any) -> AffectedRows:
        return AffectedRows((), right(node, wanted, facts).plus)

    return wrong


@mutant
def after_images_only() -> Iterator[Sources | None]:
    with replaced(old_or_new, "_scan", _now):
        yield AfterImagesOnly()


def _now(node: Scan, wanted: tuple[str, ...], facts: Any) -> Any:
    used = tuple(one for one in node.columns if one.identifier in wanted)
    return only(replace(node, columns=used, state="new"), wanted)


@mutant
def current_state_for_the_old_one() -> Iterator[Sources | None]:
    with replaced(old_or_new, "_scan", _now):
        yield CurrentForOld()


@mutant
def either_without_what_is_gone() -> Iterator[Sources | None]:
    with replaced(old_or_new, "_scan", _now):
        yield None


@mutant
def scan_without_new_rows() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def gone(node: Any, wanted: Any, facts: Any) -> AffectedRows:
            return AffectedRows((only(replace(node, state="minus"), wanted),), ())

        return gone

    with rule(affected_keys_rule, Scan, wrong):
        yield None


@mutant
def project_without_its_subqueries() -> Iterator[Sources | None]:
    with replaced(project, "linked_rows", lambda *_: NOTHING):
        yield None


@mutant
def filter_without_its_subqueries() -> Iterator[Sources | None]:
    with replaced(condition, "linked_rows", lambda *_: NOTHING):
        yield None


@mutant
def subquery_of_the_new_state_only() -> Iterator[Sources | None]:
    right = subquery.affected_rows

    def wrong(node: Any, wanted: Any, facts: Any) -> AffectedRows:
        found = right(node, wanted, facts)
        return AffectedRows((), tuple(one for one in found.plus if one not in found.minus))

    with replaced(subquery, "affected_rows", wrong):
        yield None


@mutant
def outer_join_without_its_null_side() -> Iterator[Sources | None]:
    with replaced(join, "_null_side", lambda *_: NOTHING):
        yield None


@mutant
def full_join_without_its_null_sides() -> Iterator[Sources | None]:
    with replaced(join, "_null_side_whole", lambda *_: NOTHING):
        yield None


@mutant
def outer_join_without_its_kept_side() -> Iterator[Sources | None]:
    with replaced(join, "_preserved", lambda *_: NOTHING):
        yield None


@mutant
def inner_join_of_the_left_side_only() -> Iterator[Sources | None]:
    with replaced(join, "_turned", lambda node: node):
        yield None


@mutant
def outer_join_restricted_on_its_kept_side() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Join, pairs: Any, keys: Any) -> Any:
            made = right(replace(node, kind="inner"), pairs, keys)
            return made if isinstance(made, Join) and node.kind == "full" else right(node, pairs, keys)

        return inner

    with rule(restricted_rule, Join, wrong):
        yield None


@mutant
def logged_rows_for_keys_of_others() -> Iterator[Sources | None]:
    """Any rows of a table are taken for changed ones."""
    with replaced(rows_from_log, "OF_CHANGES", ("new", "old", "keys", "changed", "minus", "plus")):
        yield None


@mutant
def logged_rows_for_keys_of_several() -> Iterator[Sources | None]:
    """Keys that changed rows of another table have, too."""
    right = rows_from_log.origins

    def wrong(node: Any, names: tuple[str, ...]) -> Any:
        found = right(node, names)
        return found and frozenset(sorted(found)[:1])

    with replaced(rows_from_log, "origins", wrong):
        yield None


@mutant
def group_of_the_new_state_only() -> Iterator[Sources | None]:
    with (
        rule(affected_keys_rule, Aggregate, _plus_only),
        replaced(AffectedRows, "both", lambda found: found.plus),
    ):
        yield None


@mutant
def grouping_sets_restricted_as_groups() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Aggregate, pairs: Any, keys: Any) -> Any:
            made = right(replace(node, grouping_sets=None), pairs, keys)
            return replace(made, grouping_sets=node.grouping_sets) if isinstance(made, Aggregate) else made

        return inner

    with rule(restricted_rule, Aggregate, wrong):
        yield None


@mutant
def window_of_the_changed_rows_only() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Window, wanted: Any, facts: Any) -> AffectedRows:
            if set(wanted) <= set(node.child.output):
                return affected_rows(node.child, wanted, facts)
            return right(node, wanted, facts)  # type: ignore[no-any-return]

        return inner

    with rule(affected_keys_rule, Window, wrong):
        yield None


@mutant
def window_restricted_to_some_of_a_partition() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Window, pairs: Any, keys: Any) -> Any:
            own = frozenset(node.child.output)
            down = tuple((value, name) for value, name in pairs if columns_of(value) <= own)
            below = restricted(node.child, down, some_of(keys, down))
            return KeySemiJoin(replace(node, child=below), some_of(keys, pairs), pairs)

        return inner

    with rule(restricted_rule, Window, wrong):
        yield None


@mutant
def windows_over_each_other_by_the_partition_of_one() -> Iterator[Sources | None]:
    def wrong(node: Window) -> Any:
        below = node.child
        while isinstance(below, Window):
            below = below.child
        own = tuple(part for part in node.partition if columns_of(part) <= set(below.output))
        return below, own

    with replaced(window, "_shared", wrong):
        yield None


@mutant
def union_of_the_first_part_only() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: UnionAll, wanted: Any, facts: Any) -> AffectedRows:
            return right(UnionAll(node.children[:1], node.columns), wanted, facts)  # type: ignore[no-any-return]

        return inner

    with rule(affected_keys_rule, UnionAll, wrong):
        yield None


@mutant
def set_operation_of_the_left_side_only() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: SetOperation, wanted: Any, facts: Any) -> AffectedRows:
            first = UnionAll((node.left,), node.columns)
            return affected_keys_rule(first, wanted, facts)

        return inner

    with rule(affected_keys_rule, SetOperation, wrong):
        yield None


@mutant
def project_restricted_by_plain_columns_only() -> Iterator[Sources | None]:
    """What a key is computed from is not looked up."""

    def wrong(right: Any) -> Any:
        def inner(node: Project, pairs: Any, keys: Any) -> Any:
            items = dict(node.items)
            kept = tuple(
                (value, name) for value, name in pairs if plain(substitute(value, items)) is not None
            )
            return right(node, kept, keys)

        return inner

    with rule(restricted_rule, Project, wrong):
        yield None


@mutant
def filter_restricted_without_its_conditions() -> Iterator[Sources | None]:
    """Rows of affected keys are taken to be rows of the model."""

    def wrong(right: Any) -> Any:
        def inner(node: Filter, pairs: Any, keys: Any) -> Any:
            made = right(node, pairs, keys)
            return replace(made, conditions=tuple(one for one in made.conditions if one.find(SubqueryRef)))

        return inner

    with rule(restricted_rule, Filter, wrong):
        yield None


@mutant
def union_restricted_in_its_first_part_only() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: UnionAll, pairs: Any, keys: Any) -> Any:
            made = right(node, pairs, keys)
            return replace(made, children=(made.children[0], *node.children[1:]))

        return inner

    with rule(restricted_rule, UnionAll, wrong):
        yield None


@mutant
def set_operation_restricted_on_its_right_side_only() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: SetOperation, pairs: Any, keys: Any) -> Any:
            return replace(right(node, pairs, keys), left=node.left)

        return inner

    with rule(restricted_rule, SetOperation, wrong):
        yield None


@mutant
def lateral_view_restricted_without_its_own_columns() -> Iterator[Sources | None]:
    """All that a row makes is taken, where a key is one of the values that it makes."""

    def wrong(right: Any) -> Any:
        def inner(node: Generate, pairs: Any, keys: Any) -> Any:
            made = right(node, pairs, keys)
            return made.child if isinstance(made, KeySemiJoin) else made

        return inner

    with rule(restricted_rule, Generate, wrong):
        yield None


@mutant
def lateral_view_of_the_new_state_only() -> Iterator[Sources | None]:
    with rule(affected_keys_rule, Generate, _plus_only):
        yield None


@mutant
def limit_as_a_filter() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        return lambda node, wanted, facts: affected_rows(node.child, wanted, facts)

    with rule(affected_keys_rule, Limit, wrong):
        yield None


@mutant
def no_guards() -> Iterator[Sources | None]:
    with replaced(plan, "guards_of", lambda *_: []):
        yield None


@mutant
def in_restricted_where_unknown_counts() -> Iterator[Sources | None]:
    """`NULL IN (...)` is taken to be the same, whether or not there are rows of other keys."""
    right = subquery.restricted_subqueries

    def wrong(subqueries: Any, pairs: Any, keys: Any) -> Any:
        return right([replace(one, nulls_count=False) for one in subqueries], pairs, keys)

    with replaced(condition, "restricted_subqueries", wrong):
        yield None


@mutant
def conditions_of_subqueries_kept_for_changed_rows() -> Iterator[Sources | None]:
    """A row that fails a subquery's condition now is thought to have failed it before."""

    def wrong(right: Any) -> Any:
        def inner(node: Filter, wanted: Any, facts: Any) -> AffectedRows:
            found = right(node, tuple(node.output), facts)
            kept = tuple(
                Filter(one, node.conditions, node.subqueries)
                for one in found.both()
                if set(node.output) <= set(one.output)
            )
            return AffectedRows(kept, kept).map(lambda one: only(one, wanted))

        return inner

    with rule(affected_keys_rule, Filter, wrong):
        yield None


@mutant
def settled_though_it_has_changed() -> Iterator[Sources | None]:
    """What a subquery leaves out now is thought to have been left out before."""
    with replaced(static_filters, "_is_static", lambda one, *_: one.kind != "scalar"):
        yield None


@mutant
def signs_without_lost_rows() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Scan, wanted: Any, facts: Any, values: Any) -> WeightedRows:
            (both,) = right(node, wanted, facts, values)
            return (both.children[1],)

        return inner

    with rule(delta_rule, Scan, wrong):
        yield None


@mutant
def signs_of_a_join_with_one_state() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: Join, wanted: Any, facts: Any, values: Any) -> WeightedRows:
            found: WeightedRows = right(node, wanted, facts, values)
            return tuple(at_new(part) for part in found) if node.kind == "inner" else found

        return inner

    def at_new(node: Any) -> Any:
        if isinstance(node, Scan):
            return replace(node, state="new") if node.state == "old" else node
        return map_children(node, at_new)

    with rule(delta_rule, Join, wrong):
        yield None


@mutant
def signs_past_a_subquery_that_changed() -> Iterator[Sources | None]:
    with replaced(weighted_delta, "_linked", lambda subqueries, facts: []):
        yield None


@mutant
def signs_of_groups_without_the_old_ones() -> Iterator[Sources | None]:
    right = weighted_delta._compared

    def wrong(node: Any, wanted: Any, facts: Any, values: Any) -> WeightedRows:
        return tuple(part.children[1] for part in right(node, wanted, facts, values))

    with replaced(weighted_delta, "_compared", wrong), rule(delta_rule, Aggregate, lambda _: wrong):
        yield None


@mutant
def signs_of_the_first_part_of_a_union() -> Iterator[Sources | None]:
    def wrong(right: Any) -> Any:
        def inner(node: UnionAll, wanted: Any, facts: Any, values: Any) -> WeightedRows:
            found: WeightedRows = right(replace(node, children=node.children[:1]), wanted, facts, values)
            return found

        return inner

    with rule(delta_rule, UnionAll, wrong):
        yield None


@mutant
def signs_of_a_lateral_view_that_only_gains() -> Iterator[Sources | None]:
    """What a row made, before it was lost, is taken for what it makes."""

    def wrong(right: Any) -> Any:
        def inner(node: Generate, wanted: Any, facts: Any, values: Any) -> WeightedRows:
            found = right(node, wanted, facts, values)
            return tuple(weighted_delta._with_sign(rows, wanted, 1) for rows in found)

        return inner

    with rule(delta_rule, Generate, wrong):
        yield None


@mutant
def shared_lookup_without_those_that_were_lost() -> Iterator[Sources | None]:
    right = shared_lookups._rows

    def wrong(lookup: Any, facts: Any) -> Any:
        made = right(lookup, facts)
        return made.children[0] if isinstance(made, UnionAll) else made

    with replaced(shared_lookups, "_rows", wrong):
        yield None


@mutant
def shared_lookup_of_both_states() -> Iterator[Sources | None]:
    with replaced(shared_lookups, "_of_state", lambda scan, state: scan):
        yield None


@mutant
def values_confined_by_what_has_changed() -> Iterator[Sources | None]:
    def wrong(values: Any, whole: Any, facts: Facts) -> Any:
        unchanged = {name: replace(known, changed=False) for name, known in facts.upstreams.items()}
        return right(values, whole, Facts(unchanged))

    right = weighted_delta.semi_join_reduced
    # Of the random tables none is much larger than another.
    with (
        replaced(weighted_delta, "semi_join_reduced", wrong),
        replaced(semi_join_reduction, "_LARGER", 0),
    ):
        yield None


@mutant
def rest_joined_without_what_links_it_to_the_changed() -> Iterator[Sources | None]:
    right = weighted_delta.joined

    def wrong(start: Any, others: Any, conditions: Any, wanted: Any, facts: Any) -> Any:
        if len(start.reached) > 1:
            conditions = [part for part in conditions if not columns_of(part) & set(start.rows.output)]
        return right(start, others, conditions, wanted, facts)

    with replaced(weighted_delta, "joined", wrong):
        yield None


@mutant
def rest_joined_with_one_changed_relation_only() -> Iterator[Sources | None]:
    right = weighted_delta._core

    def wrong(relations: Any, conditions: Any, facts: Any) -> Any:
        return right(relations, conditions, facts)[:1]

    with replaced(weighted_delta, "_core", wrong):
        yield None


@mutant
def range_of_the_first_part_only() -> Iterator[Sources | None]:
    right = range_pruning.range_of

    def wrong(node: Any, name: str, facts: Any) -> Any:
        if isinstance(node, UnionAll):
            return wrong(node.children[0], node.children[0].output[node.columns.index(name)], facts)
        return right(node, name, facts)

    with replaced(range_pruning, "range_of", wrong):
        yield None


@mutant
def met_by_the_first_of_several() -> Iterator[Sources | None]:
    right = lookup_keys._Marking._origins

    def wrong(self: Any, node: Any, name: str) -> Any:
        if isinstance(node, UnionAll):
            return wrong(self, node.children[0], node.children[0].output[node.columns.index(name)])
        return right(self, node, name)

    with replaced(lookup_keys._Marking, "_origins", wrong):
        yield None


@mutant
def met_by_any_rows() -> Iterator[Sources | None]:
    """All rows of a table are taken for changed ones."""
    right = lookup_keys._Marking._origins

    def wrong(self: Any, node: Any, name: str) -> Any:
        if isinstance(node, Scan) and node.source in self.facts.upstreams:
            return frozenset([(node.source, dict(node.columns)[name])])
        return right(self, node, name)

    with replaced(lookup_keys._Marking, "_origins", wrong):
        yield None


@mutant
def parts_excluded_though_asked_for() -> Iterator[Sources | None]:
    """Drops the parts whose constant is one of the requested values."""
    with replaced(union_branch_pruning, "_contradicts", lambda constant, values: constant in values):
        yield None


@mutant
def columns_equal_that_are_compared() -> Iterator[Sources | None]:
    """All columns of the conditions of inner joins are taken to be equal."""

    def wrong(conditions: Any) -> list[frozenset[str]]:
        return [columns_of(*conditions)]

    with replaced(column_equivalences, "_pairs", wrong):
        yield None


@mutant
def rows_beside_a_changed_row_left_out() -> Iterator[Sources | None]:
    def wrong(node: Any, wanted: Any) -> Any:
        return Filter(node, (exp.false(),))

    with replaced(join, "_without_one_rows", wrong):
        yield None


@mutant
def groups_of_the_first_set_only() -> Iterator[Sources | None]:
    right = aggregate._in_each_set

    def wrong(node: Aggregate, wanted: Any, rows: Any) -> Any:
        assert node.grouping_sets is not None
        return right(replace(node, grouping_sets=node.grouping_sets[:1]), wanted, rows)

    with replaced(aggregate, "_in_each_set", wrong):
        yield None


@mutant
def lateral_rows_numbered_together() -> Iterator[Sources | None]:
    """The first rows of all, and the groups of all, rather than of each outer row."""
    with replaced(lateral_subqueries, "_all", lambda compared, where: []):
        yield None


OWN_QUERIES = {
    # The random queries have no LIMIT, for which there is no incremental plan.
    "limit_as_a_filter": "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 ORDER BY o1 LIMIT 3",
    # A key that is in several partitions, which is rare.
    "window_restricted_to_some_of_a_partition": (
        "SELECT t1.x AS o1, sum(t1.z) OVER (PARTITION BY t1.y) AS o2 FROM a AS t1"
    ),
    # A row with NULL where the values are looked up that a refresh is about.
    "in_restricted_where_unknown_counts": (
        "SELECT t1.x AS o1, count(*) AS o2 FROM a AS t1 "
        "WHERE NOT (t1.x IN (SELECT t2.v FROM b AS t2) AND t1.y > 0) GROUP BY t1.x"
    ),
    # Of the values that b touches, those matter that c has with such an m: unless c has changed, too.
    "values_confined_by_what_has_changed": (
        "SELECT t2.id AS o1, t3.m AS o2 FROM b AS t2 JOIN c AS t3 ON t3.k = t2.v "
        "WHERE t3.m > 1 AND t2.w <= (SELECT max(t4.w) - 1 FROM b AS t4 WHERE t4.v = t3.k)"
    ),
    # Only a subquery.
    "project_without_its_subqueries": (
        "SELECT t1.id AS o1, (SELECT max(t2.v) FROM b AS t2 WHERE t2.aid = t1.id) AS o2 FROM a AS t1"
    ),
    # Keys of a table that changes of another one touch.
    "logged_rows_for_keys_of_others": (
        "SELECT t1.id AS o1, t2.v AS o2 FROM a AS t1 JOIN b AS t2 ON t2.aid < t1.x"
    ),
    # Keys of two tables, both of which have changed.
    "logged_rows_for_keys_of_several": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 UNION ALL SELECT t2.id, t2.v FROM b AS t2"
    ),
    # A row that changed by what it meets may be out of the range of those that changed by themselves.
    "range_of_the_first_part_only": (
        "SELECT t1.id AS o1, t3.x AS o2 "
        "FROM b AS t1 JOIN b AS t2 ON t1.v = t2.id JOIN a AS t3 ON t3.id = t1.id"
    ),
}
"""Mutants for which a query of their own is judged; the changes are random."""

OWN_SHAPES = {
    "parts_excluded_though_asked_for": "united channels",
    "columns_equal_that_are_compared": "chained equalities",
    "rows_beside_a_changed_row_left_out": "relations of one row",
    "groups_of_the_first_set_only": "grouping sets of a join",
    "windows_over_each_other_by_the_partition_of_one": "windows over each other",
    "lateral_rows_numbered_together": "lateral subqueries",
}
"""Mutants of rules for one shape, and which that is."""


def _has_own(name: str) -> bool:
    return name in OWN_QUERIES or name in OWN_SHAPES


def case_for(name: str, seed: int) -> Case:
    if name in OWN_QUERIES:
        unchanged = name == "range_of_the_first_part_only"
        return Case(seed, OWN_QUERIES[name], ("o1", "o2"), ("o1",), frozenset(), one_as_it_was=unchanged)
    return draw_shaped(seed, OWN_SHAPES[name]) if name in OWN_SHAPES else draw(seed)


def _is_caught(database: Database, name: str, ready: Prepared | None, case: Case) -> bool:
    """:param ready: the case, where what the mutant gets wrong comes after it is understood."""
    with MUTANTS[name]() as sources, suppress(Exception):
        found = judge(database, case, sources) if ready is None else compare(database, ready, sources)
        return found.outcome == "wrong"
    return False


def main() -> None:
    database, wanted = Database(), 3
    caught: dict[str, list[int]] = {name: [] for name in sys.argv[3:] or MUTANTS}
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        open_ = [name for name in caught if len(caught[name]) < wanted]
        general = [name for name in open_ if not _has_own(name)]
        drawn = prepare(database, draw(seed)) if general else None
        for name in general if isinstance(drawn, Prepared) else ():
            assert isinstance(drawn, Prepared)
            if _is_caught(database, name, drawn, drawn.case):
                caught[name].append(seed)
        for name in [name for name in open_ if _has_own(name)]:
            if _is_caught(database, name, None, case_for(name, seed)):
                caught[name].append(seed)
    for name, seeds in caught.items():
        sys.stdout.write(f'    "{name}": ({", ".join(map(str, seeds))},),\n')


if __name__ == "__main__":
    main()
