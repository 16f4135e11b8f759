"""Models over rows that are cached for several of them, on DuckDB: each reads the rows that it needs.

Only the tables are simulated: the plans, the requests and the cache are those of the product.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest

from dbt_arctic.auto import shared_reads
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.plan import ByKeys, BySummaryDelta, Header
from dbt_arctic.auto.upstream_relations import Sources
from dbt_arctic.auto.upstreams import Upstream, weighted_changes_sql
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.algebra.operators import State
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import changes_sql, plan_summary_delta
from dbt_arctic.planner.delta.plan import affected_sql, analyse_query, guard_sql, plan_incremental, rows_sql
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.store.context import Context
from dbt_arctic.store.row_cache import SharedRows
from tests.extent import extent
from tests.planner.oracle import inline, to_duckdb

Row = tuple[int | None, ...]
Tables = dict[str, dict[Row, Row]]
"""Rows by their keys."""

SCHEMAS = {
    "o": (("id", "int"), ("cust", "int"), ("x", "int"), ("prev", "int")),
    "l": (("oid", "int"), ("ln", "int"), ("amt", "int"), ("ref", "int")),
    "p": (("pid", "int"), ("y", "int"), ("cat", "int")),
}
KEYS = {"o": ("id",), "l": ("oid", "ln"), "p": ("pid",)}
ROWS = {"o": 1000, "l": 4000, "p": 500}
LINKS = ("id", "oid", "pid", "ref", "prev", "cust")
SEEDS = extent(14, 40)


@dataclass(frozen=True)
class OldTable:
    """The old table, of which some rows are read by the first column of their key."""

    table: str

    def rows(self, keys: str, by: list[str]) -> str:
        return (
            f"SELECT b.* FROM {self.table}_old AS b LEFT SEMI JOIN (\n{keys}\n) AS k ON b.{by[0]} = k.{by[0]}"
        )


@dataclass
class World:
    """Tables before and after a change, and what is kept of them."""

    connection: duckdb.DuckDBPyConnection
    upstreams: dict[str, Upstream] = field(default_factory=dict)
    shared: SharedRows = field(default_factory=SharedRows)
    alongside: Any = None

    def load(self, old: Tables, new: Tables, ranged: bool = False, images: str = "") -> None:
        for table, columns in SCHEMAS.items():
            names = ", ".join(name for name, _ in columns)
            for state, rows in (("old", old[table]), ("new", new[table])):
                typed = ", ".join(f"{name} {type_}" for name, type_ in columns)
                self._fill(f"{table}_{state}", typed, list(rows.values()))
            logged = [
                key for key in {**old[table], **new[table]} if old[table].get(key) != new[table].get(key)
            ]
            self._fill(f"{table}_keys", ", ".join(f"{name} int" for name in KEYS[table]), logged)
            states: dict[State, str] = {"new": f"SELECT * FROM {table}_new"}
            if logged:
                on = " AND ".join(f"b.{name} = k.{name}" for name in KEYS[table])
                minus, plus = (
                    f"SELECT {names} FROM {table}_{state} AS b LEFT SEMI JOIN {table}_keys AS k ON {on}"
                    for state in ("old", "new")
                )
                states |= {
                    "old": f"SELECT * FROM {table}_old",
                    "minus": minus,
                    "plus": plus,
                    "keys": f"SELECT * FROM {table}_keys",
                    "changed": f"{minus}\nUNION ALL\n{plus}",
                    "weighted": weighted_changes_sql(minus, plus, names),
                }
            first = [int(str(key[0])) for key in logged]
            self.upstreams[table] = Upstream(
                Name("lake", "shop", table),
                columns,
                KEYS[table],
                Consumed("", ""),
                states,
                bool(logged),
                changed_rows=len(logged),
                rows=ROWS[table],
                row_bytes=100 if len(first) % 2 else 1000,
                logged=bool(logged),
                images=bool(logged) and table == images,
                ranges={KEYS[table][0]: ValueRange(str(min(first)), str(max(first)))}
                if ranged and first
                else {},
                old_table=OldTable(table) if logged else None,  # type: ignore[arg-type]
            )
        self.shared = SharedRows()

    def _fill(self, table: str, columns: str, rows: list[Row]) -> None:
        self.connection.execute(f"CREATE OR REPLACE TABLE {table} ({columns})")
        if rows:
            marks = ", ".join("?" for _ in rows[0])
            self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def run(self, step: str, sql: str, table: object = None) -> int:
        if step == "name_rows":
            self.rows(sql.replace("GLOBAL TEMPORARY VIEW", "VIEW"))
        return 0

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(to_duckdb(sql).replace('"global_temp".', "")).fetchall()

    def full(self, sql: str, state: str) -> Counter[tuple[Any, ...]]:
        text = re.sub(r"\b([olp]) (AS|GROUP|WHERE)", rf"\1_{state} \2", sql)
        return Counter(self.connection.execute(text).fetchall())

    @property
    def facts(self) -> Facts:
        return Facts(
            {
                table: UpstreamFacts(
                    one.changed,
                    one.key,
                    one.rows,
                    one.changed_rows,
                    one.ranges,
                    logged=one.logged,
                    has_weights="weighted" in one.states,
                )
                for table, one in self.upstreams.items()
            }
        )

    def shared_plan(self, kind: Any, query: Query, made: Any) -> Any:
        """The plan of a kind, over rows that are kept for several models."""
        inputs = ModelInputs(self.upstreams)
        plan = kind(Header("model", None, "", inputs, {}, {}), query, made, full_refresh_above=1)
        nothing: Any = None
        context = Context(
            catalog=nothing,
            run=self.run,
            query_schema=nothing,
            query=self.rows,
            shared=self.shared,
            alongside=self.alongside,
        )
        return shared_reads.with_shared_rows(context, Name("lake", "shop", "model"), plan)

    def guarded(self, plan: Any) -> bool:
        sources = Sources(self.upstreams)
        return any(self.rows(guard_sql(guard, sources))[0][0] for guard in plan.guards)

    def by_summary_delta(self, sql: str) -> tuple[Counter[tuple[Any, ...]], bool] | None:
        """The sums after a refresh, and whether it went over kept rows instead of gathered ones."""
        query = analyse_query(sql, SCHEMAS)
        sums = plan_summary_delta(query, ("g",), self.facts)
        if sums is None or sums.changes is None or self.guarded(sums):
            return None
        plan = self.shared_plan(BySummaryDelta, query, sums)
        changes = changes_sql(
            plan.summary_delta, plan.sources, inline(plan.summary_delta.staged, plan.sources), {}
        )
        totals = {group: [rows, total or 0, values] for group, rows, total, values in self.full(sql, "old")}
        for group, *added in self.rows(f"SELECT g, sum(n), sum(s), sum(c) FROM ({changes}) GROUP BY g"):
            stored = totals.get(group, [0, 0, 0])
            totals[group] = [one + (more or 0) for one, more in zip(stored, added, strict=True)]
        found = Counter(
            (group, rows, total if values else None, values)
            for group, (rows, total, values) in totals.items()
            if rows
        )
        return found, sums.over_cached is not None and plan.summary_delta.over_cached is None

    def by_keys(self, sql: str) -> Counter[tuple[Any, ...]] | None:
        query = analyse_query(sql, SCHEMAS)
        made = plan_incremental(query, ("g",), self.facts)
        if made.affected is None or self.guarded(made):
            return None
        plan = self.shared_plan(ByKeys, query, made)
        keys = {key for (key,) in self.rows(affected_sql(made, plan.sources))}
        self.rows("CREATE OR REPLACE TEMP TABLE affected AS " + affected_sql(made, plan.sources))
        kept = Counter({row: count for row, count in self.full(sql, "old").items() if row[0] not in keys})
        return kept + Counter(self.rows(rows_sql(made, plan.sources, "`affected`")))


@pytest.fixture(scope="module")
def world() -> World:
    return World(duckdb.connect(":memory:", config={"threads": 1}))


def drawn_tables(dice: random.Random) -> tuple[Tables, Tables]:
    old: Tables = {}
    new: Tables = {}

    def row(table: str, key: Row) -> Row:
        rest = len(SCHEMAS[table]) - len(key)
        return (*key, *(None if dice.random() < 0.15 else dice.randint(0, 5) for _ in range(rest)))

    for table in SCHEMAS:
        keys = (
            [(one, line) for one in range(6) for line in range(3)]
            if table == "l"
            else [(n,) for n in range(8)]
        )
        chosen = dice.sample(keys, len(keys) // 2 + 1)
        old[table] = {key: row(table, key) for key in chosen}
        new[table] = dict(old[table])
        for key in keys if dice.random() < 0.8 else ():
            if key in new[table] and dice.random() < 0.12:
                del new[table][key]
            elif dice.random() < 0.2:
                new[table][key] = row(table, key)
    return old, new


def drawn_query(dice: random.Random) -> str:
    """Sums over joins by keys and other columns, with subqueries, aggregates and outer joins among them."""
    there: list[str] = []
    sql = ""
    for place in range(dice.randint(1, 4)):
        table, alias = dice.choice("oollp"), f"t{place}"
        source, key = table, f"{alias}.{KEYS[table][0]}"
        if table == "l" and dice.random() < 0.2:
            source = "(SELECT oid, sum(amt) AS amt, max(ref) AS ref, count(*) AS ln FROM l GROUP BY oid)"
        elif table == "p" and dice.random() < 0.3:
            source = "(SELECT pid, sum(y) AS y, max(cat) AS cat FROM p GROUP BY pid)"
        own = [f"{alias}.{name}" for name, _ in SCHEMAS[table]]
        links = [one for one in there if one.split(".")[1] in LINKS]
        if place:
            kind = dice.choice(("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "FULL JOIN"))
            mine = key if dice.random() < 0.75 else dice.choice(own)
            sql += f" {kind} {source} AS {alias} ON {mine} = {dice.choice(links)}"
        else:
            sql = f"{source} AS {alias}"
        there += own
    links = [one for one in there if one.split(".")[1] in LINKS]
    if dice.random() < 0.5:
        table, word = dice.choice("olp"), dice.choice(("EXISTS", "NOT EXISTS"))
        met = f"e.{KEYS[table][0]} = {dice.choice(links)} AND e.{SCHEMAS[table][1][0]} > 1"
        sql += f" WHERE {word} (SELECT 1 FROM {table} AS e WHERE {met})"
    group, value = dice.choice(there), dice.choice(there)
    shown = f"{group} AS g, count(*) AS n, sum({value}) AS s, count({value}) AS c"
    return f"SELECT {shown} FROM {sql} GROUP BY {group}"


def test_random_models_over_kept_rows_are_those_of_their_queries(world: World) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        dice = random.Random(seed)
        world.load(*drawn_tables(dice), ranged=dice.random() < 0.5, images=dice.choice(("", "", "", "p")))
        for _ in range(6):
            sql = drawn_query(dice)
            try:
                expected = world.full(sql, "new")
                summed = world.by_summary_delta(sql)
                keyed = world.by_keys(sql)
            except CannotPlan:
                continue
            except duckdb.BinderException:
                continue  # a form of subquery that DuckDB does not know
            if summed is not None:
                assert summed[0] == expected, f"seed {seed}, sums: {sql}"
                seen["over kept rows" if summed[1] else "sums"] += 1
            if keyed is not None:
                assert keyed == expected, f"seed {seed}, keys: {sql}"
                seen["keys"] += 1
    assert min(seen[what] for what in ("sums", "over kept rows", "keys")) >= SEEDS // 4, seen


def test_whatever_is_expected_models_are_those_of_their_queries(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are said to ask for any columns, and for the rows that any keys meet."""
    seen: Counter[str] = Counter()

    def requested_by_others(
        catalog: object, alongside: random.Random, target: Name, upstream: Upstream, *_: object
    ) -> Any:
        if alongside.random() < 0.3:
            return None
        changed = [(one, one.key[0]) for one in world.upstreams.values() if one.logged and not one.images]
        keys = alongside.sample(changed, alongside.randint(0, len(changed)))
        seen["expected keys" if keys else "expected columns"] += 1
        columns = [name for name, _ in upstream.columns]
        return alongside.sample(columns, alongside.randint(0, len(columns))), keys

    monkeypatch.setattr(shared_reads, "expected_requests", requested_by_others)
    for seed in range(SEEDS):
        dice = random.Random(f"expected {seed}")
        world.load(*drawn_tables(dice), ranged=dice.random() < 0.5, images=dice.choice(("", "", "", "p")))
        monkeypatch.setattr(world, "alongside", dice)
        for _ in range(4):
            sql = drawn_query(dice)
            try:
                expected = world.full(sql, "new")
                summed, keyed = world.by_summary_delta(sql), world.by_keys(sql)
            except (CannotPlan, duckdb.BinderException):
                continue
            assert summed is None or summed[0] == expected, f"seed {seed}, sums: {sql}"
            assert keyed is None or keyed == expected, f"seed {seed}, keys: {sql}"
            seen["compared"] += summed is not None or keyed is not None
    assert min(seen[what] for what in ("expected keys", "expected columns", "compared")) >= SEEDS // 4, seen


def test_rows_that_only_the_plan_over_cached_rows_reads_are_requested_too(world: World) -> None:
    """Order 1 goes to another customer, while of p a row has changed that no order has."""
    orders = {(1,): (1, 10, 5, 0), (2,): (2, 20, 5, 0)}
    lines = {(1, 1): (1, 1, 7, 0), (2, 1): (2, 1, 7, 0)}
    parts = {(1,): (1, 100, 3), (2,): (2, 200, 3), (99,): (99, 5, 3)}
    world.load(
        {"o": {**orders}, "l": {**lines}, "p": {**parts}},
        {"o": {**orders, (1,): (1, 30, 5, 0)}, "l": {**lines}, "p": {**parts, (99,): (99, 6, 3)}},
    )
    sql = (
        "SELECT t0.cust AS g, count(*) AS n, sum(t2.y) AS s, count(t2.y) AS c FROM o AS t0 "
        "LEFT JOIN l AS t1 ON t1.oid = t0.id "
        "JOIN (SELECT pid, sum(y) AS y FROM p GROUP BY pid) AS t2 ON t2.pid = t0.id GROUP BY t0.cust"
    )
    for over_cached in (False, True):
        assert world.by_summary_delta(sql) == (world.full(sql, "new"), over_cached)
