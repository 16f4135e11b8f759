"""Runs a planner's SQL on DuckDB and compares it with the query itself, run in full.

A key need not be unique here: the rows of the affected keys are replaced, whatever they are.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, Node, State, scans
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import Renderer, Sources
from dbt_arctic.planner.delta.lookup_keys import with_lookup_keys
from dbt_arctic.planner.delta.plan import (
    Incremental,
    affected_sql,
    analyse_query,
    full_sql,
    guard_sql,
    plan_incremental,
    rows_sql,
)
from dbt_arctic.planner.delta.shared_lookups import share_lookups
from dbt_arctic.planner.delta.stages import (
    Collected,
    Staged,
    WithStaged,
    affected_values_sql,
    shared_lookup_sql,
)
from dbt_arctic.planner.delta.weighted_delta import NoDelta, weighted_rows
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.qualify import without_qualify
from tests.planner.random_queries import Case
from tests.planner.random_tables import KEYS, SCHEMAS, Row, Schemas, Tables, literal

ATTEMPTS = 3
"""How many changes are tried until one changes the result."""


class InDuckDB:
    """Upstreams as tables: ``a`` and ``a@old``, ``a@minus`` ...; ``a@lookup_new`` after ``keep_met``."""

    def relation(self, source: str, state: State) -> str:
        return f"`{source}`" if state == "new" else f"`{source}@{state}`"


@dataclass(frozen=True)
class Verdict:
    """What became of a case.

    :param why: the reason of a full refresh, or what is wrong.
    :param met: where it was run incrementally, the operators that this is about.
    """

    outcome: str
    why: str = ""
    changed: bool = False
    affected: int = 0
    total: int = 0
    met: frozenset[str] = frozenset()


def inline(staged: Staged, sources: Sources) -> dict[str, str]:
    """The queries of staged relations where these are not computed before."""
    named = {one.name: f"(\n{affected_values_sql(one, sources)}\n)" for one in staged.affected_values}
    for rows in staged.shared_lookups:
        named[rows.name] = f"(\n{shared_lookup_sql(rows, sources, named)}\n)"
    return named


def to_duckdb(sql: str) -> str:
    """Spark's SQL of these tests as DuckDB reads it."""
    text = sql.replace("`", '"').replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")
    text = _CALLED.sub(lambda found: f"spark_{found[0]}", _SUFFIXED.sub(r"\1", text))
    if _AGGREGATED.search(text):
        text = _AGGREGATED.sub(_of_lists, text)
    text = _LISTED_SETS.sub("GROUP BY GROUPING SETS", text.replace("<=>", "IS NOT DISTINCT FROM"))
    return _LATERAL.sub(_unnest, text) if "LATERAL VIEW" in text else text


_MACROS = (
    "positive(a) AS a",
    "raise_error(a) AS error(a)",
    "try_divide(a, b) AS CASE WHEN b <> 0 THEN a / b END",
    "spark_count_if(a) AS count(CASE WHEN a THEN 1 END)",
    "spark_nvl(a, b) AS coalesce(a, b)",
    "spark_ifnull(a, b) AS coalesce(a, b)",
    "spark_isnull(a) AS a IS NULL",
    "spark_isnotnull(a) AS a IS NOT NULL",
    "spark_int(a) AS CAST(a AS INT)",
    "size(a) AS len(a)",
    "array_join(a, b) AS array_to_string(a, b)",
    "sort_array(a, b := true) AS CASE WHEN b THEN list_sort(a) ELSE list_reverse_sort(a) END",
    "array_max(a) AS list_max(a)",
    "struct(a, b) AS row(a, b)",
    "named_struct(m, a, n, b) AS row(a, b)",
)
_INSIDE = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
_AGGREGATED = re.compile(
    rf"\b(?:(?P<collect>collect_list|collect_set|array_agg)\((?P<distinct>DISTINCT )?(?P<value>{_INSIDE})\)"
    rf"|(?P<list>listagg|string_agg)\((?P<args>{_INSIDE})\) WITHIN GROUP \()",
    re.IGNORECASE,
)
_SUFFIXED = re.compile(r"\b(\d+)(?:BD|[DL])\b")
_CALLED = re.compile(r"\b(?:count_if|nvl|ifnull|isnull|isnotnull|int)\(", re.IGNORECASE)
_LISTED_SETS = re.compile("GROUP BY (?:(?!GROUP BY).)* GROUPING SETS")
_ARRAY = re.compile(r"\barray\(", re.IGNORECASE)
_NAME = r'(?:\w+|"[^"]+")'
_LATERAL = re.compile(
    rf"LATERAL VIEW (OUTER )?(pos)?explode(_outer)?\((.*?)\) ({_NAME}) AS ({_NAME}(?:, {_NAME})?)",
    re.IGNORECASE | re.DOTALL,
)


def _of_lists(found: re.Match[str]) -> str:
    """Spark collects no NULLs, and DuckDB has the order of a list inside its parentheses."""
    if found["list"]:
        return f"string_agg({found['args']} "
    is_set = found["distinct"] is not None or found["collect"].lower() == "collect_set"
    distinct = "DISTINCT " * is_set
    return f"coalesce(list({distinct}{found['value']}) FILTER (WHERE {found['value']} IS NOT NULL), [])"


def _unnest(found: re.Match[str]) -> str:
    outer, place, also_outer, values, alias, names = found.groups()
    values = _ARRAY.sub("list_value(", values)
    if place:
        # Spark counts from 0, and returns the position first.
        rows = f"(SELECT p - 1, v FROM UNNEST({values}) WITH ORDINALITY AS u(v, p))"
    else:
        rows = f"UNNEST({values})"
    join, on = ("LEFT JOIN", " ON true") if outer or also_outer else ("CROSS JOIN", "")
    return f"{join} {'LATERAL ' * bool(place)}{rows} AS {alias}({names}){on}"


_STATES = {
    "": "state <> 1",
    "@old": "state <> 2",
    "@minus": "state = 1",
    "@plus": "state = 2",
    "@changed": "state > 0",
    "@keys": "state > 0",
    "@weighted": "state > 0",
}
"""Rows of both states are stored as 0, those of the old one alone as 1, those of the new one alone as 2."""


class Database:
    """The random tables, of whole numbers or of other types."""

    def __init__(self, schemas: Schemas = SCHEMAS) -> None:
        self.schemas = schemas
        self.connection = duckdb.connect(
            ":memory:", config={"threads": 1, "default_null_order": "nulls_first_on_asc_last_on_desc"}
        )
        self.connection.execute("SET enable_progress_bar = false")
        for macro in _MACROS:
            self.connection.execute(f"CREATE MACRO {macro}")
        self._loaded: dict[str, str] = {}
        for table, columns in schemas.items():
            self._store(table, [], [], [])
            listed = ", ".join(f'"{column}"' for column, _ in columns)
            for name, of_state in _STATES.items():
                sign = f", 2 * state - 3 AS {SIGN_OF_ROW}" if name == "@weighted" else ""
                query = f'SELECT {listed}{sign} FROM "{table}@rows" WHERE {of_state}'
                self.connection.execute(f'CREATE VIEW "{table}{name}" AS {query}')

    def load(self, old: Tables, new: Tables) -> None:
        for table in SCHEMAS:
            before, after = Counter(old[table]), Counter(new[table])
            minus, plus = (before - after).elements(), (after - before).elements()
            self._store(table, (before & after).elements(), minus, plus)

    def _store(self, table: str, same: Iterable[Row], minus: Iterable[Row], plus: Iterable[Row]) -> None:
        columns = [*self.schemas[table], ("state", "int")]
        kinds = [kind for _, kind in columns]
        values = ", ".join(
            "(" + ", ".join(map(literal, (*row, state), kinds)) + ")"
            for state, rows in enumerate((same, minus, plus))
            for row in rows
        )
        names = ", ".join(f'"{column}"' for column, _ in columns)
        typed = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in columns)
        nothing = "SELECT " + ", ".join("NULL" for _ in columns) + " WHERE false"
        body = f"VALUES {values}" if values else nothing
        text = f'CREATE OR REPLACE TABLE "{table}@rows" AS SELECT {typed} FROM ({body}) AS v({names})'
        if self._loaded.get(table) != text:
            self.connection.execute(text)
            self._loaded[table] = text

    def keep_met(self, nodes: Iterable[Node | None]) -> int:
        """Create only the rows that scans request; returns the number of these scans."""
        asked: dict[str, set[str]] = {}
        count = 0
        for scan in (scan for node in nodes if node is not None for scan in scans(node)):
            if scan.lookup_keys:
                count += 1
                keys = {f'SELECT "{column}" AS k FROM "{source}@keys"' for source, column in scan.lookup_keys}
                asked.setdefault(scan.source, set()).update(keys)
        for source, queries in asked.items():
            own, _ = self.schemas[source][0]
            met = " UNION ALL ".join(sorted(queries | {f'SELECT "{own}" AS k FROM "{source}@keys"'}))
            columns = ", ".join(f'"{column}"' for column, _ in self.schemas[source])
            for state, condition in (("new", "state <> 1"), ("old", "state <> 2")):
                self.connection.execute(
                    f'CREATE OR REPLACE VIEW "{source}@lookup_{state}" AS SELECT {columns} '
                    f'FROM "{source}@rows" AS r WHERE {condition} AND EXISTS '
                    f'(SELECT 1 FROM ({met}) AS m WHERE m.k IS NOT DISTINCT FROM r."{own}")'
                )
        return count

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return self.connection.execute(to_duckdb(sql)).fetchall()

    def named_rows(self, sql: str) -> list[dict[str, object]]:
        found = self.connection.execute(to_duckdb(sql))
        names = [name for name, *_ in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def at_old(sql: str) -> str:
    """The same query over the tables before the change."""
    return re.sub(r"\b([abc]) AS (t\d+|q_\d+)", r"`\1@old` AS \2", sql)


def facts_of(old: Tables, new: Tables, keys_of: Mapping[str, tuple[str, ...]] = KEYS) -> Facts:
    """What metadata may say of them: how many rows is a hint, and wrong as often as not; ranges hold."""
    dice = random.Random(repr((old, new)))
    # As often as not it is known of all tables how many rows have changed.
    counted = random.Random(repr((new, old))).random() < 0.5
    found = {}
    for table in SCHEMAS:
        before, after = Counter(old[table]), Counter(new[table])
        changed = [row[0] for row in ((before - after) + (after - before)).elements()]
        keys = [key for key in changed if key is not None] if keys_of[table] else []
        bounds = {keys_of[table][0]: ValueRange(str(min(keys)), str(max(keys)))} if keys else {}
        rows = dice.choice((None, len(new[table]), 1_000 * len(new[table])))
        said = dice.choice((None, len(changed), 10_000_000)) if changed else 0
        found[table] = UpstreamFacts(
            bool(changed),
            keys_of[table],
            rows=rows,
            changed_rows=len(changed) if counted else said,
            ranges=dice.choice(({}, bounds)),
            # Of one table the rows that changed are read at once, of the others by state.
            has_weights=table == "b",
        )
    # A result of few rows, or of an unknown number.
    return Facts(found, result_rows=dice.choice((None, 0)))


@dataclass(frozen=True)
class Prepared:
    """A case over loaded tables, with the rows before and after the change."""

    case: Case
    query: Query
    facts: Facts
    before: Counter[tuple[object, ...]]
    expected: Counter[tuple[object, ...]]

    @property
    def changed(self) -> bool:
        return self.before != self.expected


def prepare(database: Database, case: Case) -> Prepared | Verdict:
    """Load the tables of a case, run its query in full, and have it understood."""
    for attempt in range(ATTEMPTS):
        old, new = case.tables(attempt)
        database.load(old, new)
        try:
            before, expected = Counter(database.rows(at_old(case.sql))), Counter(database.rows(case.sql))
        except duckdb.Error as error:
            # DuckDB does not know every form of a correlated subquery that Spark does.
            return Verdict("not for duckdb", str(error).split("\n")[0])
        if before != expected:
            break
    changed = before != expected
    try:
        query = analyse_query(without_qualify(case.written or case.sql), database.schemas)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, changed)
    if Counter(database.rows(full_sql(query, InDuckDB()))) != expected:
        return Verdict("wrong", "the query was misunderstood", changed)
    return Prepared(case, query, facts_of(old, new, case.keys), before, expected)


def compare(database: Database, ready: Prepared, sources: Sources) -> Verdict:
    """The refresh of the affected keys against the full query."""
    changed, case = ready.changed, ready.case
    try:
        plan = plan_incremental(ready.query, case.key, ready.facts)
    except CannotPlan as error:
        return Verdict("full", error.reason.code, changed)

    def differs(plan: Incremental) -> bool:
        return any(database.rows(guard_sql(guard, sources))[0][0] for guard in plan.guards)

    met = case.operators
    if differs(plan):
        if plan.with_changed_scalars is None or differs(plan.with_changed_scalars):
            return Verdict("full", "guard", changed)
        plan, met = plan.with_changed_scalars, met | {"moved value"}
    elif wrong := compare_signed(database, ready, sources):
        return Verdict("wrong", wrong, changed)
    if plan.affected is None:
        return Verdict("wrong" if changed else "incremental", "no key can have changed", changed)
    database.keep_met((plan.affected, plan.rows))
    keys_sql = to_duckdb(affected_sql(plan, sources))
    database.connection.execute(f'CREATE OR REPLACE TEMP TABLE "affected" AS {keys_sql}')
    keys = set(database.rows("SELECT * FROM `affected`"))
    fresh = Counter(database.rows(rows_sql(plan, sources, "`affected`")))
    places = [case.columns.index(name) for name in case.key]
    kept = Counter(
        {row: count for row, count in ready.before.items() if tuple(row[p] for p in places) not in keys}
    )
    if kept + fresh != ready.expected:
        missing, extra = ready.expected - (kept + fresh), (kept + fresh) - ready.expected
        return Verdict("wrong", f"missing {dict(missing)}, too many {dict(extra)}, affected {keys}", changed)
    return Verdict("incremental", "", changed, len(keys), ready.expected.total(), met)


def compare_signed(database: Database, ready: Prepared, sources: Sources) -> str:
    """The rows that the result has gained and lost, as they were found, against both results."""
    names = tuple(dict.fromkeys(identifier for _, identifier in ready.query.columns))
    values = Collected()
    try:
        parts = weighted_rows(ready.query.node, names, ready.facts, values)
    except NoDelta:
        return ""
    gathering, gathered = share_lookups(parts, ready.facts)
    made_of = {one.name: one.rows for one in values.found}
    parts = tuple(with_lookup_keys(prune_columns(part), ready.facts, made_of) for part in parts)
    database.keep_met(parts)
    if wrong := _added_to(database, ready, parts, names, Staged(tuple(values.found)), sources):
        return wrong
    staged = Staged(tuple(values.found), gathered)
    return _added_to(database, ready, gathering, names, staged, sources) if gathered else ""


def _added_to(
    database: Database,
    ready: Prepared,
    parts: Iterable[Node],
    names: tuple[str, ...],
    staged: Staged,
    sources: Sources,
) -> str:
    places = [names.index(identifier) for _, identifier in ready.query.columns]
    found = Counter(ready.before)
    with_staged = WithStaged(sources, inline(staged, sources))
    for part in parts:
        for *row, sign in database.rows(Renderer(with_staged).query(prune_columns(part))):
            found[tuple(row[place] for place in places)] += int(str(sign))
    found = Counter({row: count for row, count in found.items() if count})
    how = "weighted rows over shared lookups" if staged.shared_lookups else "weighted rows"
    return "" if found == ready.expected else f"{how} give {found}, not {ready.expected}"


def judge(database: Database, case: Case, sources: Sources | None = None) -> Verdict:
    """Run a case: the refresh of the affected keys against the full query."""
    ready = prepare(database, case)
    return ready if isinstance(ready, Verdict) else compare(database, ready, sources or InDuckDB())
