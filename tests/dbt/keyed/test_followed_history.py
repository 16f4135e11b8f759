"""The page on histories: its rows, settings and limits are as they are written there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from typing import Any

import pandas as pd
import pytest
import yaml

import dbt_arctic
from dbt_arctic.errors import ArcticError
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.history_config import parse_history
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.followed_pages import Guide
from tests.pages import HOW_TO, section, table

pytestmark = pytest.mark.long

PAGE = HOW_TO / "keep-history.md"
TIME = "date_format({}, 'yyyy-MM-dd HH:mm')"
SHOWN = f"order_id, status, amount, {TIME.format('dbt_valid_from')}, {TIME.format('dbt_valid_to')}"


def declare(shop: Shop, **settings: Any) -> None:
    columns = {"order_id": "bigint", "status": "string", "amount": "decimal(10,2)"}
    meta = {"from": "files", "path": "landing", "format": "debezium", "key": "order_id", "columns": columns}
    meta |= {"decimal_handling": "string", **settings}
    found = {"name": "orders", "config": {"meta": {"arctic": meta}}}
    text = {"version": 2, "sources": [{"name": "shop", "schema": shop.schema, "tables": [found]}]}
    shop.file("models/shop.yml", yaml.safe_dump(text))


def event(lsn: int, at: str, operation: str, status: str = "", amount: str = "0.00") -> str:
    millis = int(pd.Timestamp(at, tz="UTC").timestamp() * 1000)
    row = {"order_id": 7, "status": status, "amount": amount}
    source = {"connector": "postgresql", "schema": "public", "table": "orders", "ts_ms": millis}
    source |= {"lsn": lsn, "sequence": json.dumps(["1", str(lsn)])}
    before = {"order_id": 7} if operation == "d" else None
    after = None if operation in "dt" else row
    return json.dumps({"before": before, "after": after, "source": source, "op": operation, "ts_ms": millis})


def land(shop: Shop, name: str, *events: str) -> None:
    shop.file(f"landing/{name}.json", "".join(f"{one}\n" for one in events))


def history(shop: Shop, name: str = "orders_history") -> list[list[str]]:
    return [[str(value or "") for value in row] for row in shop.rows(name, SHOWN)]


def test_the_history_of_rows_is_kept(shop: Shop) -> None:
    text = PAGE.read_text(encoding="utf-8")
    declare(shop)
    keyed = "{{ config(materialized='incremental', unique_key='order_id', sequence_by='changed_at') }}\n"
    states = "select * from {{ source('raw', 'raw_orders') }}"
    shop.model("orders", keyed + states)
    shop.source("raw_orders", "select 1L order_id, 'open' status, timestamp'2026-01-05 10:00:00' changed_at")
    opened, paid = table(PAGE, "dbt_valid_from").rows
    # The amount is not tracked: an interval shows the latest one.
    land(
        shop,
        "1",
        event(10, opened[3], "c", opened[1], "9.00"),
        event(20, "2026-01-05 11:00", "u", opened[1], opened[2]),
        event(60, paid[3], "u", paid[1], paid[2]),
    )
    Guide(shop, "keep-history", files={"From a keyed table": "models/states_history.sql"}).follow()
    (key,) = re.findall(r"`(unique_key=\[.*?\])`", section(PAGE, "A downstream model"))
    (pull,) = re.findall(r"`(incremental_pull\(.*?\))` returns", section(PAGE, "A downstream model"))
    after = f"{{{{ config(materialized='incremental', {key}) }}}} select * from {{{{ {pull} }}}}"
    shop.model("after", after)
    shop.dbt("run")
    assert history(shop) == history(shop, "after") == [opened, paid]

    (current,) = re.findall(r"`(where dbt_valid_to is .*?)`", text)
    (at_time,) = re.findall(r"`(where dbt_valid_from .*?)`", text)
    assert shop.sql(f"SELECT status FROM {{s}}.orders_history {current}") == [(paid[1],)]
    for time, status in ((opened[3], "open"), ("2026-01-06 12:29", "open"), (paid[3], "paid")):
        then = re.sub(r"\bt\b", f"timestamp'{time}'", at_time)
        assert shop.sql(f"SELECT status FROM {{s}}.orders_history {then}") == [(status,)]

    # A late event splits the interval in which it belongs. A repeated event changes nothing.
    land(
        shop,
        "2",
        event(40, "2026-01-06 06:00", "u", "held", "11.00"),
        event(60, paid[3], "u", paid[1], paid[2]),
    )
    shop.dbt("run", "--select", "orders_history+")
    held = ["7", "held", "11.00", "2026-01-06 06:00", paid[3]]
    opened = [*opened[:4], held[3]]
    assert history(shop) == history(shop, "after") == sorted([opened, held, paid], key=str)
    # A delete closes the interval. A row that is inserted again opens a new one. A late event merges another.
    land(
        shop,
        "3",
        event(30, "2026-01-06 05:00", "u", "held", "10.50"),
        event(70, "2026-01-07 00:00", "d"),
        event(80, "2026-01-08 00:00", "c", "open", "1.00"),
    )
    shop.dbt("run", "--select", "orders_history+")
    expected = [
        [*opened[:4], "2026-01-06 05:00"],
        [*held[:3], "2026-01-06 05:00", held[4]],
        [*paid[:4], "2026-01-07 00:00"],
        ["7", "open", "1.00", "2026-01-08 00:00", ""],
    ]
    assert history(shop) == history(shop, "after") == sorted(expected, key=str)

    # A keyed table: one state for each run of the history that found the key changed.
    for status, day, select in (("held", 6, "orders"), ("paid", 7, "orders+"), ("gone", 8, "orders+")):
        at = f"timestamp'2026-01-{day:02} 10:00:00'"
        shop.source("raw_orders", f"select 1L order_id, '{status}' status, {at} changed_at")
        shop.dbt("run", "--select", select)
    assert shop.rows("states_history", "status, day(dbt_valid_from), day(dbt_valid_to)") == [
        ("gone", 8, None),
        ("open", 5, 7),
        ("paid", 7, 8),
    ]


def test_settings_of_a_history(shop: Shop) -> None:
    """The columns are those of the page, as are the examples of settings, and changing one is an error."""
    declare(shop)
    land(shop, "1", event(10, "2026-01-05 10:00", "c", "open"), event(20, "2026-01-06 10:00", "d"))
    land(shop, "2", event(30, "2026-01-07 10:00", "c", "open"))
    model = Guide(shop, "keep-history").text("updated_at=")
    shop.model("orders_history", model)
    shop.dbt("run")
    columns = [name for row in table(PAGE, "column").rows for name in re.findall(r"`([\w]+)`", row[0])]
    described = [row[0] for row in shop.sql("DESCRIBE {s}.orders_history")]
    assert sorted(name for name in described if name.startswith("dbt_")) == sorted(columns[:-1])
    settings = {row[0].strip("`"): row for row in table(PAGE, "setting").rows}
    base = {"unique_key": "order_id", "sequence_by": "a", "materialized": "incremental"}
    base["incremental_strategy"] = "history"
    defaults = {name: row[2].strip("`") for name, row in settings.items()}
    defaults = {
        name: value
        for name, value in defaults.items()
        if name not in base and re.fullmatch(r"\w+|\d+ days", value)
    }
    assert {*defaults} == {"check_cols", "hard_deletes", "dbt_valid_to_current", "tombstone_retention"}
    for parse in (parse_config, parse_history):
        assert parse("m", {**base, **defaults}) == parse("m", base), defaults

    until = re.findall(r"`(to_date.*?)`", settings["dbt_valid_to_current"][1])[0]
    names = re.findall(r"`(\{.*?\})`", settings["snapshot_meta_column_names"][1])[0]
    more = f'hard_deletes="new_record", dbt_valid_to_current="{until}", snapshot_meta_column_names={names}, '
    shop.model("orders_history", model.replace("ignore_cols", more + "ignore_cols"))
    shop.dbt("run", "--full-refresh")
    described = [row[0] for row in shop.sql("DESCRIBE {s}.orders_history")]
    assert "valid_from" in described
    assert "dbt_valid_from" not in described
    assert shop.rows("orders_history", "status, dbt_is_deleted, date(dbt_valid_to) = date'9999-12-31'") == [
        ("open", "False", False),
        ("open", "False", True),
        ("open", "True", False),
    ]
    # Each of these is an error until the history is computed again.
    land(shop, "3", event(90, "2026-01-09 00:00", "u", "open", "2.00"))
    changes = [
        (r"unique_key='order_id'", "unique_key=['order_id', 'status']"),
        (r"sequence_by='_source_sequence'", "sequence_by='_source_changed_at'"),
        (r"updated_at='_source_changed_at'", "updated_at='_source_modified'"),
        (r'hard_deletes="new_record", ', ""),
        (r'dbt_valid_to_current=".*?", ', ""),
        (r"snapshot_meta_column_names=\{.*?\}, ", ""),
        (r"ignore_cols=\['amount'\]", "check_cols=['amount']"),
    ]
    written = (shop.folder / "models" / "orders_history.sql").read_text(encoding="utf-8")
    for old, new in changes:
        changed, count = re.subn(old, new, written)
        assert count == 1
        shop.model("orders_history", changed)
        said = shop.fail("run")
        assert "--full-refresh" in said, said
    shop.dbt("run", "--full-refresh")


def test_limits_of_a_history(shop: Shop, type_in: Terminal) -> None:
    limits = section(PAGE, "Limits")
    declare(shop)
    land(shop, "1", event(10, "2026-01-05 10:00", "c", "open"), event(20, "2026-01-06 10:00", "d"))
    shop.model("orders_history", Guide(shop, "keep-history").text("updated_at="))
    shop.dbt("run")
    change = f"DELETE FROM lake.{shop.schema}.orders_history WHERE order_id = 7"
    assert "events" in type_in("sql", change, code=2)
    folders = {"project_dir": str(shop.folder), "profiles_dir": str(shop.folder)}
    with pytest.raises(ArcticError, match="events"):
        dbt_arctic.append("orders_history", pd.DataFrame({"order_id": [7]}), **folders)
    base = [name for name, *_ in shop.sql("DESCRIBE {s}.orders_history__base_1")]
    base = base[: base.index("")]  # partitions follow
    shown = [name for name, *_ in shop.sql("DESCRIBE {s}.orders_history")]
    (prefix,) = re.findall(r"begin with `(\w+)`", limits)
    assert {*base} - {*shown} == {name for name in base if name.startswith(prefix)} != set()

    # A clone can be read, and written after a full refresh.
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profiles["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    shutil.copytree(shop.folder / "target", shop.folder / "state")
    shop.dbt("clone", "--target", "ci", "--state", "state", "--select", "orders_history")
    clone = f"lake.{shop.schema}_ci.orders_history"
    assert shop.sql(f"SELECT order_id FROM {clone}") == [(7,)]
    land(shop, "2", event(30, "2026-01-07 10:00", "c", "open"))
    build = ("run", "--target", "ci", "--select", "orders_history")
    (fix,) = re.findall(r"build it with `(.*?)`", limits)
    assert fix in shop.fail(*build)
    shop.dbt(*build, fix)
    assert len(shop.sql(f"SELECT order_id FROM {clone}")) == 2

    (erase,) = re.findall(r"`dbt-arctic (erase .*?)`", limits)
    shop.dbt("run")
    assert len(shop.rows("orders_history")) == 2
    type_in(*shlex.split(erase), "--yes")
    assert shop.rows("orders_history") == []
    # A truncation fails the run. A full refresh begins after it.
    (code,) = re.findall(r"AR-\d+", limits)
    land(shop, "3", event(100, "2026-01-10 00:00", "t"))
    land(shop, "4", event(110, "2026-01-11 00:00", "c", "open", "3.00"))
    assert code in shop.fail("run")
    shop.dbt("run", "--full-refresh")
    assert history(shop) == [["7", "open", "3.00", "2026-01-11 00:00", ""]]
    # The source must send complete rows.
    declare(shop, unavailable="keep")
    assert "_unavailable" in shop.fail("run", "--full-refresh")
