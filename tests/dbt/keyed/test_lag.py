"""``dbt-arctic lag``: how late models are, through files, tables and views, without Spark."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from dbt_arctic.engine import jvm

from .conftest import Shop
from .test_file_sources import clicks, declare, land, row
from .test_operator_commands import Terminal

LOADED = """{{ config(materialized='streaming_table', unique_key='id') }}
select id, city, amount from {{ incremental_pull(source('landing', 'clicks')) }}"""
AUTO = "{{ config(materialized='materialized_view', unique_key='city') }}\n"


def lags(type_in: Terminal, *arguments: str, code: int = 0) -> dict[str, Any]:
    return {one["model"]: one for one in type_in.json("lag", *arguments, code=code)}


def test_a_change_makes_each_model_late_that_does_not_contain_it(shop: Shop, monkeypatch: Any) -> None:
    type_in = Terminal(shop)
    declare(shop, clicks=clicks(shop))
    shop.model("loaded", LOADED)
    shop.model("recent", "{{ config(materialized='view') }}\nselect * from {{ ref('loaded') }} where id > 0")
    shop.model("by_city", AUTO + "select city, count(*) as n from {{ ref('recent') }} group by city")
    shop.model("blind", "{{ config(materialized='incremental') }}\nselect 1 as id")
    started = []
    monkeypatch.setattr(jvm, "started_spark", lambda settings: started.append(settings))
    first = lags(type_in, "loaded", "by_city", "--max", "1h", code=1)
    not_built = "it is not built yet"
    assert {name: one["problem"] for name, one in first.items()} == {
        "loaded": not_built,
        "by_city": f"{not_built}; loaded: its own lag is unknown",
    }
    monkeypatch.undo()
    assert started == []

    land(shop, "clicks/1.json", [row(1), row(2)])
    shop.dbt("run")
    built = lags(type_in)
    assert {name: (one["lag_s"], one["problem"]) for name, one in built.items()} == {
        "blind": (None, "it records no versions of what it reads"),
        "by_city": (None, None),
        "loaded": (None, None),
    }
    lags(type_in, "+by_city", "--max", "0s")

    file = land(shop, "clicks/2.json", [row(3, "Rome")])
    os.utime(file, (time.time() - 7200,) * 2)  # a copy that has kept an old time
    late = lags(type_in, "+by_city", "--max", "10 minutes")
    assert (late["by_city"]["because_of"], late["by_city"]["through"]) == ("landing.clicks", ["loaded"])
    assert late["by_city"]["lag_s"] == late["loaded"]["lag_s"] < 600, "it is new since the last run"
    assert late["by_city"]["upstreams"][0]["commits"] == 0
    assert [one["upstream"] for one in type_in.json("status", "loaded")[0]["behind"]] == ["landing.clicks"]
    assert re.search(r"\d s, landing\.clicks", type_in("status", "loaded"))
    (files,) = late["loaded"]["upstreams"]
    assert (files["files"], files["size_bytes"]) == (1, file.stat().st_size)
    lags(type_in, "by_city", "--max", "0s", code=1)

    shop.dbt("run", "--select", "loaded")
    land(shop, "clicks/3.json", [row(4, "Rome")])
    shop.dbt("run", "--select", "loaded")
    late = lags(type_in)
    (waiting,) = late["by_city"]["upstreams"]
    assert (waiting["upstream"], waiting["commits"], waiting["rows"]) == ("loaded", 2, 2)
    assert (late["by_city"]["because_of"], late["by_city"]["through"]) == ("loaded", [])
    assert late["loaded"]["lag_s"] is None
    shown = type_in("lag", "by_city").splitlines()[1].split("\t")
    # A full refresh would read the rows of the keyed table, merged or not.
    (read, end), full_refresh = (waiting["position"], waiting["end"]), waiting["full_refresh"]
    assert read != end == str(shop.state("loaded", "change").current_snapshot_id)
    assert full_refresh["rows"] == 4
    assert shown[0] == "by_city"
    assert shown[2:5] == ["loaded", "2 commits, 2 rows", f"{read} of {end}"]
    assert shown[5].startswith(f"{full_refresh['rows']} rows, ")
    assert late["loaded"]["upstreams"][0]["full_refresh"]["files"] == 3

    # A change without an effect on the result is consumed, too.
    shop.dbt("run", "--select", "by_city")
    land(shop, "clicks/4.json", [row(4, "Rome", 9)])
    shop.dbt("run")
    assert {one["lag_s"] for one in lags(type_in).values()} == {None}
    assert "No selected model is incremental." in type_in("lag", "recent")
    # A table has no lag that is known. It is shown if it is selected.
    shop.model("plain", "{{ config(materialized='table') }}\nselect 1 as id")
    assert "plain" not in lags(type_in)
    selected = lags(type_in, "plain", "recent", "loaded", "--max", "1 day", code=1)
    assert {name: one["problem"] for name, one in selected.items()} == {
        "loaded": None,
        "plain": "it records no versions of what it reads",
    }

    # Its log alone says that it is current, but neither it nor what reads it can be refreshed.
    base = shop.state("loaded", "base")
    metadata = Path(base.location.removeprefix("file:"), "metadata")
    metadata.rename(metadata.with_name("aside"))
    try:
        broken = lags(type_in, "--max", "1 day", code=1)
        assert f"{base.name}` cannot be read: dbt-arctic verify" in broken["loaded"]["problem"]
        assert (
            f"loaded: The metadata of the table `lake.{shop.schema}.{base.name}`"
            in broken["by_city"]["problem"]
        )
        assert f"lake.{shop.schema}.loaded cannot be read" in type_in("report")
        failed = type_in("sql", "select count(*) from loaded", code=2)
        assert "AR-201" in failed
        assert "  fix:   restore the file from a backup. `dbt-arctic verify` lists" in failed
        unreadable = type_in.json("report")["unreadable"]
        assert [one["table"] for one in unreadable] == [f"lake.{shop.schema}.loaded"]
    finally:
        metadata.with_name("aside").rename(metadata)
