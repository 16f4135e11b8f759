"""Snapshots: the intervals of random histories are those that an oracle in plain Python says."""

from __future__ import annotations

import datetime as dt
import random
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop
from tests.extent import extent, first

MODES = ("ignore", "invalidate", "new_record")
KEYS = {"single": "id", "parts": ["shop", "line"]}
ROUNDS = extent(4, 8)
ALL = [(strategy, mode) for strategy in ("check", "timestamp") for mode in MODES]
OF_SINGLE = [("check", "invalidate"), ("timestamp", "ignore")]
WAYS = {
    "single": extent(OF_SINGLE, ALL),
    "parts": extent([way for way in ALL if way not in OF_SINGLE], ALL),
}
"""Strategies and modes for each form of key. The short form has each way once."""
FOR_EVER = "timestamp'9999-12-31 00:00:00'"
UNTIL_FOR_EVER = {("check", "invalidate"), ("timestamp", "new_record")}
"""Ways whose current rows have an end, ``dbt_valid_to_current``, and not NULL."""
NEW_COLUMN_AT = 2
"""The run from which on the query has a column more."""
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Source:
    """A row of the source. ``at``: day of 2024 when it was updated, or NULL. ``more``: of the new column."""

    key: Key
    value: int | None
    at: int | None
    more: int | None = None


@dataclass
class Snapshot:
    """What a snapshot holds: rows that ended, and the current row of each key."""

    strategy: str
    mode: str
    ended: list[tuple[Source, bool]] = field(default_factory=list)
    current: dict[Key, tuple[Source, bool]] = field(default_factory=dict)

    def take(self, rows: list[Source]) -> None:
        found = {row.key: row for row in rows}
        for key, row in found.items():
            if key in self.current:
                old, is_deleted = self.current[key]
                if not (is_deleted or self.has_changed(old, row)):
                    continue
                self.ended.append((old, is_deleted))
            self.current[key] = (row, False)
        for key in [key for key in self.current if key not in found]:
            old, is_deleted = self.current[key]
            if self.mode == "ignore" or is_deleted:
                continue
            self.ended.append((old, False))
            del self.current[key]
            if self.mode == "new_record":
                # From now on, whatever the time of the row itself.
                self.current[key] = (replace(old, at=None), True)

    def has_changed(self, old: Source, new: Source) -> bool:
        if self.strategy == "check":
            return old.value != new.value
        return new.at is not None and (old.at is None or old.at < new.at)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        rows = [(row, deleted, False) for row, deleted in self.ended]
        rows += [(row, deleted, True) for row, deleted in self.current.values()]
        return sorted(((*row.key, row.value, row.more, *state) for row, *state in rows), key=repr)


def day(number: int | None) -> str:
    return "NULL" if number is None else f"date_add(date'2024-01-01', {number})"


def sql_of(rows: list[Source]) -> str:
    def shown(value: Any) -> str:
        return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)

    values = ", ".join(
        f"({', '.join(map(shown, (row.key[0], *row.key, row.value)))}, {day(row.at)})" for row in rows
    )
    return (
        "SELECT CAST(id AS STRING) AS id, CAST(shop AS STRING) AS shop, CAST(line AS STRING) AS line, "
        "CAST(value AS INT) AS value, CAST(at AS TIMESTAMP) AS at, map('v', CAST(value AS INT)) AS nested "
        f"FROM VALUES {values} AS t(id, shop, line, value, at)"
    )


def snapshot_sql(name: str, strategy: str, mode: str, key: Any, columns: str = "*") -> str:
    how = "updated_at='at'" if strategy == "timestamp" else "check_cols=['value', 'NESTED']"
    return (
        f"{{% snapshot {name} %}}\n{{{{ config(unique_key={key!r}, strategy='{strategy}', {how}, "
        f"hard_deletes='{mode}', target_schema=target.schema) }}}}\n"
        f"select {columns} from {{{{ source('raw', 'raw_rows') }}}}\n{{% endsnapshot %}}"
    )


def use_zone(shop: Shop, zone: str) -> None:
    profile = shop.folder / "profiles.yml"
    target = yaml.safe_load(profile.read_text(encoding="utf-8"))
    conf = target["shop"]["outputs"]["dev"].setdefault("spark_conf", {})
    conf["spark.sql.session.timeZone"] = zone
    profile.write_text(yaml.safe_dump(target), encoding="utf-8")


@pytest.fixture
def sourced(shop: Shop) -> Shop:
    shop.file(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {shop.schema}, tables: [{{name: raw_rows}}, {{name: raw_other}}]}}]",
    )
    return shop


@pytest.mark.parametrize("form", KEYS)
def test_the_intervals_of_random_histories_are_those_of_the_oracle(sourced: Shop, form: str) -> None:
    chance = random.Random(form)
    keys: list[Key] = (
        [(name,) for name in ("a", "b", "c", None, "d")]
        if form == "single"
        else [("a", "1"), ("a", None), (None, "1"), ("a|b", "c"), ("a", "b|c"), ("", "1"), (None, None)]
    )
    oracles = {(strategy, mode): Snapshot(strategy, mode) for strategy, mode in WAYS[form]}
    key_columns = "id" if form == "single" else "shop, line"

    def write(columns: str) -> None:
        for strategy, mode in oracles:
            text = snapshot_sql(f"{strategy}_{mode}", strategy, mode, KEYS[form], columns)
            if (strategy, mode) in UNTIL_FOR_EVER:
                text = text.replace("config(", f'config(dbt_valid_to_current="{FOR_EVER}", ')
            sourced.file(f"snapshots/{strategy}_{mode}.sql", text)

    write("*")
    state: dict[Key, Source] = {}
    deleted_at: dict[Key, int | None] = {}
    for number in range(ROUNDS):
        if number == NEW_COLUMN_AT:
            write("*, value as more")
        else:  # that run finds the same rows as the one before
            for key in chance.sample(keys, len(keys) if not number else 3):
                was = state.get(key)
                if was is not None and chance.random() < 0.4:
                    deleted_at[key] = state.pop(key).at
                    continue
                later = None if was is None and chance.random() < 0.3 else number
                if key in deleted_at and chance.random() < 0.7:  # it returns as it was
                    later = deleted_at.pop(key)
                state[key] = Source(key, chance.choice([None, 1, 2]), later)
        rows = list(state.values())
        padded = [Source((*row.key, None)[:2], row.value, row.at) for row in rows]
        sourced.source("raw_rows", sql_of(padded))
        sourced.dbt("snapshot")
        if number >= NEW_COLUMN_AT:
            rows = [replace(row, more=row.value) for row in rows]
        more = "more" if number >= NEW_COLUMN_AT else "NULL"
        for (strategy, mode), oracle in oracles.items():
            oracle.take(rows)
            deleted = "dbt_is_deleted = 'True'" if mode == "new_record" else "false"
            end = FOR_EVER if (strategy, mode) in UNTIL_FOR_EVER else "NULL"
            columns = f"{key_columns}, value, {more}, {deleted}, dbt_valid_to <=> {end}"
            found = sourced.rows(f"{strategy}_{mode}", columns)
            assert found == oracle.rows, f"{strategy}, {mode}, run {number}"


def test_a_key_that_is_not_in_a_part_of_the_upstreams_is_not_deleted(sourced: Shop) -> None:
    sources = sourced.folder / "models" / "sources.yml"
    dated = sources.read_text(encoding="utf-8").replace(
        "name: raw_rows", "name: raw_rows, config: {event_time: at}"
    )
    sources.write_text(dated, encoding="utf-8")
    modes = ("invalidate", "new_record")
    for mode in modes:
        sourced.file(f"snapshots/{mode}.sql", snapshot_sql(mode, "check", mode, "id"))
    old, late = Source(("a", None), 1, 1), Source(("b", None), 1, 300)
    deleted = {"invalidate": "false", "new_record": "dbt_is_deleted = 'True'"}

    def take(rows: list[Source], *options: str) -> list[list[tuple[Any, ...]]]:
        sourced.source("raw_rows", sql_of(rows))
        sourced.dbt("build", *options)
        return [sourced.rows(mode, f"id, value, dbt_valid_to is null, {deleted[mode]}") for mode in modes]

    first = [("a", 1, True, False), ("b", 1, True, False)]
    second = [("a", 1, True, False), ("b", 1, False, False), ("b", 2, True, False)]
    take([old, late])
    late = replace(late, value=2)
    assert take([old, late], "--empty") == [first] * 2
    autumn = "{'start': '2024-10-01', 'end': '2024-12-01'}"
    assert take([replace(old, value=2), late], "--sample", autumn) == [second] * 2
    last = [("a", 1, False, False), *second[1:]]
    assert take([late]) == [last, sorted([*last, ("a", 1, True, True)])]


def test_another_end_of_current_records_is_refused_until_they_have_it(sourced: Shop) -> None:
    sourced.source("raw_rows", sql_of([Source(("a", None), 1, 1), Source(("b", None), 1, 1)]))

    def write(end: str | None, hook: str = "") -> None:
        given = (f'dbt_valid_to_current="{end}", ' if end else "") + (f'pre_hook="{hook}", ' if hook else "")
        text = snapshot_sql("kept", "check", "ignore", "id").replace("config(", f"config({given}")
        sourced.file("snapshots/kept.sql", text)

    def take() -> list[tuple[Any, ...]]:
        sourced.dbt("snapshot")
        return sourced.rows("kept", "id, cast(dbt_valid_to as date)")

    def both(end: dt.date | None) -> list[tuple[Any, ...]]:
        return [("a", end), ("b", end)]

    later, last = dt.date(8888, 1, 1), dt.date(9999, 12, 31)
    write(FOR_EVER)
    assert take() == both(last)
    write("to_timestamp('9999-12-31')")  # the same time
    assert take() == both(last)
    for other in (None, "date'8888-01-01'"):
        write(other)
        told = sourced.fail("snapshot")
        assert "dbt_valid_to_current changed from to_timestamp('9999-12-31')" in told
        assert sourced.rows("kept", "id, cast(dbt_valid_to as date)") == both(last)
    hook = re.search(r'pre_hook="(.*)"', told)
    assert hook is not None
    write("date'8888-01-01'", hook[1])
    assert take() == both(later)
    write(None, "update {{ this }} set dbt_valid_to = null")
    assert take() == both(None)
    write(FOR_EVER)  # NULL remains an end of current records
    assert take() == both(None)
    write(FOR_EVER, "update {{ this }} set dbt_valid_to = " + FOR_EVER)
    assert take() == both(last)
    use_zone(sourced, "Europe/Berlin")  # the same text is another time now
    write(FOR_EVER)
    told = sourced.fail("snapshot")
    assert f"dbt_valid_to_current, {FOR_EVER}, is another time than in the last run" in told
    hook = re.search(r'pre_hook="(.*)"', told)
    assert hook is not None
    write(FOR_EVER, hook[1])
    sourced.dbt("snapshot")
    micros = "id, unix_micros(dbt_valid_to) - unix_micros(timestamp'9999-12-31 00:00:00Z')"
    assert sourced.rows("kept", micros) == [("a", -3_600_000_000), ("b", -3_600_000_000)]


def test_an_end_that_the_column_would_change_is_refused(sourced: Shop) -> None:
    use_zone(sourced, "America/New_York")

    def write(end: str) -> None:
        config = "unique_key='id', strategy='timestamp', updated_at='at'"
        if end:
            config += f', dbt_valid_to_current="{end}"'
        rows = "select 1 as id, date'2024-01-01' as at"
        sourced.file(
            "snapshots/kept.sql", f"{{% snapshot kept %}}{{{{ config({config}) }}}} {rows}{{% endsnapshot %}}"
        )

    write("")
    sourced.dbt("snapshot")
    for end in ("timestamp'9999-12-31 00:00:00Z'", "'for ever'"):
        write(end)
        told = sourced.fail("snapshot")
        assert "the type of its column is DATE" in told
    assert "date'9999-12-31'" in told
    write("date'9999-12-31'")
    sourced.dbt("snapshot")
    assert len(sourced.rows("kept", "id")) == 1


def test_what_cannot_be_checked_is_found_at_the_first_run(sourced: Shop) -> None:
    sourced.source("raw_rows", sql_of([Source(("a", None), 1, 1)]))
    text = snapshot_sql("kept", "check", "ignore", "id")
    for wrong, says in (("lower(id)", "select it under a name"), ("valeu", "did you mean value?")):
        sourced.file("snapshots/kept.sql", text.replace("'NESTED'", f"'{wrong}'"))
        told = sourced.fail("snapshot")
        assert f"check_cols contains {wrong}" in told
        assert says in told
    assert not [one for one in sourced.catalog.list_relations(sourced.schema) if one.name == "kept"]


DEEP = {
    "m": "map('n', n_m)",
    "s": "named_struct('m', array(map('n', n_s)), 'z', 1)",
    "v": "parse_json(concat('[', n_v, ']'))",
    "f": "CAST('NaN' AS DOUBLE)",
    "c": "array(concat('N', n_c) COLLATE UTF8_LCASE)",
}


def test_columns_of_every_type_can_be_checked(sourced: Shop) -> None:
    """Of one snapshot: each row changes in the column that its key names, and in no other."""

    def write(**changed: str) -> None:
        columns = ", ".join(f"{sql} as {name}" for name, sql in {**DEEP, **changed}.items())
        sourced.file(
            "snapshots/kept.sql",
            "{% snapshot kept %}{{ config(unique_key='id', strategy='check', "
            f"check_cols={list(DEEP)}, target_schema=target.schema) }}}} select id, {columns} "
            "from {{ source('raw', 'raw_other') }}{% endsnapshot %}",
        )

    write()
    for number, expected in ((5, 1), (5, 1), (7, 2), (7, 2)):
        numbers = ", ".join(f"if(id = '{name}', {number}, 5) AS n_{name}" for name in DEEP)
        ids = ", ".join(f"'{name}'" for name in DEEP)
        sourced.source("raw_other", f"SELECT id, {numbers} FROM VALUES {ids} AS t(id)")
        sourced.dbt("snapshot")
        kept = [row[0] for row in sourced.rows("kept", "id")]
        assert {name: kept.count(name) for name in DEEP} == {**dict.fromkeys(DEEP, expected), "f": 1}, number
        if expected == 2:
            write(s="named_struct('z', 1, 'm', array(map('n', n_s)))")


def test_the_hour_that_comes_twice_is_two_times(sourced: Shop) -> None:
    # In New York 01:30 of 3 November 2024 is at 05:30 and at 06:30 UTC.
    use_zone(sourced, "America/New_York")
    sourced.file("snapshots/kept.sql", snapshot_sql("kept", "timestamp", "ignore", "id"))
    sourced.file(
        "snapshots/moments.sql",
        "{% snapshot moments %}{{ config(unique_key='at', strategy='check', check_cols='all', "
        "hard_deletes='invalidate') }} select at from {{ source('raw', 'raw_rows') }} "
        "union all select at + interval 1 microsecond from {{ source('raw', 'raw_rows') }}{% endsnapshot %}",
    )
    for hour in ("05", "06", "06"):
        sourced.source(
            "raw_rows",
            f"SELECT 'a' AS id, {int(hour)} AS value, timestamp'2024-11-03 {hour}:30:00Z' AS at",
        )
        sourced.dbt("snapshot")
    assert sourced.rows("kept", "value, dbt_valid_to IS NULL") == [(5, False), (6, True)]
    hours = "date_format(at, 'HH:mm:ss.SSSSSS'), dbt_valid_to IS NULL"
    times = [f"{hour}:30:00.00000{micros}" for hour in ("05", "06") for micros in (0, 1)]
    assert sourced.rows("moments", hours) == [(time, time > "06") for time in times]
    assert len({row[0] for row in sourced.rows("moments", "dbt_scd_id")}) == 4, "each moment has its own id"


@pytest.mark.parametrize("form", first(1, ["parts", "single"]))
def test_rows_that_share_a_key_are_refused_at_every_run_and_change_nothing(sourced: Shop, form: str) -> None:
    for strategy in ("check", "timestamp"):
        sourced.file(f"snapshots/{strategy}.sql", snapshot_sql(strategy, strategy, "ignore", KEYS[form]))
    first, other = Source(("a", None), 1, 1), Source(("b|c", 2), 1, 1)
    sourced.source("raw_rows", sql_of([first, first, other]))
    told = sourced.fail("snapshot")
    assert told.count("AR-304 several rows of the snapshot's query have the same key: {") == 2
    assert '"a"' in told
    assert "b|c" not in told
    assert not [
        one for one in sourced.catalog.list_relations(sourced.schema) if one.name in ("check", "timestamp")
    ]
    sourced.source("raw_rows", sql_of([first, other]))
    sourced.dbt("snapshot")
    before = {name: sourced.rows(name) for name in ("check", "timestamp")}
    # One of them is the row that is stored: alone, the other would be taken for its change.
    later = [Source(("b|c", 2), 5, 2), other, Source(("new", 1), 1, 1), Source(("new", 1), 2, 2), first]
    sourced.source("raw_rows", sql_of(later))
    told = sourced.fail("snapshot")
    assert told.count("AR-304") == 2
    assert "b/c" in told
    assert {name: sourced.rows(name) for name in before} == before


def custom(shop: Shop, settings: str, query: str, name: str = "kept") -> None:
    shop.file(
        f"snapshots/{name}.sql",
        f"{{% snapshot {name} %}}{{{{ config(target_schema=target.schema, {settings}) }}}} {query}"
        "{% endsnapshot %}",
    )


def test_nested_keys_have_ids_of_their_own(sourced: Shop) -> None:
    keys = {
        "structs": ("named_struct('x', x, 'y', y)", ("'a, b'", "'c'"), ("'a'", "'b, c'")),
        "lists": ("filter(array(x, y), part -> part IS NOT NULL)", ("'a, b'", "NULL"), ("'a'", "'b'")),
        "nothing": ("named_struct('x', x, 'y', y)", ("NULL", "'c'"), ("'NULL'", "'c'")),
    }
    for name, (key, one, other) in keys.items():
        rows = f"({', '.join(one)}, 'one'), ({', '.join(other)}, 'other')"
        query = (
            f"select {key} as k, which, if(which = 'one', {{{{ var('value', 1) }}}}, 1) as value "
            f"from values {rows} as t(x, y, which)"
        )
        custom(sourced, "unique_key='k', strategy='check', check_cols=['value']", query, name)
    sourced.dbt("snapshot")
    sourced.dbt("snapshot", "--vars", "{value: 2}")
    expected = [("one", 1, False), ("one", 2, True), ("other", 1, True)]
    for name in keys:
        assert sourced.rows(name, "which, value, dbt_valid_to IS NULL") == expected, name


def test_times_of_every_type_are_kept_and_compared_as_they_are(sourced: Shop) -> None:
    """With deletions, the time of the run is in the same columns as ``updated_at``."""
    casts = {"dates": "date", "local": "timestamp_ntz", "instants": "timestamp"}
    for name, cast in casts.items():
        query = f"select id, cast(at as {cast}) as at from {{{{ source('raw', 'raw_rows') }}}}"
        settings = "unique_key='id', strategy='timestamp', hard_deletes='new_record', updated_at="
        custom(sourced, f"{settings}'coalesce(at, null)'", query, f"{name}_by_sql")
        custom(sourced, f"{settings}'at'", query, name)
    names = [*casts, *(f"{name}_by_sql" for name in casts)]
    for text in ("bigint", "string"):
        query = (
            f"select id, cast(cast(at as timestamp) as {text}) as at from {{{{ source('raw', 'raw_rows') }}}}"
        )
        settings = "unique_key='id', strategy='timestamp', updated_at='at', hard_deletes="
        custom(sourced, f"{settings}'invalidate'", query, f"of_{text}")
        custom(sourced, f"{settings}'ignore'", query, f"kept_{text}")
    sourced.source("raw_rows", "SELECT 1 AS id, timestamp_ntz'2024-03-01 00:00:00' AS at")
    told = sourced.refusals("snapshot", "--select", "of_bigint", "of_string")
    assert all("updated_at is at, which is of type" in one for one in told.values())
    assert not [one for one in sourced.catalog.list_relations(sourced.schema) if one.name.startswith("of_")]
    names += ["kept_bigint", "kept_string"]
    day = "timestamp_ntz'2024-03-{:02} 00:00:00'"
    for at, gone in ((1, False), (2, True), (2, True), (3, False), (3, True), (3, False)):
        rows = f"SELECT 1 AS id, {day.format(at)} AS at"
        sourced.source("raw_rows", rows if gone else f"{rows} UNION ALL SELECT 2, {day.format(1)}")
        sourced.dbt("snapshot", "--select", *names)
    for name in names:
        found = sourced.rows(name, "id, day(cast(dbt_valid_from as timestamp)), dbt_valid_to IS NULL")
        changed = [(1, 1, False), (1, 2, False), (1, 3, True)]
        assert [row for row in found if row[0] == 1] == changed, name
        if not name.startswith("kept"):
            marks = sourced.rows(name, "id, dbt_is_deleted, dbt_valid_to IS NULL")
            ended = [*[(2, "False", False)] * 2, (2, "False", True), *[(2, "True", False)] * 2]
            assert marks[-5:] == ended, name


def test_a_record_without_a_mark_of_deletion_is_not_deleted(sourced: Shop) -> None:
    meta = "snapshot_meta_column_names={'dbt_is_deleted': 'Is_Gone'}"
    query = "select * from {{ source('raw', 'raw_rows') }}"
    custom(
        sourced, f"unique_key='id', strategy='check', check_cols='all', hard_deletes='ignore', {meta}", query
    )
    sourced.source("raw_rows", "SELECT explode(array(1, 2)) AS id")
    sourced.dbt("snapshot")
    sourced.sql("ALTER TABLE {s}.kept ADD COLUMN Is_Gone STRING")  # what dbt asks for
    custom(
        sourced,
        f"unique_key='id', strategy='check', check_cols='all', hard_deletes='new_record', {meta}",
        query,
    )
    sourced.source("raw_rows", "SELECT 1 AS id")
    for _ in range(2):
        sourced.dbt("snapshot")
        assert sourced.rows("kept", "id, Is_Gone, dbt_valid_to IS NULL") == [
            (1, None, True),
            (2, "True", True),
            (2, None, False),
        ]


def test_a_record_of_a_deletion_keeps_the_columns_that_the_query_lost(sourced: Shop) -> None:
    strategies = {
        "check": "check_cols='all', updated_at='current_timestamp()'",
        "timestamp": "updated_at='at'",
    }

    def write(columns: str) -> None:
        for strategy, settings in strategies.items():
            sourced.file(
                f"snapshots/by_{strategy}.sql",
                f"{{% snapshot by_{strategy} %}}{{{{ config(unique_key='id', strategy='{strategy}', "
                f"{settings}, hard_deletes='new_record') }}}} select {columns} "
                "from {{ source('raw', 'raw_other') }}{% endsnapshot %}",
            )

    def taken(strategy: str) -> list[tuple[Any, ...]]:
        return sourced.rows(f"by_{strategy}", "id, box, dbt_is_deleted, dbt_valid_to IS NULL")

    write("id, at, named_struct('x-y', id) AS Box")
    at = "timestamp'2024-03-01 00:00:00' AS at"
    sourced.source("raw_other", f"SELECT explode(array(1, 2)) AS id, {at}")
    sourced.dbt("snapshot")
    write("id, at")
    sourced.source("raw_other", f"SELECT 2 AS id, {at}")
    one, two = {"x-y": 1}, {"x-y": 2}
    expected = [(1, one, "False", False), (1, one, "True", True), (2, two, "False", True)]
    for _ in range(2):
        sourced.dbt("snapshot")
        assert {name: taken(name) for name in strategies} == dict.fromkeys(strategies, expected)
    # What is read as NULL in other columns is no value of updated_at.
    write("id")
    assert "UNRESOLVED_COLUMN" in sourced.fail("snapshot", "--select", "by_timestamp")
    assert taken("timestamp") == expected


def test_the_query_runs_once_and_its_columns_may_have_any_name(shop: Shop) -> None:
    """A key that is both a column and an expression is the column; each id is of one row."""
    query = """select `a-b`, a, b, `the at`, note, named_struct('p', null, 'q', 1) as untyped
        from {{ source('raw', 'raw_rows') }} /* the query */"""
    forms = {
        "checked": "unique_key='a-b', strategy='check', check_cols=['note'], hard_deletes='invalidate'",
        "timed": "unique_key=['A-B', 'b'], strategy='timestamp', updated_at='the at', "
        "hard_deletes='new_record'",
        "own_ids": "unique_key='A-B', strategy='check', check_cols=['note'], hard_deletes='invalidate'",
        "early": "unique_key='`a-b`', strategy='early', check_cols=['note'], updated_at='`the at`'",
    }
    shop.file(
        "macros/own.sql",
        "{% macro snapshot_check_strategy(node) %}"
        "{% set found = dbt.snapshot_check_strategy(node, *varargs) %}{{ return("
        "dict(found, scd_id=\"concat('own-', `a-b`, note)\") if node.name == 'own_ids' else found) }}"
        "{% endmacro %}"
        "{% macro snapshot_early_strategy(node) %}{# a strategy as of dbt 1.8 #}"
        "{% set found = dict(dbt.snapshot_check_strategy(node, *varargs)) %}"
        "{% do found.pop('hard_deletes') %}{{ return(found) }}"
        "{% endmacro %}",
    )
    tables = f"[{{name: raw, schema: {shop.schema}, tables: [{{name: raw_rows}}]}}]"
    shop.file("models/sources.yml", f"sources: {tables}")
    for name, config in forms.items():
        shop.file(
            f"snapshots/{name}.sql",
            f"{{% snapshot {name} %}}{{{{ config({config}) }}}} {query} {{% endsnapshot %}}",
        )

    def snapshot(rows: str) -> None:
        columns = "`a-b`, a, b, note, `the at`"
        shop.source("raw_rows", f"SELECT * FROM VALUES {rows} AS t({columns})")
        shop.dbt("snapshot")
        ran = [sql for sql in shop.script.ran if "/* the query */" in sql]
        assert [sql.count("/* the query */") for sql in ran] == [1] * len(forms)

    # a - b is 1 in both rows.
    snapshot("('x', 2, 1, 'old', timestamp'2024-01-01'), ('y', 3, 2, 'old', timestamp'2024-01-01')")
    snapshot("('x', 2, 1, 'new', timestamp'2024-01-02'), ('z', 3, 2, 'old', timestamp'2024-01-01')")
    for name in forms:
        rows = shop.rows(name, "`a-b`, note, dbt_valid_to is null as current")
        closed = [("y", "old", name == "early")]  # without hard_deletes, it stays
        record = [("y", "old", True)] if name == "timed" else []
        kept = [("x", "new", True), ("x", "old", False), *closed, *record, ("z", "old", True)]
        assert rows == sorted(kept, key=repr), name
        assert shop.sql(
            f"SELECT count(DISTINCT dbt_scd_id) = count(*), typeof(any_value(untyped)) "
            f"FROM {{s}}.{name} GROUP BY ALL"
        ) == [(True, "struct<p:void,q:int>")], name
    assert {row[0][:4] for row in shop.rows("own_ids", "dbt_scd_id")} == {"own-"}
    assert not [one for one in shop.catalog.list_relations(shop.schema) if "__pull_" in str(one)]
