"""Automatic models on the lake in memory: their plans are executed as they are shown."""

from __future__ import annotations

import pytest

from dbt_arctic.auto import few_rows, nested_view
from dbt_arctic.auto.plan import STATE_RELATION, OverState, RefreshPlan
from dbt_arctic.auto.plan_model import plan_over_state, plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.stages import stages_of, stages_with_sql
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import KeyColumnMissing
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary.auxiliary_view import state_sql
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.run import write_rows
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed
from tests.model import duck
from tests.model.world import MemoryWorld

BY_DEFAULT = few_rows.MAX_EXTRA_SECONDS

FIRST = (
    "SELECT customer, sum(amount) AS total FROM {} GROUP BY customer ORDER BY total DESC, customer LIMIT 1"
)


def sales(*rows: tuple[int, int, int]) -> str:
    return " UNION ALL ".join(f"SELECT {a} AS id, {b} AS customer, {c} AS amount" for a, b, c in rows)


def planned(world: MemoryWorld, sql: str) -> tuple[Name, RefreshPlan]:
    context, name = world.process("plan").context, world.name("first")
    config = parse_config("first", {"unique_key": "customer", "incremental_strategy": "auto", "buckets": 1})
    analysed: list[str] = []

    def schema(text: str) -> list[ColumnInfo]:
        analysed.append(text)
        return context.query_schema(text)

    plan = plan_refresh(context.catalog, name, config, sql, schema)
    assert len(analysed) == len(set(analysed)), analysed
    assert analysed or plan.action == "nothing"
    return name, plan


def test_a_model_over_a_state_is_refreshed_as_its_plan_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The query over the state is printed before the state is refreshed, and sent with its new rows."""
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")  # as Spark adds whole numbers
    world = MemoryWorld(1)
    context, source = world.process("run").context, world.name("sales")
    sent: list[str] = []

    def run(step: str, text: str, table: KeyedTable | None = None) -> int | None:
        sent.append(text)
        return context.run(step, text, table)

    recorded = Context(context.catalog, run, context.query_schema, context.query, now_ms=context.now_ms)
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    # Enough rows that two changes are few.
    rows = sales((1, 1, 10), (2, 1, 20), (3, 2, 31), *((sale, 9, 1) for sale in range(10, 30)))
    build_generation(context, source, plain, rows, {}, owner="o", comment="", column_comments=None)
    sql = FIRST.format(source.sql)
    for action, first, changes in (
        ("build", "query", [(1, 1, 90), (4, 3, 500)]),
        ("incremental", "changes", [(4, 3, 5), (5, 2, 400)]),
        ("incremental", "changes", []),
    ):
        name, plan = planned(world, sql)
        assert isinstance(plan, OverState)
        assert plan.action == action
        *_, (stage, text) = stages_with_sql(stages_of(plan))
        assert (stage.name, text) == ("query", plan.state.query)
        sent.clear()
        outcome = run_refresh(recorded, name, plan.state.request.config, plan, owner="o")
        stages = [("first__state", first), ("first", "query")]
        assert [(one.relation, one.stage) for one in outcome.stages] == stages
        assert [one.name for one in stages_of(plan)] == [name for _, name in stages]
        assert outcome.fell_back == ()
        over = plan_over_state(context.catalog, plan.state, context.query_schema)
        assert isinstance(over, RefreshPlan)
        (state,) = over.inputs.upstreams.values()
        expected = text.replace(STATE_RELATION, f"(\n{state.states['new']}\n)")
        assert any(expected in statement for statement in sent), expected
        assert world.query(f"SELECT * FROM {name.sql}") == world.query(sql)
        if changes:
            write_rows(context, source, plain, sales(*changes), Consumption({}, {}), None)
    # An upsert of no rows is a commit, but no change.
    write_rows(context, source, plain, f"{sales((1, 1, 1))} WHERE 1 = 0", Consumption({}, {}), None)
    name, plan = planned(world, sql)
    assert (plan.action, stages_of(plan)) == ("nothing", [])
    assert str(run_refresh(context, name, plain, plan, owner="o").choice) == "SKIP (no upstream change)"


def test_the_message_of_a_build_says_how_many_rows_and_whether_it_replaces_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("first")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})

    def build(*rows: tuple[int, int, int]) -> str:
        made = build_generation(
            context, source, plain, sales(*rows), {}, owner="o", comment="", column_comments=None
        )
        return made[1].message

    assert [build((1, 1, 10)), build((1, 1, 10), (2, 1, 20))] == ["BUILD 1 row", "BUILD 2 rows, generation 2"]
    config = parse_config("first", {"unique_key": "customer", "incremental_strategy": "auto", "buckets": 1})
    sql = f"SELECT customer, amount FROM {source.sql} WHERE id = 1"
    messages = []
    for rebuild in (False, True):
        plan = plan_refresh(context.catalog, name, config, sql, context.query_schema, rebuild=rebuild)
        messages.append(run_refresh(context, name, config, plan, owner="o").message)
    assert messages == ["FULL (build), 1 row", "FULL (build), 1 row, generation 2"]


@pytest.mark.parametrize("exists", [False, True])
def test_a_wrong_key_is_an_error_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """A state is built before the model, and would be left behind."""
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("first")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    rows = sales((1, 1, 10), (2, 1, 20), (3, 2, 31), *((sale, 9, 1) for sale in range(10, 30)))
    build_generation(context, source, plain, rows, {}, owner="o", comment="", column_comments=None)
    auto = {"incremental_strategy": "auto", "buckets": 1}
    right, wrong = (parse_config("first", {"unique_key": key, **auto}) for key in ("customer", "client"))
    sql = FIRST.format(source.sql)
    if exists:
        plan = plan_refresh(context.catalog, name, right, sql, context.query_schema)
        run_refresh(context, name, right, plan, owner="o")
    before = {entry.name for entry in context.catalog.of(name).list_names(name.schema)}
    plan = plan_refresh(context.catalog, name, wrong, sql, context.query_schema, rebuild=True)
    with pytest.raises(KeyColumnMissing, match="unique_key contains client"):
        run_refresh(context, name, wrong, plan, owner="o")
    assert {entry.name for entry in context.catalog.of(name).list_names(name.schema)} == before


@pytest.mark.parametrize(
    ("auto", "written", "run"),
    [
        ({}, "array_agg(DISTINCT amount)", "sort_array(array_agg(DISTINCT amount))"),
        ({"ties": "by_key"}, "array_agg(DISTINCT amount)", "sort_array(array_agg(DISTINCT amount))"),
        ({"accept": ["order_dependent"]}, "array_agg(DISTINCT amount)", "array_agg(DISTINCT amount)"),
        ({}, "array_agg(amount)", "array_agg(amount)"),
    ],
)
def test_a_model_is_built_and_refreshed_with_sorted_sets(auto: object, written: str, run: str) -> None:
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("lists")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    build_generation(
        context, source, plain, sales((1, 1, 10)), {}, owner="o", comment="", column_comments=None
    )
    settings = {"unique_key": "customer", "incremental_strategy": "auto", "buckets": 1, "auto": auto}
    sql = f"SELECT customer, {written} AS amounts FROM {source.sql} GROUP BY customer"
    plan = plan_refresh(context.catalog, name, parse_config("lists", settings), sql, None)
    assert f"SELECT customer, {run} AS amounts" in plan.sql


@pytest.mark.parametrize(
    ("parts", "settings", "expected"),
    [
        # Stored sums, and affected keys.
        (1, {}, "incremental"),
        (2, {}, "full"),
        # The user wants it so, or the tables have many rows.
        (2, {"auto": "strict"}, "incremental"),
        (2, {"rows": 10}, "incremental"),
        # Its statements take longer than the known full refreshes of many rows.
        (2, {"rows": 10, "full_seconds": 0.0}, "full"),
    ],
)
def test_one_statement_reads_few_rows_where_several_would_find_the_changed_ones(
    parts: int, settings: dict[str, object], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")  # as Spark adds whole numbers
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", BY_DEFAULT)
    monkeypatch.setattr(few_rows, "FEW_ROWS", settings.get("rows", few_rows.FEW_ROWS))
    if "full_seconds" not in settings:
        monkeypatch.setattr(few_rows, "expected_slower", lambda *known: None)
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("linked")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    rows = sales(*((sale, sale % 5, sale) for sale in range(30)))
    build_generation(context, source, plain, rows, {}, owner="o", comment="", column_comments=None)
    sums = f"SELECT customer, sum(amount) AS total, count(*) AS n FROM {source.sql} GROUP BY customer"
    joined = "".join(f" JOIN c AS c{place} ON c{place}.customer = c0.customer" for place in range(1, parts))
    linked = f"WITH c AS ({sums}) SELECT c0.customer, c{parts - 1}.total FROM c AS c0{joined}"
    sql = linked if parts > 1 else sums
    auto = {"auto": settings["auto"]} if "auto" in settings else {}
    own = {"unique_key": "customer", "incremental_strategy": "auto", "buckets": 1, "full_refresh_above": 1}
    config = parse_config("linked", {**own, **auto})

    def refresh() -> str:
        plan = plan_refresh(context.catalog, name, config, sql, context.query_schema)
        return run_refresh(context, name, config, plan, owner="o").choice.strategy

    assert refresh() == "full"
    write_rows(context, source, plain, sales((1, 1, 90), (40, 3, 500)), Consumption({}, {}), None)
    assert refresh() == expected
    assert sorted(world.query(f"SELECT * FROM {name.sql}")) == sorted(world.query(sql))


@pytest.mark.parametrize(("auto", "codes"), [(None, ["build", "too-large"]), ("strict", ["build", ""])])
def test_a_strict_model_has_views_over_few_rows_if_its_statement_would_be_too_large(
    auto: object, codes: list[str]
) -> None:
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("counts")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    rows = sales(*((sale, sale % 7, sale) for sale in range(30)))
    build_generation(context, source, plain, rows, {}, owner="o", comment="", column_comments=None)
    query = f"SELECT customer AS k, count(*) AS n FROM {source.sql} GROUP BY customer"
    for place in range(5):
        query = f"SELECT n AS k, count(*) AS n FROM ({query}) AS t{place} GROUP BY n"
    query = f"SELECT s.id, q.n FROM {source.sql} AS s LEFT JOIN ({query}) AS q ON q.k = s.customer"
    settings = {"unique_key": "id", "incremental_strategy": "auto", "buckets": 1, "full_refresh_above": 1}
    config = parse_config("counts", {**settings, "auto": auto})
    found = []
    for change in ((1, 6, 1), (2, 6, 1)):
        plan = plan_refresh(context.catalog, name, config, query, context.query_schema)
        found.append(run_refresh(context, name, config, plan, owner="o").choice.reason)
        assert sorted(world.query(f"SELECT id, n FROM {name.sql}"), key=str) == sorted(
            world.query(query), key=str
        )
        write_rows(context, source, plain, sales(change), Consumption({}, {}), None)
    assert found == codes
    assert (find_keyed(context.catalog, world.name("counts__state")) is not None) is (auto == "strict")


@pytest.mark.parametrize(
    ("sql", "table"),
    [
        # An auxiliary view in a table of its own, hidden columns of the model, and a nested auxiliary view.
        ("SELECT customer, avg(amount) AS m FROM {} GROUP BY customer HAVING avg(amount) > 0", "m__state"),
        ("SELECT customer, avg(amount) AS m, min(amount) AS low FROM {} GROUP BY customer", "m"),
        ("SELECT customer, sum(amount) - (SELECT sum(amount) FROM {0}) AS m FROM {0} GROUP BY 1", "m__state"),
    ],
    ids=["view", "hidden columns", "nested view"],
)
@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "of the session"])
def test_without_ansi_mode_each_refresh_has_the_plan_of_the_build(
    sql: str, table: str, is_declared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absolute values are added as decimals, which do not wrap around, in refreshes as in the build."""
    monkeypatch.setitem(duck._FROM_DUCK, "HUGEINT", "bigint")  # as Spark adds whole numbers
    if "(SELECT" in sql:
        monkeypatch.setattr(nested_view, "WORTH_ROWS", 0)
    world = MemoryWorld(1)
    context, source, name = world.process("run").context, world.name("sales"), world.name("m")
    plain = parse_config("sales", {"unique_key": "id", "incremental_strategy": "upsert", "buckets": 1})
    rows = ", ".join(f"({sale}, {sale % 5}, {sale})" for sale in range(30))
    columns = "CAST(id AS BIGINT) AS id, customer, CAST(amount AS BIGINT) AS amount"
    whole = f"SELECT {columns} FROM VALUES {rows} AS t(id, customer, amount)"
    build_generation(context, source, plain, whole, {}, owner="o", comment="", column_comments=None)
    settings = {"unique_key": "customer", "incremental_strategy": "auto", "buckets": 1}
    config = parse_config("m", {**settings, "full_refresh_above": 1})
    mode = "spark.sql.ansi.enabled=false"
    terms = RefreshParameters(mode if is_declared else "", session=None if is_declared else mode)

    query = sql.format(source.sql)
    made, actions = [], []
    for amount in (900, 901):
        plan = plan_refresh(context.catalog, name, config, query, context.query_schema, terms=terms)
        actions.append(plan.action)
        made.append(state_sql(plan.state.view, plan.state.names) if isinstance(plan, OverState) else "")
        assert "SUM(ABS((" not in f"{made} {plan.sql}"
        run_refresh(context, name, config, plan, owner="o")
        assert find_keyed(context.catalog, world.name(table)) is not None
        assert sorted(world.query(f"SELECT customer, m FROM {name.sql}")) == sorted(
            world.query(f"SELECT customer, m FROM ({query})")
        )
        change = f"SELECT {columns} FROM VALUES (1, 1, {amount}) AS t(id, customer, amount)"
        write_rows(context, source, plain, change, Consumption({}, {}), None)
    assert actions == ["build", "incremental"]
    assert made[0] == made[1]
    checks = "SUM(ABS(CAST(" in made[0] or "SUM(ABS(CAST(" in plan.sql
    assert checks == ("avg" in sql)
