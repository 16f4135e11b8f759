"""Sums by a key that is computed from the groups, added by the statement that Spark runs, on DuckDB.

Such a model stores the groups as well, in hidden columns where it does not select them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import duckdb

from dbt_arctic.auto.aggregate_delta import _columns
from dbt_arctic.keyed.group_totals import SEVERAL_GROUPS
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.summary_delta import (
    EXTREME_LOST,
    AffectedGroups,
    changed_groups,
    groups_to_recompute,
    groups_with_changes,
    net_changes,
)
from dbt_arctic.keyed.table import Column, Generation, KeyedTable, Layout
from dbt_arctic.keyed.version import Version
from dbt_arctic.planner.auxiliary.aggregate_maintenance import (
    SummaryDelta,
    changes_sql,
    new_extremes_sql,
    plan_summary_delta,
)
from dbt_arctic.planner.auxiliary.auxiliary_view import (
    columns_in_model_table,
    find_auxiliary_view,
    outer_sql,
    state_sql,
    with_state_sql,
    without_spare,
)
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, guard_sql
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import (
    Database,
    InDuckDB,
    Prepared,
    Verdict,
    at_old,
    compare,
    inline,
    prepare,
    to_duckdb,
)
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import KEYS
from tests.planner.states import _OLD, NAMES, STATE, judge_state, types_of_state
from tests.planner.sums_of_queries import SeveralGroupsError

OPERATORS = (
    "computed key",
    "hidden group",
    "attribute of a key",
    "conditional aggregates",
    "state by own key",
    "one row of several aggregates",
)

_KEPT = "groups_of_model"
_STORED, _NET, _GROUPS, _LEFT = (
    "stored_groups",
    "net_changes",
    "groups_with_changes",
    "groups_without_extreme",
)


def draw_computed(seed: int) -> Case:
    dice = random.Random(f"computed/{seed}")
    roll = dice.random()
    if roll < 0.17:
        return _of_attributes(seed, dice)
    if roll < 0.36:
        return _of_one_row(seed, dice)
    case = draw(seed)
    g, h, v = (f"q.{case.columns[place]}" for place in (0, len(case.columns) // 2, -1))
    names = [f"coalesce(CAST({one} AS STRING), '_')" for one in (g, h)]
    key, groups = dice.choice(
        [
            (f"coalesce({g}, {dice.choice([9, 9, 9, 0])})", [g]),
            (f"concat_ws('-', {', '.join(names)})", [g, h]),
            (f"md5(concat({names[0]}, '-', {names[1]}))", [g, h]),
        ]
    )
    groups = list(dict.fromkeys(groups))
    shown = [one for one in groups if dice.random() < 0.5]
    operators = {"computed key"} | ({"hidden group"} if len(shown) < len(groups) else set())
    items = [f"{key} AS k", *(f"{one} AS g{place}" for place, one in enumerate(shown))]
    if shown and dice.random() < 0.3:
        items.append(f"{shown[0]} + 1 AS g9")
    calls, more = _aggregates(dice, v, g)
    made = _summed(items, calls, f"(\n{case.sql}\n) AS q", groups, operators | more)
    if dice.random() < 0.4:
        limit = f" ORDER BY {dice.choice(['r0 DESC, k', 'k'])} LIMIT {dice.randint(1, 4)}"
        last = dice.choice([limit, f" HAVING {calls[0]} > 1"])
        made = replace(made, sql=made.sql + last, operators=frozenset(["state by own key"]))
    return replace(made, seed=seed)


def _of_attributes(seed: int, dice: random.Random) -> Case:
    """Groups by a key and by what it determines, which changes with the row of the key."""
    joined = "b AS t2 JOIN a AS t1 ON t2.aid = t1.id"
    relation, key, others, v = dice.choice(
        [
            (joined, "t1.id", ["t1.x"], "t2.v"),
            (joined, "t1.id", ["t1.x", "t1.y"], "t2.w"),
            ("c AS t3 LEFT JOIN a AS t1 ON t3.k = t1.id", "coalesce(t1.id, -1)", ["t1.id", "t1.z"], "t3.m"),
        ]
    )
    groups = others if "t1.id" in others else ["t1.id", *others]
    # Groups by a key are small, so nothing is hidden for them: they are to count by themselves.
    items = [f"{key} AS k", *(f"{one} AS g{place}" for place, one in enumerate(others))]
    items += ["count(*) AS n", f"sum({v}) AS s", f"count({v}) AS c"]
    calls = dice.sample([f"min({v})", f"max({v})", f"count_if({v} > 1)"], dice.choice([0, 0, 1, 2]))
    return replace(_summed(items, calls, relation, groups, {"attribute of a key"}), seed=seed)


def _of_one_row(seed: int, dice: random.Random) -> Case:
    """Aggregates of several tables in one row: relations that are joined, or values of subqueries."""
    case = draw(seed)
    relations = [
        (f"(\n{case.sql}\n) AS q", f"q.{case.columns[-1]}", f"q.{case.columns[0]}"),
        ("a AS t91", "t91.y", "t91.x"),
        ("b AS t92 JOIN a AS t93 ON t92.aid = t93.id", "t92.v", "t93.z"),
        ("c AS t94", "t94.m", "t94.k"),
        ("a AS t95 WHERE t95.z > 0", "t95.x", "t95.y"),
    ]
    chosen = dice.sample(relations, dice.choice([2, 2, 3]))
    parts = [(f"{dice.choice(_aggregates(dice, v, g)[0])}", relation) for relation, v, g in chosen]
    names = [f"r{place}" for place in range(len(parts))]
    if dice.random() < 0.5:
        values = [f"(SELECT {call} FROM {relation})" for call, relation in parts]
        listed = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        sql = f"SELECT 0 AS k, {listed}"
    else:
        rows = [f"(SELECT {call} AS n FROM {relation}) AS p{i}" for i, (call, relation) in enumerate(parts)]
        listed = ", ".join(f"p{place}.n AS {name}" for place, name in enumerate(names))
        if not any("bool" in call for call, _ in parts):
            listed, names = f"{listed}, p0.n + p1.n AS r9", [*names, "r9"]
        sql = f"SELECT 0 AS k, {listed} FROM {' CROSS JOIN '.join(rows)}"
    return Case(seed, sql, ("k", *names), ("k",), frozenset(["one row of several aggregates"]))


def _aggregates(dice: random.Random, v: str, group: str) -> tuple[list[str], set[str]]:
    condition = f"{dice.choice([v, group])} {dice.choice(['> 1', '<= 1', 'IS NULL'])}"
    plain = ["count(*)", f"sum({v})", f"count({v})", f"avg({v})", f"avg(CAST({v} AS BIGINT))"]
    plain += [f"min({v})", f"max({v})"]
    conditional = [
        f"sum({v}) FILTER (WHERE {condition})",
        f"count(*) FILTER (WHERE {condition})",
        f"count_if({condition})",
        f"bool_or({v} > 0) FILTER (WHERE {condition})",
        f"max({v}) FILTER (WHERE {condition})",
        f"count(DISTINCT {v}) FILTER (WHERE {condition})",
        f"sum(CASE WHEN {condition} THEN {v} ELSE 0 END)",
    ]
    calls = dice.sample(plain, dice.randint(1, 2))
    if dice.random() < 0.25:
        return calls, set()
    return [*calls, *dice.sample(conditional, dice.randint(1, 2))], {"conditional aggregates"}


def _summed(
    items: Sequence[str], calls: Sequence[str], relation: str, groups: Sequence[str], operators: set[str]
) -> Case:
    items = [*items, *(f"{call} AS r{place}" for place, call in enumerate(calls))]
    sql = f"SELECT {', '.join(items)} FROM {relation} GROUP BY {', '.join(groups)}"
    columns = tuple(item.rsplit(" AS ", 1)[1] for item in items)
    return Case(0, sql, columns, ("k",), frozenset(operators))


def judge_computed(database: Database, case: Case) -> Verdict:
    ready = prepare(database, case)
    if isinstance(ready, Verdict):
        return ready
    ready = replace(ready, query=with_exact_averages(ready.query))
    if "state by own key" in case.operators:
        return _judge_state(database, ready)
    if _is_repeated(ready, ready.before):
        return Verdict("full", "a key that is not unique", ready.changed)
    try:
        found = _with_hidden(database, ready)
        sums = None if found is None else plan_summary_delta(found[0].query, case.key, ready.facts)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, ready.changed)
    if found is None or sums is None:
        return compare(database, ready, InDuckDB())
    if any(database.rows(guard_sql(one, InDuckDB()))[0][0] for one in sums.guards):
        return Verdict("full", "guard", ready.changed)
    try:
        rows = _refreshed(database, *found, sums)
    except duckdb.InvalidInputException as error:
        if SEVERAL_GROUPS in str(error) and _is_repeated(ready, ready.expected):
            return Verdict("full", "a key that is not unique", ready.changed)
        if EXTREME_LOST in str(error) and sums.new_extremes is None:
            return Verdict("full", "extreme", ready.changed)
        raise
    expected = {row[0]: row for row in database.rows(found[0].case.sql)}
    places = [found[0].case.columns.index(name) for name in case.columns]
    visible = Counter(tuple(row[place] for place in places) for row in expected.values())
    if visible != ready.expected:
        return Verdict("wrong", f"with hidden columns {visible}, not {ready.expected}", ready.changed)
    spare = [found[0].case.columns.index(name) for name in sums.spare]
    for place in spare:  # It may be unknown, and nothing reads it.
        rows, expected = (
            {key: (*row[:place], None, *row[place + 1 :]) for key, row in one.items()}
            for one in (rows, expected)
        )
    if rows != expected or _is_repeated(ready, ready.expected):
        return Verdict("wrong", f"sums {rows}, not {expected}", ready.changed)
    return Verdict("incremental", "", ready.changed, met=case.operators)


def _judge_state(database: Database, ready: Prepared) -> Verdict:
    """The refresh of a state by the model's key, and what follows from it, against the full query."""
    made = find_auxiliary_view(ready.query, ready.case.key, KEYS)
    if made is None:
        return compare(database, ready, InDuckDB())
    made = without_spare(made)
    own: Verdict | None = None
    with suppress(SeveralGroupsError):
        own = judge_state(database, ready, made)
    keys, was = (database.rows(f"SELECT {', '.join(made.key)} FROM `{STATE}{old}`") for old in ("", "@old"))
    if len(set(keys)) < len(keys) or len(set(was)) < len(was):
        return Verdict("full", "a key that is not unique", ready.changed)
    if own is None:
        return Verdict("wrong", "two groups were taken to have one key", ready.changed)
    if own.outcome != "incremental":
        return replace(own, changed=ready.changed)
    if any(None in row for row in keys):
        return Verdict("wrong", "a key that is NULL", ready.changed)
    over = outer_sql(made, f"`{STATE}`", types_of_state(database))
    if (found := Counter(database.rows(over))) != ready.expected:
        return Verdict("wrong", f"over the state {found}, not {ready.expected}\n{over}", ready.changed)
    return replace(own, changed=ready.changed, met=own.met | ready.case.operators)


def _is_repeated(ready: Prepared, rows: Any) -> bool:
    keys = [row[ready.case.columns.index("k")] for row in rows.elements()]
    return len(set(keys)) < len(keys)


def _with_hidden(database: Database, ready: Prepared) -> tuple[Prepared, str] | None:
    """The query with its hidden columns, and the same before the change; ``None`` if there is no such."""
    made = find_auxiliary_view(ready.query, ready.case.key, KEYS)
    if made is None:
        columns = ", ".join(f"`{name}`" for name in ready.case.columns)
        was = f"SELECT {columns} FROM ({at_old(ready.case.sql)}) AS o"
        return ready, was
    stored = columns_in_model_table(made)
    if stored is None:
        return None
    text = to_duckdb(state_sql(made, NAMES))
    database.connection.execute(f'CREATE OR REPLACE TEMP VIEW "{_KEPT}" AS {text}')
    types = types_of_state(database, _KEPT)
    text, was = (with_state_sql(made, names, stored, types) for names in (NAMES, _OLD))
    query = analyse_query(text, database.schemas)
    columns = tuple(name for name, _ in query.columns)
    return replace(ready, case=replace(ready.case, sql=text, columns=columns), query=query), was


def _refreshed(
    database: Database, ready: Prepared, was: str, sums: SummaryDelta
) -> dict[object, tuple[object, ...]]:
    """The stored groups after the statement, by their key."""
    run = database.connection.execute
    run(f'CREATE OR REPLACE TEMP TABLE "{_STORED}" AS {to_duckdb(was)}')
    types = types_of_state(database, _STORED)
    columns = tuple(Column(name, _SPARK.get(types[name], types[name])) for name in ready.case.columns)
    layout = Layout(1, "k", (), ("k",))
    table = KeyedTable(Name("lake", "shop", "model"), Generation(1, "b", "c"), ("k",), layout, columns)
    staged = (one.rows for one in (*sums.staged.affected_values, *sums.staged.shared_lookups))
    database.keep_met((sums.changes, *staged))
    sources = InDuckDB()
    rows = {row[0]: row for row in database.rows(f"SELECT * FROM {_STORED}")}
    if sums.changes is None:
        return rows
    changes, named = changes_sql(sums, sources, inline(sums.staged, sources), {}), _columns(table, sums)
    affected = None
    if sums.new_extremes is not None or ready.case.seed % 2:
        net_sql = to_duckdb(net_changes(changes, table, named))
        run(f'CREATE OR REPLACE TEMP TABLE "{_NET}" AS {net_sql}')
        affected, changes = AffectedGroups(f"SELECT k FROM {_NET}"), f"SELECT * FROM {_NET}"

    def stored(*given: object, in_place: bool) -> str:
        return f"SELECT * FROM {_STORED}{f' WHERE k IN ({given[-1]})' if given[-1] else ''}"

    with patch("dbt_arctic.keyed.summary_delta.merge_on_read", stored):
        groups = groups_with_changes(table, named, changes, Version(1, 2, 3), {}, affected=affected)
    run(f'CREATE OR REPLACE TEMP TABLE "{_GROUPS}" AS {to_duckdb(groups)}')
    groups, recomputed = f"SELECT * FROM {_GROUPS}", ""
    if sums.new_extremes is not None:
        lost = to_duckdb(groups_to_recompute(named, groups, sums.group_columns))
        run(f'CREATE OR REPLACE TEMP TABLE "{_LEFT}" AS {lost}')
        if database.rows(f"SELECT 1 FROM {_LEFT} LIMIT 1"):
            recomputed = new_extremes_sql(sums, sources, f"`{_LEFT}`", {})
    for row in database.named_rows(changed_groups(table, named, groups, recomputed=recomputed)):
        if row["_action"] == "D":
            del rows[row["k"]]
        else:
            rows[row["k"]] = tuple(row[name] for name in ready.case.columns)
    return rows


_SPARK = {"integer": "int", "varchar": "string"}
