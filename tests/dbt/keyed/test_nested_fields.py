"""Fields inside structs, arrays and maps come, go and get wider types, as columns do.

An oracle in plain Python says what each model and snapshot holds after each run. The rows of a run have the
values of its version (``make``); a table has some fields (``FIELDS``), and a value is read by their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.dbt.keyed.conftest import Shop

Row = dict[str, Any]
Fields = Mapping[str, "Fields"]
BIG = 2**40
ODD = ("order", "a-b", "Ä", "in,ner", "co:lon", "less<than", "p.q", "by day", *(f"f{at}" for at in range(20)))
"""Names that need quotes, and more of them than Spark's own text of a type shows."""
BOX = """
{% macro odd() -%}{% for name in ODD %}, '{{ name }}', n{% endfor %}{%- endmacro %}
{% macro box() -%}
{%- set v = var('v', 1) -%}
{% if v == 1 %}named_struct('a', n, 'x y', named_struct('c', n), 'ns', array(n))
{%- elif v == 2 %}named_struct('new`', concat('b', n), 'x y', named_struct('d', n, 'c', n),
  'ns', array(cast(n + {{ var('more', 0) if model.name in var('widening', []) else 0 }} as bigint)),
  'a', n{{ odd() }})
{%- else %}named_struct('new`', concat('b', n)){% endif %}
{%- endmacro %}
""".replace("ODD", repr(list(ODD)))
COLUMNS = "id, at, {{ box() }} as box, array({{ box() }}) as boxes, map('k', {{ box() }}) as named"
FIELDS: dict[int, Fields] = {
    1: {"a": {}, "x y": {"c": {}}, "ns": {}},
    2: {"a": {}, "x y": {"c": {}, "d": {}}, "ns": {}, "new`": {}, **{name: {} for name in ODD}},
    3: {"new`": {}},
}
MODELS = {
    "added": ("append_new_columns", "incremental_strategy='append'"),
    "merged": ("append_new_columns", "incremental_strategy='merge', unique_key='id'"),
    "daily": (
        "append_new_columns",
        "incremental_strategy='microbatch', event_time='at', batch_size='day', begin='2024-01-01', "
        "lookback=0",
    ),
    "replaced": ("sync_all_columns", "incremental_strategy='delete+insert', unique_key='id'"),
    "overwritten": ("sync_all_columns", "incremental_strategy='insert_overwrite', partition_by='id'"),
    "keyed": ("sync_all_columns", "unique_key='id'"),
    "partial": ("append_new_columns", "unique_key='id', merge_exclude_columns=['at']"),
}
SNAPSHOTS = {
    "by_time": "strategy='timestamp', updated_at='at'",
    "by_check": "strategy='check', check_cols='all'",
    "with_records": "strategy='check', check_cols='all', hard_deletes='new_record'",
}


def make(version: int, number: int, more: int) -> Row:
    """What the macro makes of a number."""
    if version == 1:
        return {"a": number, "x y": {"c": number}, "ns": [number]}
    if version == 2:
        return {
            "new`": f"b{number}",
            "x y": {"d": number, "c": number},
            "ns": [number + more],
            "a": number,
            **dict.fromkeys(ODD, number),
        }
    return {"new`": f"b{number}"}


def as_fields(value: Any, fields: Fields) -> Any:
    """A stored value as it is read with some fields: those that it lacks are NULL."""
    if value is None or not fields:
        return value
    return {name: as_fields(value.get(name), inside) for name, inside in fields.items()}


@pytest.fixture
def boxes(shop: Shop) -> Shop:
    shop.file("macros/box.sql", BOX)
    return shop


def model(shop: Shop, name: str, mode: str, config: str) -> None:
    shop.model(
        name,
        f"{{{{ config(materialized='incremental', on_schema_change='{mode}', {config}) }}}}\n"
        f"select {COLUMNS} from {{{{ source('raw', 'raw_orders') }}}}",
    )


def numbers(shop: Shop, *ids: int) -> None:
    rows = ", ".join(f"({number}, {number}, timestamp'2024-01-0{number} 00:00:00')" for number in ids)
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} AS t(id, n, at)")


def stored(shop: Shop, columns: Mapping[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """Some columns of each table, and the box, which stands in an array and in a map, too."""
    text = "to_json(struct(box, boxes, named), map('ignoreNullFields', 'false'))"
    parts = [f"SELECT '{name}', {some}, {text} FROM {{s}}.{name}" for name, some in columns.items()]
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in columns}
    for name, *known, boxes in shop.sql(" UNION ALL ".join(parts)):
        row = json.loads(boxes)
        assert row["boxes"] == [row["box"]]
        assert row["named"] == {"k": row["box"]}
        found[name].append((*known, row["box"]))
    return {name: in_order(rows) for name, rows in found.items()}


def in_order(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def test_each_strategy_and_snapshot_gets_the_fields_of_its_query(boxes: Shop) -> None:
    shop = boxes
    for name, (mode, config) in MODELS.items():
        model(shop, name, mode, config)
    for name, config in SNAPSHOTS.items():
        shop.file(
            f"snapshots/{name}.sql",
            f"{{% snapshot {name} %}}\n{{{{ config(unique_key='id', {config}) }}}}\n"
            f"select {COLUMNS} from {{{{ source('raw', 'raw_orders') }}}}\n{{% endsnapshot %}}",
        )
    appending = [name for name, (mode, _) in MODELS.items() if mode == "append_new_columns"]
    widening = [*(name for name in MODELS if name not in appending), *SNAPSHOTS]
    tables: dict[str, list[tuple[int, Row]]] = {name: [] for name in MODELS}
    period = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-05")
    for version, ids in [(1, (1,)), (2, (1, 2)), (2, (1, 2)), (3, (3,))]:
        numbers(shop, *ids)
        # Where a type stays, the numbers are small: an int does not hold what a bigint does.
        more = BIG if version > 1 else 0
        given = {"v": version, "more": more, "widening": widening}
        shop.dbt("build", *period, "--vars", json.dumps(given))
        for name in MODELS:
            widens = name in widening
            rows = [(number, make(version, number, more if widens else 0)) for number in ids]
            fields = FIELDS[version if widens else min(version, 2)]
            kept = [row for row in tables[name] if name == "added" or row[0] not in ids]
            if name == "daily":  # each day of the period is replaced
                kept = []
            # What is dropped does not come back.
            tables[name] = [(number, as_fields(box, fields)) for number, box in (*kept, *rows)]
        found = stored(shop, dict.fromkeys(MODELS, "id"))
        assert found == {name: in_order(rows) for name, rows in tables.items()}, version
    records = " AND dbt_is_deleted = 'False'"
    current = {name: f"dbt_valid_to IS NULL{records * (name == 'with_records')}" for name in SNAPSHOTS}
    expected = {
        name: in_order((number, now, as_fields(box, FIELDS[2])) for number, box, now in history_of(name))
        for name in SNAPSHOTS
    }
    assert stored(shop, {name: f"id, {now}" for name, now in current.items()}) == expected


def history_of(name: str) -> Iterator[tuple[int, Row, bool]]:
    """The rows of a snapshot after the runs above: id, box, whether it is the current one and no deletion."""
    first, second = make(1, 1, 0), make(2, 1, BIG)
    if name == "by_time":
        yield 1, first, True  # it was not updated
    else:
        yield 1, first, False
        yield 1, second, name == "by_check"
    yield 2, make(2, 2, BIG), name != "with_records"
    if name == "with_records":
        yield 1, second, False
        yield 2, make(2, 2, BIG), False
    yield 3, make(3, 3, 0), True


def test_what_is_not_to_change_is_refused_by_its_name(boxes: Shop) -> None:
    shop = boxes
    for form, config in {"plain": "incremental_strategy='append'", "keyed": "unique_key='id'"}.items():
        for mode in ("ignore", "fail"):
            model(shop, f"{form}_{mode}", mode, config)
    numbers(shop, 1)
    shop.dbt("run")
    names = [f"{form}_{mode}" for form in ("plain", "keyed") for mode in ("ignore", "fail")]
    before = stored(shop, dict.fromkeys(names, "id"))
    failed = {one.node.name: str(one.message) for one in shop.try_dbt("run", "--vars", "{v: 2}").result}
    for name, said in failed.items():
        for field in ("box.new`", "boxes[].new`", "named{value}.x y.d"):
            assert field in said, said
        assert ("AR-305" in said) == (name != "plain_fail"), said
    assert stored(shop, dict.fromkeys(names, "id")) == before
    failed = {one.node.name: str(one.message) for one in shop.try_dbt("run", "--vars", "{v: 3}").result}
    assert all("box.a" in said for said in failed.values()), failed
    assert stored(shop, dict.fromkeys(names, "id")) == before
