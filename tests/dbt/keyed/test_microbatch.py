"""Microbatch models of one's own: an interval is replaced, batches run at once, a failed one is run again."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop

MODEL = """
{{{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at',
           batch_size='day', begin='2020-01-01', {more}) }}}}
select id, at, amount from {{{{ source('raw', 'raw_events') }}}}
"""
SOURCES = """
version: 2
sources:
  - name: raw
    schema: {schema}
    tables:
      - name: raw_events
        config: {{event_time: at}}
"""
FOUR_DAYS = ("--event-time-start", "2020-01-01", "--event-time-end", "2020-01-05")
SECOND_DAY = ("--event-time-start", "2020-01-02", "--event-time-end", "2020-01-03")
KEYED, PLAIN = "unique_key='id', buckets=2", "concurrent_batches=true"
BOTH = {"keyed": KEYED, "plain": PLAIN}

DAYS = "(1L, 1, 10), (2L, 2, 20), (3L, 3, 30), (4L, 4, 40), (5L, 2, 50)"


def events(shop: Shop, rows: str) -> None:
    at = "timestamp'2020-01-01 10:00:00' + make_dt_interval(day - 1)"
    shop.source("raw_events", f"select id, {at} as at, amount from values {rows} as t(id, day, amount)")


def days(shop: Shop, model: str = "m") -> list[tuple[int, int, int]]:
    return sorted(shop.sql(f"SELECT id, day(at), amount FROM {{s}}.{model}"))


def of_both(shop: Shop) -> list[tuple[int, int, int]]:
    """The rows of both models, which are the same."""
    keyed, plain = (days(shop, model) for model in BOTH)
    assert keyed == plain
    return plain


@pytest.fixture
def batches(shop: Shop) -> Shop:
    shop.file("models/sources.yml", SOURCES.format(schema=shop.schema))
    events(shop, DAYS)
    return shop


def test_a_batch_replaces_its_interval_and_nothing_else(batches: Shop) -> None:
    for name, more in BOTH.items():
        batches.model(name, MODEL.format(more=more))
    batches.dbt("run", *FOUR_DAYS, "--threads", "4")
    assert of_both(batches) == [(1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40), (5, 2, 50)]
    # Key 5 is missing on the second day, key 6 is new there, and the day of key 3 is not selected.
    events(batches, "(1L, 1, 10), (2L, 2, 22), (6L, 2, 60), (3L, 3, 33), (4L, 4, 40)")
    batches.dbt("run", *SECOND_DAY)
    rows = [(1, 1, 10), (2, 2, 22), (3, 3, 30), (4, 4, 40), (6, 2, 60)]
    assert of_both(batches) == rows

    # A part of a batch does not replace all its rows. The last two days of the sample are whole.
    events(batches, "(1L, 1, 11), (2L, 2, 23), (3L, 3, 34), (4L, 4, 45)")
    batches.dbt("run", "--empty", *FOUR_DAYS)
    assert of_both(batches) == rows
    batches.dbt("run", "--sample", "{'start': '2020-01-02 12:00:00', 'end': '2020-01-05'}")
    assert of_both(batches) == [*rows[:2], (3, 3, 34), (4, 4, 45), rows[-1]]
    batches.dbt("run", "--full-refresh", "--sample", "{'start': '2020-01-02 12:00:00', 'end': '2020-01-04'}")
    assert of_both(batches) == [(3, 3, 34)]


def test_a_plain_table_is_replaced_by_intervals_where_files_cross_them_and_by_no_other_kind(
    batches: Shop,
) -> None:
    """The event time is quoted. dbt quotes it as other databases do; to Spark that would be a text."""
    quoted = SOURCES + "        columns: [{{name: at, quote: true}}]\n"
    batches.file("models/sources.yml", quoted.format(schema=batches.schema))
    batches.model("m", MODEL.format(more=PLAIN))
    batches.dbt("run", *FOUR_DAYS)
    assert days(batches) == [(1, 1, 10), (2, 2, 20), (3, 3, 30), (4, 4, 40), (5, 2, 50)]
    assert not [sql for sql in batches.script.ran if "branch_" in sql.lower()]
    # Files across the border of an interval: it is replaced on a branch.
    options = "options => map('rewrite-all', 'true')"
    batches.sql(f"CALL lake.system.rewrite_data_files(table => '{batches.schema}.m', {options})")
    events(batches, "(2L, 2, 22)")
    batches.dbt("run", *SECOND_DAY)
    assert [sql for sql in batches.script.ran if "branch_" in sql.lower()]
    rows = [(1, 1, 10), (2, 2, 22), (3, 3, 30), (4, 4, 40)]
    assert days(batches) == rows
    # The latest batches of a keyed table do not replace it.
    events(batches, DAYS)
    batches.model("m", MODEL.format(more=KEYED))
    batches.fail("run", *SECOND_DAY)
    assert days(batches) == rows
    batches.dbt("run", "--full-refresh", *FOUR_DAYS)
    assert len(days(batches)) == 5


def dividing(shop: Shop) -> None:
    """Both models, whose batch with a 0 fails."""
    for name, more in BOTH.items():
        shop.model(
            name, MODEL.format(more=more).replace("id, at, amount", "id, at, 100 div amount as amount")
        )


def test_a_batch_that_failed_is_run_again_by_dbt_retry_also_of_a_full_refresh(batches: Shop) -> None:
    dividing(batches)
    corrected = "(1L, 1, 1), (2L, 2, 1), (3L, 3, 1), (4L, 4, 1)"
    events(batches, "(1L, 1, 10), (2L, 2, 20), (3L, 3, 0), (4L, 4, 50)")
    assert batches.fail("run", *FOUR_DAYS).count("PARTIAL SUCCESS (3/4)") == 2
    assert of_both(batches) == [(1, 1, 10), (2, 2, 5), (4, 4, 2)]
    events(batches, corrected)
    batches.dbt("retry")
    assert of_both(batches) == [(1, 1, 10), (2, 2, 5), (3, 3, 100), (4, 4, 2)]

    events(batches, "(1L, 1, 20), (2L, 2, 25), (3L, 3, 0), (4L, 4, 100)")
    assert batches.fail("run", "--full-refresh", *FOUR_DAYS).count("PARTIAL SUCCESS (3/4)") == 2
    events(batches, corrected)
    batches.dbt("retry")
    assert of_both(batches) == [(1, 1, 5), (2, 2, 4), (3, 3, 100), (4, 4, 1)]
    # From another day on than the model's first, the first batch of the run replaces the table, too.
    batches.dbt("run", "--full-refresh", *SECOND_DAY)
    assert of_both(batches) == [(2, 2, 100)]


def zone(shop: Shop, name: str) -> None:
    profile = shop.folder / "profiles.yml"
    target = yaml.safe_load(profile.read_text(encoding="utf-8"))
    target["shop"]["outputs"]["dev"]["spark_conf"]["spark.sql.session.timeZone"] = name
    profile.write_text(yaml.safe_dump(target), encoding="utf-8")


def test_sources_of_any_type_are_filtered_by_the_instants_of_the_batch(shop: Shop) -> None:
    zone(shop, "America/New_York")
    types = {"string": "", "date": "DATE", "timestamp_ntz": "TIMESTAMP_NTZ"}
    tables = ", ".join(f"{{name: raw_{type_}, config: {{event_time: day}}}}" for type_ in types)
    shop.file("models/sources.yml", f"sources: [{{name: raw, schema: {shop.schema}, tables: [{tables}]}}]")
    for type_, prefix in types.items():
        days = ["2020-01-02", "2020-01-03"] + ([] if type_ == "date" else ["2020-01-03 21:30:00"])
        values = ", ".join(f"({at}, {prefix}'{day}')" for at, day in enumerate(days))
        shop.source(f"raw_{type_}", f"SELECT * FROM VALUES {values} AS t(id, day)")
        model = MODEL.format(more=PLAIN).replace("id, at, amount", "id, cast(day as timestamp) as at")
        shop.model(type_, model.replace("raw_events", f"raw_{type_}"))
    shop.dbt("run", *FOUR_DAYS)
    read = {type_: [row[0] for row in shop.rows(type_, "id")] for type_ in types}
    assert read == {"string": [0, 1, 2], "date": [0, 1], "timestamp_ntz": [0, 1, 2]}


@pytest.mark.usefixtures("dbt_log")
def test_a_pull_is_refused_also_from_an_upstream_that_is_filtered(batches: Shop) -> None:
    pull = "{{{{ incremental_pull(source('raw', 'raw_events')) }}}}"
    batches.model("m", MODEL.replace("{{{{ source('raw', 'raw_events') }}}}", pull).format(more=KEYED))
    batches.fail("run", *FOUR_DAYS)
    log = (batches.folder / "logs" / "dbt.log").read_text(encoding="utf-8")
    assert "incremental_pull() cannot be used with the strategy 'microbatch'" in log


@pytest.mark.usefixtures("dbt_log")
def test_a_local_event_time_over_a_source_that_is_filtered_by_utc_is_refused(batches: Shop) -> None:
    zone(batches, "America/New_York")
    casts = ("date", "timestamp_ntz")

    def models(local: bool) -> None:
        for cast in casts:
            at = f"id, cast(at as {cast}) as at, amount" if local else "id, at, amount"
            batches.model(f"m_{cast}", MODEL.format(more=PLAIN).replace("id, at, amount", at))

    models(local=True)
    assert len(batches.refusals("run", *FOUR_DAYS)) == 2
    told = (batches.folder / "logs" / "dbt.log").read_text(encoding="utf-8")
    why = "a column without a time zone, and the session's time zone is America/New_York"
    for cast in casts:
        assert f"{why}\n    where: m_{cast}\n" in told
    models(local=False)
    batches.dbt("run", *FOUR_DAYS)
    assert [len(batches.rows(f"m_{cast}")) for cast in casts] == [5, 5]
    models(local=True)
    unfiltered = SOURCES.replace("config: {{event_time: at}}", "description: all of it")
    batches.file("models/sources.yml", unfiltered.format(schema=batches.schema))
    batches.dbt("run", "--full-refresh", *FOUR_DAYS)
    assert [len(batches.rows(f"m_{cast}")) for cast in casts] == [5, 5]


# Types of the event time

BERLIN = ZoneInfo("Europe/Berlin")
AS = {"timestamp": "at", "timestamp_ntz": "cast(at as timestamp_ntz) as at", "date": "cast(at as date) as at"}
Moments = dict[int, tuple[dt.datetime, int]]
"""Rows by id: an instant without its zone UTC, and an amount."""


def moments(shop: Shop, rows: Moments) -> None:
    values = ", ".join(f"({id_}L, timestamp'{at}Z', {amount})" for id_, (at, amount) in rows.items())
    shop.source("raw_events", f"select * from values {values} as t(id, at, amount)")


def of_type(at: dt.datetime, type_: str, zone: ZoneInfo = BERLIN) -> dt.datetime:
    """An instant as a model of some type of event time returns it. A date is its midnight."""
    local = at.replace(tzinfo=dt.timezone.utc).astimezone(zone).replace(tzinfo=None)
    return {"timestamp": at, "timestamp_ntz": local}.get(type_, dt.datetime.combine(local, dt.time()))


def replaced(before: Moments, source: Moments, ends: tuple[dt.datetime, dt.datetime]) -> Moments:
    """The rows of a table after batches of an interval."""
    kept = {id_: row for id_, row in before.items() if not ends[0] <= row[0] < ends[1]}
    return {**kept, **{id_: row for id_, row in source.items() if ends[0] <= row[0] < ends[1]}}


def stored(shop: Shop, model: str, type_: str) -> list[tuple[int, dt.datetime, int]]:
    """The rows of a model, with instants as times in UTC."""
    at = "to_utc_timestamp(cast(at as timestamp_ntz), current_timezone())" if type_ == "timestamp" else "at"
    return sorted(shop.sql(f"SELECT id, cast({at} as timestamp_ntz), amount FROM {{s}}.{model}"))


def listed(rows: Moments) -> list[tuple[int, dt.datetime, int]]:
    return sorted((id_, at, amount) for id_, (at, amount) in rows.items())


def unfiltered(shop: Shop) -> None:
    text = SOURCES.replace("config: {{event_time: at}}", "description: all of it")
    shop.file("models/sources.yml", text.format(schema=shop.schema))


@pytest.mark.parametrize("day", [dt.datetime(2024, 3, 31), dt.datetime(2024, 10, 27)])
def test_batches_over_days_of_23_and_25_hours_and_their_hours(shop: Shop, day: dt.datetime) -> None:
    """In Berlin, the hour after 02:00 is missing in March, and comes twice in October."""
    zone(shop, "Europe/Berlin")
    unfiltered(shop)
    models = {f"{type_}_day": (type_, "day") for type_ in AS}
    models |= {f"{type_}_hour": (type_, "hour") for type_ in AS if type_ != "date"}
    for number, (name, (type_, size)) in enumerate(models.items()):
        text = MODEL.format(more=KEYED if number % 2 else PLAIN).replace("'day'", f"'{size}'")
        shop.model(name, text.replace("id, at, amount", f"id, {AS[type_]}, amount"))
    hour = dt.timedelta(hours=1)
    first: Moments = {id_: (day + id_ * hour / 2 - 2 * hour, 1) for id_ in range(60)}
    second = {id_: (at, 2) for id_, (at, _) in first.items() if id_ % 4 != 1}
    tables: dict[str, Moments] = {name: {} for name in models}
    for source, start, end in ((first, day - hour, day + 3 * hour), (second, day + hour, day + 3 * hour)):
        moments(shop, source)
        shop.dbt("run", "--event-time-start", str(start), "--event-time-end", str(end), "--threads", "2")
        for name, (type_, size) in models.items():
            ends = (start, end) if size == "hour" else (start.replace(hour=0), day + 24 * hour)
            rows = {id_: (of_type(at, type_), amount) for id_, (at, amount) in source.items()}
            tables[name] = replaced(tables[name], rows, ends)
            assert stored(shop, name, type_) == listed(tables[name]), name


@pytest.mark.usefixtures("dbt_log")
def test_an_event_time_of_another_type_than_the_stored_one(shop: Shop) -> None:
    """Its rows are stored in their batch, or it is refused before the first change of the table."""
    zone(shop, "Europe/Berlin")
    unfiltered(shop)
    types = {f"{kind}_{type_}": type_ for kind in BOTH for type_ in AS if type_ != "date"}

    def models(columns: str, event_time: str = "at") -> None:
        for name, type_ in types.items():
            more = f"{BOTH[name.partition('_')[0]]}, on_schema_change='append_new_columns'"
            text = MODEL.format(more=more).replace("event_time='at'", f"event_time='{event_time}'")
            shop.model(name, text.replace("id, at, amount", columns.format(at=AS[type_])))

    def tables() -> dict[str, list[tuple[int, dt.datetime, int]]]:
        return {name: stored(shop, name, type_) for name, type_ in types.items()}

    def run(command: tuple[str, ...], message: str = "") -> set[str]:
        """Run dbt, and return the models whose batch is refused with that message."""
        log = shop.folder / "logs" / "dbt.log"
        log.unlink(missing_ok=True)
        results = shop.try_dbt("run", *command).result.results
        failed = {one.node.name for one in results if str(one.status) != "success"}
        said = log.read_text(encoding="utf-8")
        assert failed == {name for name in types if f"{message}\n    where: {name}\n" in said}
        return failed

    # The last row of each day belongs to the next one in Berlin.
    first, hour = dt.datetime(2024, 3, 1), dt.timedelta(hours=1)
    source: Moments = {id_: (first + 12 * id_ * hour - hour / 2, 1) for id_ in range(8)}
    moments(shop, source)
    models("id, {at}, amount")
    assert run(("--event-time-start", "2024-03-01", "--event-time-end", "2024-03-04")) == set()
    before = tables()
    assert [len(rows) for rows in before.values()] == [6] * 4

    # Dates become local times, but no instants: midnight in Berlin is the day before in UTC.
    models("id, cast(at as date) as at, amount + 1 as amount, 1 as more")
    ends = (first + 24 * hour, first + 48 * hour)
    day = ("--event-time-start", str(ends[0]), "--event-time-end", str(ends[1]))
    told = "event_time is at, which is date in the query and timestamp in the table"
    instants = {name for name, type_ in types.items() if type_ == "timestamp"}
    assert run(day, told) == instants
    rows = {id_: (of_type(at, "date"), 2) for id_, (at, _) in source.items()}
    expected = replaced({id_: (at, amount) for id_, at, amount in before["plain_timestamp_ntz"]}, rows, ends)
    after = {name: before[name] if name in instants else listed(expected) for name in types}
    assert tables() == after
    columns = {name: len(shop.sql(f"SELECT * FROM {{s}}.{name}")[0]) for name in types}
    assert columns == {name: 3 if name in instants else 4 for name in types}

    # Midnight in New York is on the same day in UTC.
    zone(shop, "America/New_York")
    assert run((*day, "--select", *instants)) == set()
    west = ZoneInfo("America/New_York")
    rows = {id_: (of_type(at, "date", west), 2) for id_, (at, _) in source.items()}
    rows = {
        id_: (at.replace(tzinfo=west).astimezone(dt.timezone.utc).replace(tzinfo=None), 2)
        for id_, (at, _) in rows.items()
    }
    expected = replaced({id_: (at, amount) for id_, at, amount in before["plain_timestamp"]}, rows, ends)
    after |= dict.fromkeys(instants, listed(expected))
    assert tables() == after

    # Rows that have no event time would be in no batch.
    models("id, at, amount, 1 as more, at as other", event_time="other")
    assert run(day, "event_time is other, which the table does not have") == set(types)
    assert tables() == after
