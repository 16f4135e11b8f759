"""A write keeps each value as it is, a field under its name, or is refused before it commits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt_arctic.auto.upstreams import inspect_upstream
from dbt_arctic.errors import ConcurrentRun, SchemaChanged, VersionUnavailable
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.history import HistoryModel, build_history, write_history
from dbt_arctic.refresh.history_config import parse_history
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.refresh.pull import plan_pull
from dbt_arctic.store.consumption import Consumption
from tests.extent import extent
from tests.model import history_story
from tests.model.history_story import DAY_MS, Event, Rules, scd_id

ADDRESS = "struct<city: string, zip: string>"
TYPES = {
    "id": "bigint",
    "addr": ADDRESS,
    "many": f"array<{ADDRESS}>",
    "kinds": f"map<string, {ADDRESS}>",
    "deep": f"struct<n: int, inner: struct<tags: array<{ADDRESS}>, n: int>>",
}
BERN = {"city": "Bern", "zip": "3000"}
ROME = {"city": "Rome", "zip": "0100"}


def place(at: dict[str, str], swapped: bool) -> str:
    fields = [f"'{name}', '{value}'" for name, value in at.items()]
    return f"named_struct({', '.join(reversed(fields) if swapped else fields)})"


def row_sql(key: int, at: dict[str, str], *, swapped: bool) -> str:
    """A row whose structs have their fields in the one order or the other, at each depth."""
    one = place(at, swapped)
    inner = [f"'tags', array({one}, null)", "'n', 1"]
    outer = ["'n', 2", f"'inner', named_struct({', '.join(inner[::-1] if swapped else inner)})"]
    deep = f"named_struct({', '.join(outer[::-1] if swapped else outer)})"
    return (
        f"SELECT {key}L AS id, {one} AS addr, array({one}, null) AS many, map('home', {one}) AS kinds, "
        f"{deep} AS deep"
    )


def row(key: int, at: dict[str, str]) -> dict[str, Any]:
    inner = {"tags": [at, None], "n": 1}
    return {
        "id": key,
        "addr": at,
        "many": [at, None],
        "kinds": {"home": at},
        "deep": {"n": 2, "inner": inner},
    }


@pytest.fixture
def places(shop: Any) -> Any:
    made = shop.table("places", TYPES)
    made.build_sql(row_sql(1, BERN, swapped=False))
    return made


def test_fields_in_another_order_keep_their_names_at_every_depth(places: Any) -> None:
    modes = ("ignore", "fail", "append_new_columns", "sync_all_columns")
    for key, mode in enumerate(modes, 2):
        places.configured(on_schema_change=mode).upsert_sql(row_sql(key, ROME, swapped=True))
    expected = [row(1, BERN), *(row(key, ROME) for key, _ in enumerate(modes, 2))]
    assert places.rows() == expected
    places.compact()
    assert places.base_rows() == expected


def test_a_struct_that_is_null_stays_null(places: Any) -> None:
    swapped = "struct<zip: string, city: string>"
    places.upsert_sql(
        f"SELECT 1L AS id, CAST(NULL AS {swapped}) AS addr, CAST(NULL AS array<{swapped}>) AS many, "
        f"CAST(NULL AS map<string, {swapped}>) AS kinds, NULL AS deep"
    )
    assert places.rows() == [{"id": 1, "addr": None, "many": None, "kinds": None, "deep": None}]


def test_a_partial_upsert_and_a_pull_go_by_name_too(shop: Any, places: Any) -> None:
    partial = places.configured(merge_update_columns=["addr"])
    partial.upsert_sql(f"SELECT 1L AS id, {place(ROME, swapped=True)} AS addr")
    assert places.rows() == [{**row(1, BERN), "addr": ROME}]


def test_an_update_and_a_merge_go_by_name_too(shop: Any, places: Any) -> None:
    target = places.name.sql

    def run(sql: str) -> None:
        modify(shop.main.context, places.name, parse_modification(sql))

    run(f"UPDATE {target} SET addr = {place(ROME, swapped=True)} WHERE id = 1")
    assert places.rows() == [{**row(1, BERN), "addr": ROME}]
    source = row_sql(2, ROME, swapped=True)
    run(f"MERGE INTO {target} t USING ({source}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
    assert places.rows()[1] == row(2, ROME)
    with pytest.raises(SchemaChanged, match="id is decimal"):
        run(f"UPDATE {target} SET id = id + 0.7")


NUMBERS = {
    "id": "bigint",
    "n": "int",
    "day": "date",
    "price": "decimal(8,2)",
    "ratio": "float",
    "note": "string",
    "list": "array<int>",
    "named": "map<int, int>",
    "pair": "struct<a: int, b: int>",
}
FIRST = (
    "SELECT 1L AS id, 5 AS n, date'2024-01-01' AS day, 1.50BD AS price, CAST(0.5 AS FLOAT) AS ratio, "
    "'x' AS note, array(1) AS list, map(1, 1) AS named, named_struct('a', 1, 'b', 2) AS pair"
)
DRIFTS = {
    "n": ("10.7BD", "n is decimal"),
    "day": ("timestamp'2024-01-02 23:30:00'", "day is timestamp"),
    "price": ("1.505BD", "price is decimal"),
    "ratio": ("CAST(0.1 AS DOUBLE)", "ratio is double"),
    "note": ("unhex('ff')", "note is binary"),
    "list": ("array(10.7BD)", r"list\[\] is decimal"),
    "named": ("map(1.5BD, 1)", r"named\{key\} is decimal"),
    "pair": ("named_struct('a', 1)", "pair.b int is a field that the query does not have"),
    "id": ("1.7BD", "id is decimal"),
}


def test_a_value_that_the_column_would_change_is_refused_and_nothing_is_written(shop: Any) -> None:
    table = shop.table("numbers", NUMBERS)
    table.build_sql(FIRST)
    before = table.commits(), table.rows()
    second = FIRST.replace("1L AS id", "2L AS id")
    for column, (value, says) in DRIFTS.items():
        drifted = f"SELECT * EXCEPT ({column}), {value} AS {column} FROM ({second})"
        with pytest.raises(SchemaChanged, match=says) as refused:
            table.upsert_sql(drifted)
        assert refused.value.code == "AR-305"
        assert "cast the column in the model" in refused.value.fix
        assert table.commits() == before[0], column
    assert table.rows() == before[1]


TEXTS = {
    "id": "bigint",
    "at": "timestamp",
    "seq": "int",
    "note": "string",
    "pair": "struct<a: string, b: int>",
}
KEPT = {"id": 1, "at": "2024-01-01T00:00:00.000Z", "seq": 1, "note": "it's", "pair": {"a": "x", "b": 1}}


def texts(shop: Any, **config: Any) -> Any:
    made = shop.table("texts", TEXTS, **config)
    made.build_sql(
        "SELECT 1L AS id, timestamp'2024-01-01 00:00:00Z' AS at, 1 AS seq, 'it\\'s' AS note, "
        "named_struct('a', 'x', 'b', 1) AS pair"
    )
    return made


DATES = "DATE'2024-01-02' AS note, named_struct('b', 2, 'a', DATE'2024-01-03') AS pair"
NEW_TEXTS = {"note": "2024-01-02", "pair": {"a": "2024-01-03", "b": 2}}


def test_a_stored_text_stays_one_beside_the_dates_of_a_batch(shop: Any) -> None:
    table = texts(shop)
    config = parse_config("texts", table.config)
    sql = f"SELECT 2L AS id, timestamp'2024-01-01 00:00:00Z' AS at, 2 AS seq, {DATES}"
    for rows, expected in ((sql, [{**KEPT, "id": 2, "seq": 2, **NEW_TEXTS}]), (f"{sql} LIMIT 0", [])):
        interval = Interval.of("at", "2024-01-01", "2024-01-02")
        replace_keys(shop.main.context, table.name, config, rows, interval)
        assert table.rows() == expected


def test_a_stored_text_stays_one_beside_the_dates_of_a_partial_upsert(shop: Any) -> None:
    table = texts(shop, merge_update_columns=["seq"])
    rows = (
        f"SELECT {key}L AS id, timestamp'2024-01-01 00:00:00Z' AS at, {key} AS seq, {DATES}" for key in (1, 2)
    )
    for sql in rows:
        table.upsert_sql(sql)
    assert table.rows() == [KEPT, {**KEPT, "id": 2, "seq": 2, **NEW_TEXTS}]


def test_a_stored_text_stays_one_beside_the_dates_of_rows_that_lack_values(shop: Any) -> None:
    table = texts(shop, sequence_by="seq")
    at = "timestamp'2024-01-01 00:00:00Z' AS at"
    table.upsert_sql(
        f"SELECT 1L AS id, {at}, 2 AS seq, {DATES}, array('note', 'pair') AS _unavailable "
        f"UNION ALL SELECT 2L, {at}, 2, {DATES}, NULL"
    )
    assert table.rows() == [{**KEPT, "seq": 2}, {**KEPT, "id": 2, "seq": 2, **NEW_TEXTS}]


def test_a_key_of_any_type_is_compared_as_the_text_that_is_stored(shop: Any) -> None:
    """Spark compares ``true`` with a text by casting the text: 'yes' would be the same key."""
    types = {"id": "string", "at": "struct<zip: string, n: int>", "seen": "int", "note": "string"}
    table = shop.table("named", types, unique_key=["id", "at"], sort_by="id")
    given = ("'yes'", "'007'"), ("'true'", "'true'"), ("'abc'", "'x'")
    table.build_sql(
        "\nUNION ALL\n".join(
            f"SELECT {one} AS id, named_struct('zip', {zip_}, 'n', 1) AS at, 0 AS seen, 'kept' AS note"
            for one, zip_ in given
        )
    )
    partial = table.configured(merge_update_columns=["seen"])
    for seen, zip_ in ((1, "true"), (2, "7")):
        partial.upsert_sql(
            f"SELECT true AS id, named_struct('n', 1L, 'zip', {zip_}) AS at, {seen} AS seen, 'new' AS note"
        )
    expected = [
        {"id": "abc", "at": {"zip": "x", "n": 1}, "seen": 0, "note": "kept"},
        {"id": "true", "at": {"zip": "7", "n": 1}, "seen": 2, "note": "new"},
        {"id": "true", "at": {"zip": "true", "n": 1}, "seen": 1, "note": "kept"},
        {"id": "yes", "at": {"zip": "007", "n": 1}, "seen": 0, "note": "kept"},
    ]
    found = shop.main.read(f"SELECT * FROM {table.name.sql}", list(types))
    assert sorted(found, key=lambda row: (row["id"], row["at"]["zip"])) == expected
    with pytest.raises(SchemaChanged, match="the column at cannot store"):
        partial.upsert_sql(
            "SELECT true AS id, named_struct('n', 3000000000, 'zip', 7) AS at, 1 AS seen, 'new' AS note"
        )


STATE = """to_json(struct(zip, box, many, kinds, price), map('ignoreNullFields', 'false'))"""
STATES = {
    "text": {"1": "'00501'", "2": "'x1'", "3": "'TRUE'"},
    "int": {"1": "501", "2": "501", "3": "1"},
    "date": {"1": "date'2024-01-05'", "2": "date'2024-01-05'", "3": "date'2024-01-05'"},
    "boolean": {"1": "true", "2": "false", "3": "true"},
}
"""What the column ``zip`` of each key is in the batches of each type."""
AS_TEXT = {"date'2024-01-05'": "2024-01-05"}


def as_event(kind: str, key: str, sequence: int, action: str) -> Event:
    """What is stored: the same value as text, in a decimal with 18 places, and at each depth."""
    text = AS_TEXT.get(STATES[kind][key], STATES[kind][key].strip("'"))
    price = "12345678901234567890." + ("1" if kind == "text" else "5") + "0" * 17
    status = (
        f'{{"zip":"{text}","box":{{"zip":"{text}","n":1}},"many":[{{"zip":"{text}"}},null],'
        f'"kinds":{{"home":"{text}"}},"price":{price}}}'
    )
    given = (None, None) if action == "D" else (status, text)
    return Event(key, sequence, sequence * DAY_MS, *given, action)  # type: ignore[arg-type]


def events_of(kind: str, events: list[tuple[str, int, str]]) -> str:
    """A model that returns these events with values, keys, sequences and times of other types than stored."""
    price = "12345678901234567890." + ("100000000000000000" if kind == "text" else "5")
    rows = []
    for key, sequence, action in events:
        zip_ = STATES[kind][key]
        of_key = f"'{key}'" if kind == "text" else key
        at = f"date_add(date'1970-01-01', {sequence})"
        at = f"CAST({at} AS TIMESTAMP)" if kind == "text" else at
        box = ["'zip', " + zip_, "'n', 1"]
        box = box if kind == "text" else box[::-1]
        order = f"{sequence}L" if kind == "text" else f"CAST({sequence} AS DECIMAL(10,0))"
        rows.append(
            f"SELECT {of_key} AS id, {order} AS seq, {at} AS at, {zip_} AS zip, "
            f"named_struct({', '.join(box)}) AS box, array(named_struct('zip', {zip_}), null) AS many, "
            f"map('home', {zip_}) AS kinds, {price}BD AS price, {zip_} AS note, '{action}' AS _action"
        )
    return "\nUNION ALL\n".join(rows)


@pytest.mark.parametrize("records_deletes", [True, False][: extent(1, 2)])
def test_a_history_compares_and_keeps_the_stored_values_beside_events_of_other_types(
    shop: Any, records_deletes: bool
) -> None:
    name, context = shop.table("states", {"id": "string"}).name, shop.main.context
    rules = Rules(has_times=True, records_deletes=records_deletes)
    config = parse_config("states", rules.config)
    got: list[Event] = []

    def write(kind: str, *events: tuple[str, int, str]) -> None:
        model = HistoryModel(
            config, parse_history("states", rules.config), events_of(kind, list(events)), scd_id
        )
        if got:
            write_history(context, name, model, Consumption())
        else:
            build_history(context, name, model, {}, owner="model.test")
        got.extend(as_event(kind, *event) for event in events)
        deleted = "dbt_is_deleted" if records_deletes else "'False'"
        found = shop.main.query(
            f"SELECT id, seq, {STATE}, note, unix_millis(dbt_valid_from), unix_millis(dbt_valid_to), "
            f"unix_millis(dbt_updated_at), {deleted} FROM {name.sql}"
        )
        expected = [tuple(row) for row in history_story.expected(got, rules)]
        assert sorted(map(tuple, found), key=lambda row: row[:2]) == expected, kind

    write("text", ("1", 10, "U"), ("2", 10, "U"), ("3", 10, "U"), ("1", 12, "U"))
    write("int", ("1", 20, "U"), ("2", 5, "U"), ("3", 20, "D"))
    write("date", ("1", 15, "U"), ("2", 20, "U"))
    write("boolean", ("3", 15, "U"), ("3", 30, "U"), ("1", 11, "U"), ("2", 30, "D"))
    write("text", ("1", 25, "U"), ("2", 3, "U"))


def test_a_late_row_is_not_the_newer_one_because_its_sequence_was_cut(shop: Any) -> None:
    orders = shop.table("orders", {"id": "bigint", "seq": "int"}, sequence_by="seq")
    orders.build_sql("SELECT 1L AS id, 10 AS seq")
    with pytest.raises(SchemaChanged, match="seq is decimal"):
        orders.upsert_sql("SELECT 1L AS id, 10.2BD AS seq")
    assert orders.rows() == [{"id": 1, "seq": 10}]


def test_a_column_of_nothing_but_null_gets_the_type_of_its_first_value(shop: Any) -> None:
    orders = shop.table("orders", {"id": "bigint", "later": "string"})
    orders.build_sql("SELECT 1L AS id, NULL AS later")
    orders.upsert_sql("SELECT 2L AS id, NULL AS later")
    orders.upsert_sql("SELECT 3L AS id, 'x' AS later")
    with pytest.raises(SchemaChanged, match="later is array<int> in the query and string in the table"):
        orders.upsert_sql("SELECT 4L AS id, array(1) AS later")
    assert orders.rows() == [{"id": 1, "later": None}, {"id": 2, "later": None}, {"id": 3, "later": "x"}]


def upsert_during_build(shop: Any, table: Any, build: str, upsert: str, at: str = "publish_view") -> None:
    """Another process upserts during a full refresh, right before one of its statements."""
    session = shop.session()

    def before(step: str) -> None:
        if step == at:
            session.statements.before = None
            table.upsert_sql(upsert)

    session.statements.before = before
    table.on(session).build_sql(build)


def test_a_row_that_lands_during_a_full_refresh_with_fields_in_another_order_keeps_them(
    shop: Any, places: Any
) -> None:
    upsert_during_build(shop, places, row_sql(1, BERN, swapped=True), row_sql(2, ROME, swapped=False))
    shown = shop.main.read(f"SELECT * FROM {places.name.sql}", list(TYPES))
    assert sorted(shown, key=lambda one: one["id"]) == json.loads(json.dumps([row(1, BERN), row(2, ROME)]))


@pytest.mark.parametrize("type_", ["int", "decimal(8,1)"])
def test_or_the_full_refresh_replaces_nothing_where_the_new_table_would_change_a_value(
    shop: Any, type_: str
) -> None:
    prices = shop.table("prices", {"id": "bigint", "price": "decimal(8,2)"})
    prices.build_sql("SELECT 1L AS id, 1.00BD AS price")
    build = f"SELECT 1L AS id, CAST(7 AS {type_}) AS price"
    with pytest.raises(ConcurrentRun, match="price is decimal") as refused:
        upsert_during_build(shop, prices, build, "SELECT 2L AS id, 7.25BD AS price", "first_commit")
    assert refused.value.code == "AR-404"
    assert "nothing was replaced" in refused.value.fix
    shown = shop.main.query(f"SELECT id, CAST(price AS STRING) FROM {prices.name.sql} ORDER BY id")
    assert [tuple(one) for one in shown] == [(1, "1.00"), (2, "7.25")]


NUMBERS_THEN = {1: ("7", "2024-01-05", "true"), 2: ("8", "2024-01-06", "false")}
"""The text of each value of two rows: of a number, a date, and a boolean in a struct in an array."""
TEXTS_NOW = {1: ("007", "2024-1-5", "TRUE"), 3: ("x", "y", "z")}
RETYPED = {"id": "bigint", "zip": "string", "day": "string", "flags": "array<struct<f: string, n: int>>"}


STORED_AS = {name: type_.replace(": ", ":").replace(", ", ",") for name, type_ in RETYPED.items()}


def rows_of(values: dict[int, tuple[str, str, str]], kinds: tuple[str, str, str], swapped: bool) -> str:
    """SQL of rows with the values as another type than text, or as text."""
    found = []
    for key, row in values.items():
        zip_, day, flag = (
            f"{kind.strip()}'{text}'" if kind else text for kind, text in zip(kinds, row, strict=True)
        )
        fields = [f"'f', {flag}", "'n', 1"]
        made = f"named_struct({', '.join(fields[::-1] if swapped else fields)})"
        found.append(f"SELECT {key}L AS id, {zip_} AS zip, {day} AS day, array({made}) AS flags")
    return "\nUNION ALL\n".join(found)


AS_NUMBERS = rows_of(NUMBERS_THEN, ("", "date", ""), swapped=True)
AS_TEXTS = rows_of(TEXTS_NOW, (" ", " ", " "), swapped=False)


def pulled_row(key: int, values: tuple[str, str, str], action: str) -> tuple[Any, ...]:
    return (key, values[0], values[1], json.dumps([{"f": values[2], "n": 1}], separators=(",", ":")), action)


@pytest.mark.parametrize("is_keyed", [True, False])
def test_a_pull_across_other_types_returns_each_value_as_it_is_or_is_refused(
    shop: Any, is_keyed: bool
) -> None:
    """Spark would unite a text and a number as numbers, so ``'007'`` would be returned as 7."""
    catalog, cursor = shop.main.catalog, shop.main.connection.cursor()
    table = shop.table("upstream", RETYPED)
    name = table.name

    def replaced(sql: str) -> None:
        if is_keyed:
            table.build_sql(sql)
        else:
            cursor.execute(f"CREATE OR REPLACE TABLE {name.sql} USING iceberg AS\n{sql}")

    def pull(last: Any, images: Any = "after") -> Any:
        return plan_pull(catalog, name, last, model="copy", key=("id",), images=images)

    replaced(AS_NUMBERS)
    last = pull(None).consumed
    replaced(AS_TEXTS)
    changed = [pulled_row(key, row, "U") for key, row in TEXTS_NOW.items()]
    changed.append(pulled_row(2, NUMBERS_THEN[2], "D"))
    old = [pulled_row(key, row, "-U") for key, row in NUMBERS_THEN.items()]
    for images, expected in (("after", changed), ("both", [*changed, *old])):
        sql = pull(last, images).sql
        found = shop.main.query(f"SELECT id, zip, day, to_json(flags), _action FROM ({sql})")
        assert sorted(map(tuple, found)) == sorted(expected)
        types = {column.name: column.type for column in shop.main.context.query_schema(sql)}
        assert types == {**STORED_AS, "_action": "string"}
    assert inspect_upstream(catalog, name, last).lost == "the type of zip has changed"
    last = pull(None).consumed
    now = "SELECT 1L AS id, {} AS zip, 'a' AS day, array(named_struct('f', {}, 'n', 1)) AS flags"
    others = {
        "type of zip": now.format("7", "'b'"),
        "type of flags": now.format("'7'", "7"),
        "different key type": "SELECT '1' AS id",
    }
    # Of a keyed table, only the previous generation is still there.
    for says, sql in list(others.items())[: 1 if is_keyed else 3]:
        replaced(sql)
        with pytest.raises(VersionUnavailable, match=says) as refused:
            pull(last)
        assert refused.value.code == "AR-403"
        assert "dbt run --full-refresh --select copy" in refused.value.fix


def test_keys_that_a_collation_calls_equal_are_two_rows_from_the_first_batch_on(shop: Any) -> None:
    """The table stores them without the collation."""
    named = shop.table("named", {"id": "string", "n": "int"}, buckets=2)
    rows = "SELECT k COLLATE UTF8_LCASE AS id, n FROM VALUES {} AS t(k, n)"
    named.build_sql(rows.format("('A', 1), ('a', 2)"))
    named.upsert_sql(rows.format("('a', 3)"))
    shown = shop.main.query(f"SELECT id, n FROM {named.name.sql} ORDER BY n")
    assert [tuple(row) for row in shown] == [("A", 1), ("a", 3)]
