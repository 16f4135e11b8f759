"""The stages of a plan: the command line prints what a run sends, for TPC-H and the example's models.

No Spark: statements are recorded, and the results of intermediate queries are simulated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from benchmarks.tpch.example import example_models
from dbt_arctic.auto import aggregate_delta, execute_table
from dbt_arctic.auto.fallbacks import fallbacks_of
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.plan import ByKeys, BySummaryDelta, Full, Header, RefreshPlan
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.auto.stages import stages_of, stages_with_sql
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.group_totals import BELOW_ZERO
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.summary_delta import EXTREME_LOST
from dbt_arctic.keyed.table import Column, Generation, KeyedTable, Layout
from dbt_arctic.keyed.version import FINGERPRINT, Consumed, Version
from dbt_arctic.planner.algebra.operators import State
from dbt_arctic.planner.auxiliary.aggregate_maintenance import SummaryDelta, plan_summary_delta
from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view, state_sql
from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.computed_write import Attempt, WriteResult
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from tests.planner import printed_plan, tpch_data
from tests.planner.test_tpch import CHANGING, TIES, unlimited

TARGET = Name("lake", "shop", "model")
NOTHING: Any = None
STORED = 1000
EXAMPLE = example_models()
LAYERS = {name: model.key for name, model in EXAMPLE.items() if model.is_read}
"""The models of the example that other models read, with their keys."""


class Recorder:
    """A context that keeps what it is sent; ``differs``: whether a guard's two states do."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answers: dict[str, str] = {}
        self.differs = False
        self.count = 5
        self.errors: list[StatementError] = []
        self.context = Context(NOTHING, self.run, NOTHING, self.query)

    def run(self, step: str, sql: str, table: object = None) -> int:
        self.sent.append(sql)
        if step == "refresh" and self.errors:
            raise self.errors.pop(0)
        return 1

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        self.sent.append(sql)
        if sql.startswith("SELECT count(*) > 0"):
            return [(self.differs,)]
        if not sql.startswith("SELECT count(*), CAST(min("):
            return [("7", "int")]
        columns = re.findall(r"CAST\(min\(`(\w+)`\)", sql)
        found: list[Any] = [self.count]
        for column in columns:
            low, high = str(len(self.answers) + 100), str(len(self.answers) + 900)
            self.answers |= {f"min_{column}": low, f"max_{column}": high}
            found += [low, high, self.count, "int"]
        return [tuple(found)]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()

    def write_with_retries(
        context: Context, table: KeyedTable, purpose: Any, statement: Callable[[Attempt], str], **more: Any
    ) -> WriteResult | None:
        change: Any = SimpleNamespace(history=list, columns=())
        if more["pointless"](change):
            return None
        attempt = Attempt(change, Version(1, 2, 3), {}, 1, "branch")
        sql = statement(attempt)
        return WriteResult(context.run(purpose.step, sql, table), sql, attempt)

    monkeypatch.setattr(execute_table, "write_with_retries", write_with_retries)
    for module in (execute_table, aggregate_delta):
        monkeypatch.setattr(module, "stored_rows", lambda catalog, table: STORED)
        monkeypatch.setattr(module, "logged_at", lambda *given: "several")
    monkeypatch.setattr(
        aggregate_delta, "consistent_pair", lambda *given: (None, SimpleNamespace(columns=()))
    )
    monkeypatch.setattr(aggregate_delta, "version_of", lambda *given: Version(1, 2, 3))
    monkeypatch.setattr(aggregate_delta, "columns_of", lambda *given: {})
    return made


def tables(data: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The columns of TPC-H's tables, and of the example's models that other models read."""
    found = {**tpch_data.schemas(data)}
    for name in LAYERS:
        data.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {EXAMPLE[name].sql}")
        found[name] = [(column, type_) for column, type_, *_ in data.execute(f"DESCRIBE {name}").fetchall()]
    return found


def inputs(data: duckdb.DuckDBPyConnection) -> ModelInputs:
    """The tables as a catalog would describe them."""
    upstreams = {}
    for table, columns in tables(data).items():
        is_changed = table in tpch_data.CHANGED or table in LAYERS
        states: list[State] = ["new", "old", "minus", "plus", "changed", "keys", "weighted"]
        upstreams[table] = Upstream(
            Name("lake", "shop", table),
            tuple(columns),
            {**tpch_data.TABLE_KEYS, **LAYERS}[table],
            Consumed("", ""),
            {state: f"SELECT * FROM {table}_{state}" for state in states},
            is_changed,
            changed_rows=60 if is_changed else 0,
            rows=tpch_data.ROWS.get(table, 1000),
        )
    return ModelInputs(upstreams)


def header(data: duckdb.DuckDBPyConnection) -> Header:
    consumed = {FINGERPRINT: Consumed("", "")}
    return Header("model", None, "SELECT the whole query", inputs(data), consumed, consumed)


def by_keys(name: str, data: duckdb.DuckDBPyConnection) -> ByKeys:
    query = analyse_query(unlimited(tpch_data.QUERIES[name]), tpch_data.schemas(data))
    made = plan_incremental(query, tpch_data.KEYS[name], tpch_data.FACTS, TIES)
    return ByKeys(header(data), query, made, full_refresh_above=0.3)


def by_summary_delta(name: str, data: duckdb.DuckDBPyConnection) -> BySummaryDelta:
    schemas = tpch_data.schemas(data)
    made = find_auxiliary_view(
        analyse_query(tpch_data.QUERIES[name], schemas), tpch_data.KEYS[name], tpch_data.TABLE_KEYS
    )
    assert made is not None
    query = analyse_query(state_sql(made, {one: one for one in tpch_data.TABLE_KEYS}), schemas)
    sums = plan_summary_delta(query, made.key, tpch_data.FACTS, TIES)
    assert sums is not None
    keys = plan_incremental(query, made.key, tpch_data.FACTS, TIES)
    return BySummaryDelta(header(data), query, sums, keys, full_refresh_above=0.3)


def table_of(plan: ByKeys | BySummaryDelta) -> KeyedTable:
    key = plan.incremental.key if plan.incremental is not None else ()
    columns = tuple(Column(name, "int") for name, _ in plan.query.columns)
    return KeyedTable(TARGET, Generation(1, "b", "c"), key, Layout(1, key[0], (), key), columns, "owner")


def refreshed(recorder: Recorder, plan: ByKeys | BySummaryDelta) -> Outcome:
    config = KeyedConfig("model", table_of(plan).key)
    trace = Trace(TARGET.identifier)
    return trace.of(
        execute_table.execute_stages(recorder.context, TARGET, table_of(plan), config, plan, None, trace)
    )


@pytest.mark.parametrize("name", tpch_data.QUERIES)
def test_what_is_printed_is_what_is_sent_by_keys(
    name: str, data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    plan = by_keys(name, data)
    outcome = refreshed(recorder, plan)
    assert [one.stage for one in outcome.stages] == [one.name for one in stages_of(plan)]
    assert {one.rows for one in outcome.stages if one.stage == "affected_keys"} <= {recorder.count}
    assert printed_plan.differing(printed_plan.of_plan(plan), recorder.sent, recorder.answers) == []
    assert "min_key_0" in recorder.answers or plan.incremental.affected is None


@pytest.mark.parametrize("name", CHANGING)
def test_what_is_printed_is_what_is_sent_by_sums(
    name: str, data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    plan = by_summary_delta(name, data)
    outcome = refreshed(recorder, plan)
    assert [one.stage for one in outcome.stages] == [one.name for one in stages_of(plan)]
    assert (outcome.stages[-1].rows, outcome.fell_back) == (outcome.rows, ())
    assert printed_plan.differing(printed_plan.of_plan(plan), recorder.sent, recorder.answers) == []


@pytest.mark.parametrize("name", EXAMPLE)
def test_what_is_printed_is_what_is_sent_for_the_example(
    name: str, data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    model = EXAMPLE[name]
    query = analyse_query(model.sql, tables(data))
    layers = {layer: UpstreamFacts(True, key, 6_000_000, 60_000) for layer, key in LAYERS.items()}
    facts = Facts({**tpch_data.FACTS.upstreams, **layers})
    keys = plan_incremental(query, model.key, facts)
    plans: list[ByKeys | BySummaryDelta] = [ByKeys(header(data), query, keys, full_refresh_above=0.3)]
    view = find_auxiliary_view(query, model.key, {**tpch_data.TABLE_KEYS, **LAYERS})
    # The lower layer has no sums, and one model counts distinct values of two columns.
    assert (view is None) == (name in (*LAYERS, "dws_nation_sales_by_month"))
    if view is not None:
        state = analyse_query(state_sql(view, {one: one for one in facts.upstreams}), tables(data))
        keys, sums = (plan(state, view.key, facts) for plan in (plan_incremental, plan_summary_delta))
        assert isinstance(sums, SummaryDelta)
        plans.append(BySummaryDelta(header(data), state, sums, keys, full_refresh_above=0.3))
    for plan in plans:
        recorder.sent.clear()
        recorder.answers.clear()
        outcome = refreshed(recorder, plan)
        assert [one.stage for one in outcome.stages] == [one.name for one in stages_of(plan)]
        assert printed_plan.differing(printed_plan.of_plan(plan), recorder.sent, recorder.answers) == []


def test_another_text_than_the_printed_one_is_found(
    data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    plan = by_keys("q03", data)
    refreshed(recorder, plan)
    shown = printed_plan.of_plan(plan)
    assert [one.name for one in shown] == ["affected_keys", "rows"]
    for place, statement in enumerate(recorder.sent):
        if "lineitem_" in statement:
            changed = [*recorder.sent]
            changed[place] = statement.replace("lineitem_", "lineitem_of_")
            assert printed_plan.differing(shown, changed)
    assert printed_plan.differing(shown[1:], recorder.sent)


def test_bounds_of_keys_are_named_until_they_are_known(data: duckdb.DuckDBPyConnection) -> None:
    """Where execution adds conditions, the printed query has them, too."""
    text = {stage.name: text for stage, text in stages_with_sql(stages_of(by_keys("q03", data)))}["rows"]
    assert "BETWEEN :min_key_0 AND :max_key_0" in text
    assert "FROM :affected_keys AS" in text
    looked_up = {
        stage.name: text for stage, text in stages_with_sql(stages_of(by_summary_delta("q04", data)))
    }
    assert "BETWEEN :min_key_0_0 AND :max_key_0_0" in looked_up["shared_lookup_1"]
    assert "FROM :affected_values_1 AS" in looked_up["shared_lookup_1"]


def test_more_keys_than_pay_end_it_before_it_writes(
    data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    recorder.count = STORED // 2
    plan = by_keys("q03", data)
    (decision,) = [stage.decision for stage in stages_of(plan) if stage.decision]
    assert decision.when == "more than 30% of the stored keys are affected"
    outcome = refreshed(recorder, plan)
    choice = outcome.choice
    assert choice is not None
    assert (choice.strategy, choice.reason) == ("full", "many-keys")
    assert [one.stage for one in outcome.stages] == ["affected_keys", "query"]
    assert outcome.fell_back == (decision.when,)
    writes = [sql for sql in recorder.sent if sql.startswith("INSERT")]
    assert len(writes) == 1
    assert "SELECT the whole query" in writes[0]
    recorder.count = 0
    assert str(refreshed(recorder, plan).choice) == "INCREMENTAL (0 keys)"
    recorder.count = STORED // 2
    assert (
        str(refreshed(recorder, replace(plan, full_refresh_above=1)).choice)
        == f"INCREMENTAL ({STORED // 2} keys)"
    )


@pytest.mark.parametrize(
    ("rows", "share", "counts"), [(10, 0.3, False), (10, 0.2, True), (2_000, 0.3, True), (None, 0.3, True)]
)
def test_of_few_rows_many_keys_are_no_reason(
    data: duckdb.DuckDBPyConnection, rows: int | None, share: float, counts: bool
) -> None:
    plan = replace(by_keys("q03", data), full_refresh_above=share)
    tables = {name: replace(one, stored_rows=rows) for name, one in plan.inputs.upstreams.items()}
    plan = replace(plan, header=replace(plan.header, inputs=replace(plan.inputs, upstreams=tables)))
    assert any(stage.decision for stage in stages_of(plan)) is counts


def test_a_guard_that_differs_ends_it_before_anything_else(
    data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    recorder.differs = True
    plan = by_keys("q15", data)
    choice = refreshed(recorder, plan).choice
    assert choice is not None
    assert (choice.strategy, choice.reason) == ("full", "guard")
    assert [sql[:6] for sql in recorder.sent] == ["SELECT", "INSERT"]


ENDED = StatementError("it failed", why="division by zero")
LOST = StatementError("it failed", why=EXTREME_LOST)


def test_errors_lead_to_the_plans_that_are_declared(
    data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    keys, sums = by_keys("q03", data), by_summary_delta("q03", data)
    found: list[RefreshPlan] = []

    def following(plan: RefreshPlan, error: StatementError) -> RefreshPlan:
        found.append(next(one.plan(error) for one in fallbacks_of(plan) if one.holds(error)))
        return found[-1]

    assert isinstance(following(keys, ENDED), Full)
    assert found[-1].reason is not None
    assert found[-1].reason.code == "failed"
    assert isinstance(following(sums, LOST), Full)  # it has no extremes: this is an error like any other
    with_extremes = replace(sums, summary_delta=replace(sums.summary_delta, extremes={"high": "max"}))
    assert isinstance(following(with_extremes, LOST), ByKeys)
    asks = replace(
        with_extremes,
        summary_delta=replace(with_extremes.summary_delta, new_extremes=keys.incremental.affected),
    )
    again = following(asks, LOST)
    assert isinstance(again, BySummaryDelta)
    assert again.recompute_reason == "extreme"
    assert [stage.name for stage in stages_of(again)][-1] == "extremes"
    last = following(again, LOST)
    assert isinstance(last, ByKeys)
    assert last.recompute_reason == "extreme"
    assert isinstance(following(replace(with_extremes, incremental=None), LOST), Full)
    looks_up = replace(sums, summary_delta=replace(sums.summary_delta, looks_up=True))
    assert isinstance(following(looks_up, ENDED), ByKeys)
    assert isinstance(following(looks_up, StatementError("it failed", why=BELOW_ZERO)), Full)
    recorder.errors = [ENDED]
    outcome = refreshed(recorder, looks_up)
    assert outcome.choice is not None
    assert outcome.choice.keys == recorder.count
    assert [one.stage for one in outcome.stages] == ["changes", "affected_keys", "rows"]
    assert outcome.fell_back == ("a statement that looks up different values fails",)


@pytest.mark.parametrize("name", ["q04", "q18"])
def test_the_delta_is_looked_up_between_the_bounds_of_affected_values(
    name: str, data: duckdb.DuckDBPyConnection, recorder: Recorder
) -> None:
    """Where the rows that touched values meet are kept, the statement looks them up by itself."""
    plan = by_summary_delta(name, data)
    plan = replace(plan, summary_delta=plan.summary_delta.with_cached_lookups(tpch_data.CHANGED))
    shown = printed_plan.of_plan(plan)
    assert [one.name for one in shown] == ["affected_values_1", "changes"]
    bounds = {f"{end}_{column}" for end in ("min", "max") for column in stages_of(plan)[0].columns}
    assert bounds <= {name[1:] for name in printed_plan.PLACEHOLDER.findall(shown[-1].text)}
    refreshed(recorder, plan)
    assert recorder.answers.keys() == bounds
    assert printed_plan.differing(shown, recorder.sent, recorder.answers) == []
