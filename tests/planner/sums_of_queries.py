"""Sums over random queries, and what changed added to the stored ones: in plain Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from dbt_arctic.planner.auxiliary.aggregate_maintenance import (
    Extreme,
    SummaryDelta,
    changes_sql,
    new_extremes_sql,
    plan_summary_delta,
)
from dbt_arctic.planner.delta.plan import guard_sql
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, InDuckDB, Prepared, Verdict, compare, inline, prepare
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import KEYS

OPERATORS = (
    "stored sums of groups",
    "stored sums of all rows",
    "stored extremes",
    "stored extremes that are lost",
    "stored counts of different values",
)

_Group = dict[str, object]
_Key = tuple[object, ...]
_LEFT = "groups_without_extreme"


class SeveralGroupsError(Exception):
    """Two groups of sums have one key."""


def draw_summed(seed: int) -> Case:
    dice = random.Random(f"summed/{seed}")
    return summed(
        draw(seed), extremes=dice.random() < 0.8, once=dice.random() < 0.3, whole=dice.random() < 0.38
    )


def summed(case: Case, *, extremes: bool = False, once: bool = False, whole: bool = False) -> Case:
    """Sums over a random query, by one of its columns or over all rows; optionally with the extremes, or with
    the number of distinct values.
    """
    group, value = case.columns[0], case.columns[-1]
    numbers = f"count(*) AS n, sum({value}) AS s, count({value}) AS c"
    names = ("n", "s", "c")
    if once:
        middle = case.columns[len(case.columns) // 2]
        numbers += f", count(DISTINCT {middle}) AS d, count(DISTINCT {value} + 1) AS e"
        names = (*names, "d", "e")
    if extremes:
        numbers, names = f"{numbers}, min({value}) AS low, max({value}) AS high", (*names, "low", "high")
    if whole:
        sql = f"SELECT 0 AS one, {numbers} FROM (\n{case.sql}\n) AS q"
        return replace(case, sql=sql, key=("one",), columns=("one", *names), operators=frozenset())
    sql = f"SELECT {group} AS g, {numbers} FROM (\n{case.sql}\n) AS q GROUP BY {group}"
    return replace(case, sql=sql, key=("g",), columns=("g", *names), operators=frozenset())


def judge_summed(database: Database, case: Case) -> Verdict:
    """By sums, where there is a plan of these, else by the affected keys."""
    ready = prepare(database, case)
    if isinstance(ready, Verdict):
        return ready
    return judge_sums(database, ready) or compare(database, ready, InDuckDB())


def judge_sums(database: Database, ready: Prepared) -> Verdict | None:
    """What changed, added to the stored sums, against the full query; ``None`` where that is not planned."""
    try:
        sums = plan_summary_delta(ready.query, ready.case.key, ready.facts)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    if sums is None:
        return None
    if any(database.rows(guard_sql(one, InDuckDB()))[0][0] for one in sums.guards):
        return Verdict("full", "guard", ready.changed)
    # Half of the cases have those rows at hand that else would be gathered.
    sums = sums.with_cached_lookups(KEYS if ready.case.seed % 2 else ())
    staged = (one.rows for one in (*sums.staged.affected_values, *sums.staged.shared_lookups))
    database.keep_met((sums.changes, *staged))
    groups, lost = _added(database, ready, sums)
    if lost and sums.new_extremes is None:
        return Verdict("full", "extreme", ready.changed)
    if lost:
        for row in _asked(database, sums, [groups[key] for key in lost]):
            groups[tuple(row[name] for name in sums.key)].update(row)
    found = Counter(tuple(group[name] for name in ready.case.columns) for group in groups.values())
    if found != ready.expected:
        return Verdict("wrong", f"sums {dict(found)}, not {dict(ready.expected)}", ready.changed)
    met = {OPERATORS[1] if sums.whole else OPERATORS[0]}
    met |= {OPERATORS[2]} if sums.extremes else set()
    met |= {OPERATORS[3]} if lost else set()
    met |= {OPERATORS[4]} if sums.looks_up else set()
    return Verdict("incremental", "", ready.changed, met=frozenset(met))


def _added(database: Database, ready: Prepared, sums: SummaryDelta) -> tuple[dict[_Key, _Group], set[_Key]]:
    """The current groups, and those that lost an extreme, which the changes alone do not show."""
    rows = (dict(zip(ready.case.columns, row, strict=True)) for row in ready.before)
    groups = {tuple(row[name] for name in sums.key): row for row in rows}
    net: dict[tuple[_Key, str], Counter[object]] = defaultdict(Counter)
    carried: dict[_Key, Counter[_Key]] = defaultdict(Counter)
    for key, row in groups.items():
        carried[key][tuple(row[name] for name in sums.carried)] += _number(row[sums.rows])
    sources = InDuckDB()
    text = None if sums.changes is None else changes_sql(sums, sources, inline(sums.staged, sources), {})
    for change in () if text is None else database.named_rows(text):
        key = tuple(change[name] for name in sums.key)
        group = groups.setdefault(key, {**dict.fromkeys(change), **dict(zip(sums.key, key, strict=True))})
        for name in (*sums.counts, *sums.counted):
            group[name] = _number(group[name]) + _number(change[name])
        carried[key][tuple(change[name] for name in sums.carried)] += _number(change[sums.rows])
        for name in sums.extremes:
            net[key, name][change[name]] += _number(change[sums.rows])
    if not sums.whole:
        groups = {key: group for key, group in groups.items() if group[sums.rows]}
    lost = set()
    for key, group in groups.items():
        values = [one for one, count in carried[key].items() if count]
        if sums.carried and len(values) != 1:
            raise SeveralGroupsError
        group.update(zip(sums.carried, values[0] if sums.carried else (), strict=True))
        group.update({name: None for name, counter in sums.counted.items() if not group[counter]})
        # Of these queries, a column that is derived is another one by a second name.
        group.update({name: group[text.strip("`")] for name, text in sums.derived.items()})
        for name, which in sums.extremes.items():
            is_known, group[name] = _extreme(which, group[name], net[key, name])
            lost |= set() if is_known else {key}
    return groups, lost


def _extreme(which: Extreme, old: object, net: Counter[object]) -> tuple[bool, object]:
    """Whether the changes determine the MIN or MAX, and its value."""
    best = min if which == "min" else max
    values = [_number(value) for value, count in net.items() if value is not None and count > 0]
    gone = {value for value, count in net.items() if value is not None and count < 0}
    gained = best(values, default=None)
    if old in gone and (gained is None or best(gained, _number(old)) != gained):
        return False, None
    return True, best((_number(one) for one in (old, gained) if one is not None), default=None)


def _asked(database: Database, sums: SummaryDelta, lost: Sequence[_Group]) -> list[_Group]:
    """The extremes of groups that have lost one, from all rows."""
    found = ([group[name] for name in sums.group_columns] for group in lost)
    rows = (", ".join("NULL" if one is None else str(one) for one in group) for group in found)
    values = ", ".join(f"({row})" for row in rows)
    names = ", ".join(f"key_{place}" for place in range(len(sums.group_columns)))
    database.connection.execute(
        f'CREATE OR REPLACE TEMP TABLE "{_LEFT}" AS SELECT * FROM (VALUES {values}) AS v({names})'
    )
    return database.named_rows(new_extremes_sql(sums, InDuckDB(), f"`{_LEFT}`", {}))


def _number(value: object) -> int:
    return value if isinstance(value, bool) else int(str(value or 0))
