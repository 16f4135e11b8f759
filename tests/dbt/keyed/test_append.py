"""``dbt_arctic.append`` on Spark: DataFrames of every kind, next to dbt."""

from __future__ import annotations

import datetime as dt
import inspect
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import dbt_arctic
from dbt_arctic.errors import ConfigError, DuplicateKey, SchemaChanged
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.pages import HOW_TO, blocks, table

PAGE = HOW_TO / "append-from-python.md"
READING = HOW_TO / "read-from-python.md"
PAYMENTS = """
{{ config(materialized='incremental', unique_key='id', buckets=1, full_refresh=false) }}
select cast(null as bigint) as id, cast(null as decimal(10, 2)) as amount, cast(null as timestamp) as at
where false
"""
TOTAL = """
{{ config(materialized='materialized_view', unique_key='day', buckets=1) }}
select cast(at as date) as day, sum(amount) as amount from {{ ref('payments') }} group by cast(at as date)
"""
EVENTS = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select cast(null as bigint) as id, cast(null as string) as what where false
"""
SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.decimal128(10, 2)), ("at", pa.timestamp("us", "UTC"))])
AT = dt.datetime(2026, 1, 5, 12, tzinfo=dt.timezone.utc)


def arrow(rows: dict[int, str | None]) -> pa.Table:
    """Payments by id; without an amount, a delete."""
    values = [(id_, None if amount is None else Decimal(amount), AT) for id_, amount in rows.items()]
    columns = [pa.array([row[at] for row in values], field.type) for at, field in enumerate(SCHEMA)]
    actions = ["D" if amount is None else "U" for amount in rows.values()]
    return pa.Table.from_arrays([*columns, pa.array(actions)], names=[*SCHEMA.names, "op"])


def pandas(rows: dict[int, str | None]) -> pd.DataFrame:
    return arrow(rows).to_pandas()


def writer(shop: Shop) -> Callable[..., Any]:
    def write(table: str, rows: Any, key: str | None = None, **more: Any) -> bool:
        folder = str(shop.folder)
        done = dbt_arctic.append(
            table, rows, idempotency_key=key, project_dir=folder, profiles_dir=folder, **more
        )
        assert done.table == f"lake.{shop.schema}.{table}"
        return done.written

    return write


def read_by_the_page(type_in: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    """The code and the commands of the page on reads, with the table of this one."""
    text = READING.read_text(encoding="utf-8")
    code, by_value = (block.text for block in blocks(READING) if block.language == "python")
    (printed,) = re.findall(r"`(\[\{.*?\}\])`", text)
    capsys.readouterr()
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert capsys.readouterr().out.splitlines()[-1] == printed
    assert scope["payments"].num_rows == 2
    exec(by_value, scope)
    assert scope["ten"].column("payment_id").to_pylist() == [1]
    every, one, ten, some = (command for block in blocks(READING) for command in block.commands)
    assert "2 rows" in type_in(*every.arguments)
    assert re.findall(r"^1\s.*10.00\s", type_in(*one.arguments), re.MULTILINE)
    assert "1 row" in type_in(*ten.arguments)
    shown = json.loads(type_in(*some.arguments))
    assert sorted(row["payment_id"] for row in shown) == [1, 2]
    named = [name for row in table(READING, "argument").rows for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted([*inspect.signature(dbt_arctic.read).parameters][1:])


def test_the_story_of_the_page_is_true(
    shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, first, deletes = re.findall(
        r"```(?:sql|python)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    shop.model("payments", model)
    shop.dbt("run")
    monkeypatch.chdir(shop.folder)
    monkeypatch.setenv("DBT_PROFILES_DIR", str(shop.folder))
    scope: dict[str, Any] = {}
    capsys.readouterr()
    for expected in ("True 2", "False 0"):
        exec(first, scope)  # what a reader of the page does
        assert capsys.readouterr().out.splitlines()[-1] == expected
    assert shop.rows("payments", "payment_id, amount") == [(1, Decimal(10)), (2, Decimal(20))]
    read_by_the_page(type_in, capsys)
    exec(deletes, scope)
    with pytest.raises(SchemaChanged, match="no op"):
        dbt_arctic.append("payments", scope["changes"])
    shop.dbt("run", "--full-refresh")
    assert shop.rows("payments", "payment_id") == [(1,), (2,)]


def test_dataframes_of_every_kind_are_appended_once_and_dbt_goes_on(shop: Shop) -> None:
    write = writer(shop)
    shop.model("payments", PAYMENTS)
    shop.model("total", TOTAL)
    shop.model("events", EVENTS)
    shop.dbt("run")

    spark = shop.connection.session
    batches: list[Any] = [
        pandas({1: "10.10", 2: "20.20"}),
        arrow({2: None, 3: "30.30"}),
        spark.createDataFrame(arrow({1: "11.11", 4: "40.40"})),
    ]
    for number, rows in enumerate(batches):
        assert write("payments", rows, f"batch {number}", action="op") is True
        assert write("payments", rows, f"batch {number}", action="op") is False
    # Sent again later, a batch does not undo what came after it.
    assert write("payments", batches[0], "batch 0", action="op") is False
    # Without a key, it is written each time.
    for _ in range(2):
        assert write("payments", arrow({5: "50.50"}).drop_columns(["op"]))
    stored = {1: Decimal("11.11"), 3: Decimal("30.30"), 4: Decimal("40.40"), 5: Decimal("50.50")}
    assert shop.rows("payments", "id, amount") == sorted(stored.items())
    shop.dbt("run")
    assert shop.rows("total", "amount") == [(sum(stored.values()),)]

    # Nothing is cast silently, and keys are checked as in a model.
    with pytest.raises(SchemaChanged, match="amount is double"):
        write("payments", pandas({6: "1.00"}).astype({"amount": "float64"}), "c", action="op")
    twice = pa.concat_tables([arrow({6: "1.00"}), arrow({6: "2.00"})])
    with pytest.raises(DuplicateKey):
        write("payments", twice, "c", action="op")
    assert write("payments", twice, "c", action="op", deduplicate_by="amount") is True
    assert (6, Decimal("2.00")) in shop.rows("payments", "id, amount")
    with pytest.raises(ConfigError, match="the rows are of the type int"):
        write("payments", 5)
    with pytest.raises(ConfigError, match="side table of the keyed table payments"):
        write("payments__base_1", arrow({6: "1.00"}).drop_columns(["op"]))
    with pytest.raises(ConfigError, match="automatic model"):
        write("total", arrow({6: "1.00"}), "d")

    # A plain table takes rows, and each batch once.
    events = pd.DataFrame({"id": [1, 2], "what": ["new", "paid"]})
    assert [write("events", events, "e") for _ in range(2)] == [True, False]
    shop.dbt("run", "--select", "events")
    assert write("events", events, "e") is False
    assert write("events", spark.createDataFrame(events)) is True
    assert shop.rows("events") == [(1, "new"), (1, "new"), (2, "paid"), (2, "paid")]
    # No view stays behind.
    assert not [one for one in spark.sql("SHOW VIEWS IN global_temp").collect() if "append" in one.viewName]
