"""The commands `verify`, `clean`, `history`, `changes`, `savepoint`, `rollback` and `restore`, as typed."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tests.dbt.keyed.conftest import Shop, Terminal

ORDERS = """{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when='gone') }}
select id, amount, gone, named_struct('a', amount, 'b', array(true, null)) as parts, binary('x') as code
from {{ source('raw', 'raw_orders') }}"""


def test_a_day_in_the_life_of_a_table(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select col1 id, col2 amount, false gone from values (1L, 10), (2L, 20)")
    shop.model("orders", ORDERS)
    shop.dbt("run")
    assert type_in("savepoint", "orders", "opening").endswith("\n")
    shop.source("raw_orders", "select 1L id, 11 amount, false gone union all select 2L, 0, true")
    shop.dbt("run")
    assert type_in.json("verify") == {"tables": 1, "findings": []}
    assert "1 keyed table: no findings" in type_in("verify", "orders", "--data")

    newest, first = type_in.json("history", "orders")
    assert (newest["kind"], newest["rows"], first["kind"], first["rows"]) == ("upsert", 2, "build", 2)
    assert first["savepoints"] == ["opening"]
    assert newest["run"].endswith(":model.shop.orders")
    assert newest["version"] in type_in("history", "orders")

    changed = type_in.json("changes", "orders", "--from", "opening")
    assert [(row["_action"], row["id"], row["amount"]) for row in changed] == [
        ("-U", 1, 10),
        ("U", 1, 11),
        ("-U", 2, 20),
        ("D", 2, 20),
    ]
    shown_changes = type_in("changes", "orders", "--from", "opening", "--to", newest["version"])
    old, new = ('{"a": %d, "b": [true, null]}' % amount for amount in (10, 11))  # noqa: UP031 # braces
    assert f"changed\t1\t10 → 11\tfalse\t{old} → {new}\t78\ndeleted\t2\t20\tfalse\t" in shown_changes
    assert "2 changed keys" in shown_changes
    only_after = type_in("changes", "orders", "--from", "opening", "--images", "after", "--limit", "1")
    assert f"new or changed\t1\t11\tfalse\t{new}\t78\n1 changed key\nThere are more than 1" in only_after
    assert "VERSION AS OF" in type_in("changes", "orders", "--from", "opening", "--sql")

    def shown(sql: str) -> list[tuple[Any, ...]]:
        table = shop.dbt("show", "--inline", sql).results[0].agate_table
        return sorted(tuple(row.values()) for row in table.rows)

    assert shown("select id, amount from {{ at_version(ref('orders'), 'opening') }}") == [(1, 10), (2, 20)]
    assert shown(f"select id, amount from {{{{ at_time(ref('orders'), '{newest['time']}') }}}}") == [(1, 11)]

    asked = type_in("rollback", "orders", "opening", answer="n\n", code=1)
    assert "savepoint opening; 1 later commit)? [y/N]" in asked
    assert "--yes answers it" in type_in("rollback", "orders", "opening", code=2)
    assert shop.rows("orders", "id, amount") == [(1, 11)]
    assert "rows written: 2" in type_in("rollback", "orders", "opening", answer="y\n")
    assert shop.rows("orders", "id, amount") == [(1, 10), (2, 20)]
    _, snapshot, _ = newest["version"].split(".")
    back = type_in.json("rollback", "orders", f"1.{snapshot[:12]}", "--yes")
    assert (back["to"], back["rows"]) == (newest["version"], 2)
    assert shop.rows("orders", "id, amount") == [(1, 11)]
    assert "no version 'closing'" in type_in("rollback", "orders", "closing", code=2)
    assert type_in.json("savepoint", "orders") == [{"savepoint": "opening", "version": first["version"]}]
    assert "dropped savepoint" in type_in("savepoint", "orders", "opening", "--drop")
    assert "has no savepoint" in type_in("savepoint", "orders")

    shop.dbt("run", "--full-refresh")
    assert changed == type_in.json(
        "changes", "orders", "--from", first["version"], "--to", newest["version"]
    ), "in the previous generation"
    refused = type_in("changes", "orders", "--from", first["version"], code=2)
    assert "choose two versions of one generation: dbt-arctic history orders;" in refused
    assert "give the older version first" in type_in(
        "changes", "orders", "--from", newest["version"], "--to", first["version"], code=2
    )
    assert "--yes answers it" in type_in("restore", "orders", "--previous", code=2)
    assert "uses generation 1" in type_in("restore", "orders", "--previous", answer="y\n")
    assert shop.rows("orders", "id, amount") == [(1, 11)]
    shop.sql("DROP VIEW {s}.orders")
    (finding,) = type_in.json("verify", code=1)["findings"]
    assert finding["kind"] == "view-missing"
    assert "fix:" in type_in("verify", code=1)
    assert type_in.json("restore", "orders", "--generation", "1", "--yes")["generation"] == 1
    # Not --all: other tests leave their schemas in this warehouse, cut off as they are.
    assert type_in.json("verify", "--schema", shop.schema)["findings"] == []


def test_schemas_that_the_project_names_by_itself_are_told(shop: Shop, type_in: Terminal) -> None:
    shop.file("macros/schemas.sql", "{% macro generate_schema_name(name, node) %}{{ name }}{% endmacro %}")
    shop.source("raw_orders", "select 1L id, 10 amount, false gone")
    other = f"marts_of_{shop.schema}"
    shop.model("orders", ORDERS.replace("config(", f"config(schema='{other}', "))
    shop.dbt("run")
    told = type_in("verify")
    assert f"left out: {other}; the project has tables there too. To include them: --schema " in told
    assert "left out" not in type_in("verify", "--schema", other)


def test_clean_shows_asks_and_removes(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select 1L id, 10 amount, false gone")
    shop.model("orders", ORDERS)
    shop.dbt("run")
    assert "There are no leftovers" in type_in("clean")
    shop.sql("ALTER TABLE {s}.raw_orders CREATE BRANCH arctic_1")
    assert type_in.json("clean", "--dry-run")["removals"][0]["branch"] == "arctic_1"
    assert "Remove 1 item?" in type_in("clean", answer="n\n", code=1)
    assert set(shop.state("orders", "change").branches) == {"main"}
    assert "1 item removed" in type_in("clean", "--schema", shop.schema, "--yes")
    assert "There are no leftovers" in type_in("clean")
    assert "there is no schema nowhere" in type_in("clean", "--schema", "nowhere", code=2)
    assert "not a duration" in type_in("clean", "--older-than", "soon", code=2)


def test_status_shows_what_is_there_pending_and_due(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select 1L id, 10 amount, false gone from range(3) where id < 1")
    shop.model(
        "orders",
        ORDERS.replace("buckets=2", "buckets=2, compaction={'trigger': {'pending': 0.5}}"),
    )
    copy = "{{ config(materialized='incremental', unique_key='id', buckets=2) }}\n"
    shop.model("copy", copy + "select id, amount, _action from {{ incremental_pull(ref('orders')) }}")
    shop.dbt("run")
    orders, copied = (
        next(one for one in type_in.json("status") if one["table"].endswith(name))
        for name in (".orders", ".copy")
    )
    assert (orders["rows"], orders["pending_rows"], orders["due"]) == (1, 0, [])
    assert [lag["for_s"] for lag in copied["behind"]] == [None]
    shop.dbt("run", "--select", "orders")
    (orders,) = type_in.json("status", "orders")
    assert (orders["pending_commits"], orders["pending_rows"], orders["pending_ratio"]) == (1, 1, 1.0)
    assert [due["kind"] for due in orders["due"]] == ["major"]
    assert sum(bucket["pending_rows"] for bucket in orders["buckets"]) == 1
    (copied,) = type_in.json("status", "copy")
    assert copied["behind"][0]["for_s"] >= 0
    shown = type_in("status", "orders", "copy")
    assert "1 (100%)" in shown
    assert "major" in shown
    assert "orders, by partition and bucket" in shown
    assert "major" in type_in("status", "--due", code=1)
    assert "there is no table" in type_in("status", "nothing", code=2)


def test_compact_does_what_is_due_and_writes_it_down(shop: Shop, type_in: Terminal) -> None:
    often = "compaction={'trigger': {'pending': 0.4, 'deleted': 1}, 'budget': '1 hour'}"
    shop.source("raw_orders", "select id, 10 amount, false gone from range(2)")
    shop.model("orders", ORDERS.replace("buckets=2", f"buckets=2, {often}"))
    shop.model("calm", ORDERS.replace("buckets=2", "buckets=2, compaction={'trigger': 'never'}"))
    shop.dbt("run")
    assert "Nothing is due" in type_in("compact")
    shop.dbt("run")
    (planned,) = type_in.json("compact", "--plan")
    assert (planned["kind"], planned["why"]) == ("major", "100% of the rows are pending")
    assert "saved per read" in type_in("compact", "--plan")
    assert "no time left" in type_in("compact", "--budget", "1s")
    screen = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        console = Console(file=screen, force_terminal=True, width=120)
        patch.setattr("dbt_arctic.cli.progress.Console", lambda stderr: console)
        patch.delenv("CI", raising=False)
        assert "orders: compacted (1 commit merged, 2 rows; 0 trimmed)" in type_in("compact")
    assert "connecting to Spark" in screen.getvalue()
    assert "starting Spark" not in screen.getvalue(), "it is already there"
    assert type_in.json("compact") == []
    (trim,) = type_in.json("compact", "--plan", "--trim-grace", "0s")
    assert trim["kind"] == "trim", "what is due depends on the grace period"
    assert "1 trimmed" in type_in("compact", "orders", "--kind", "trim", "--trim-grace", "0s")
    assert "2 commits" not in type_in("compact", "calm", "orders", "--kind", "full")
    assert "key, so merge does not apply" in type_in("compact", "calm", "--kind", "merge", code=2)
    assert "--kind needs" in type_in("compact", "--kind", "full", code=2)
    assert shop.rows("orders", "id, amount") == [(0, 10), (1, 10)]
    done = type_in.json("history", "--compaction")
    assert [one["kind"] for one in done] == ["full", "full", "trim", "major"]
    assert (done[-1]["outcome"], done[-1]["why"]) == ("compacted", "100% of the rows are pending")
    assert done[-2]["read_cost_after"] < done[-2]["read_cost_before"]
    assert "compacted" in type_in("history", "orders", "--compaction")

    page = shop.folder / "report.html"
    told = type_in("report", "--output", str(page), "--since", "1h", "--select", "orders")
    assert told.startswith(f"{page}: 1 table")
    assert "Read amplification" in page.read_text(encoding="utf-8")
    assert str(shop.folder) not in page.read_text(encoding="utf-8")
    data = type_in.json("report", "--select", "*.orders")
    (orders,) = data["tables"]
    assert [point["pending_rows"] for point in orders["series"]][-1] == orders["pending_rows"] == 0
    assert max(point["pending_rows"] for point in orders["series"]) == 2
    assert [one["kind"] for one in data["operations"]] == ["full", "trim", "major"]
    assert data["last_run"]["command"] == "run"

    project = (shop.folder / "dbt_project.yml").read_text(encoding="utf-8")
    hook = "\non-run-end: \"{{ compact_due(budget='1 hour', shed=var('shed', false)) }}\"\n"
    shop.file("dbt_project.yml", project + hook)
    shop.dbt("run", "--vars", "{shed: true}")
    assert [due["kind"] for due in type_in.json("compact", "--plan")] == ["major"]
    # These render the hook, too.
    shop.dbt("compile")
    shop.dbt("docs", "generate")
    type_in("plan")
    assert [due["kind"] for due in type_in.json("compact", "--plan")] == ["major"]
    shop.dbt("run")
    assert type_in.json("compact", "--plan") == []
    assert type_in.json("history", "orders", "--compaction")[0]["run"].endswith(":compact_due")
    shop.sql("ALTER VIEW {s}.calm SET TBLPROPERTIES ('arctic.protocol' = '99')")
    assert f"{shop.schema}.calm is skipped." in type_in("compact", code=2)
    shop.sql("ALTER VIEW {s}.calm SET TBLPROPERTIES ('arctic.protocol' = '1')")
    assert "is skipped" not in type_in("compact")
    shop.model("wrong", ORDERS.replace("buckets=2", "compaction={'triger': 1}"))
    assert "compaction has no setting 'triger'" in shop.fail("run", "--select", "wrong")


def test_expire_keeps_what_a_model_downstream_has_not_read(
    shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "at least 1h" in type_in("expire", "--older-than", "30m", code=2)
    assert "reads no version of a table" in type_in("expire", "--release", "copi", code=2)
    monkeypatch.setattr("dbt_arctic.cli.expire.MIN_AGE_MS", 0)
    shop.source("raw_orders", "select id, 10 amount, false gone from range(2)")
    shop.model("orders", ORDERS)
    copy = "{{ config(materialized='incremental', unique_key='id', buckets=2) }}\n"
    shop.model("copy", copy + "select id, amount, _action from {{ incremental_pull(ref('orders')) }}")
    shop.dbt("run")
    for _ in range(2):
        shop.dbt("run", "--select", "orders")
    type_in("compact", "orders", "--kind", "major", "--trim-grace", "0s")
    (plan,) = type_in.json("expire", "orders", "--older-than", "0s", "--dry-run")
    assert [hold["who"] for hold in plan["held_back_by"]] == [f"lake.{shop.schema}.copy"]
    assert [side["going"] for side in plan["sides"]] == [0, 0]
    of_side = type_in("expire", "orders__change_1", "--older-than", "0s", "--yes", code=2)
    assert "orders__change_1 is a side table of the keyed table orders" in of_side
    assert "has not read newer versions" in type_in("expire", "orders", "--older-than", "0s", "--dry-run")
    shop.dbt("run", "--select", "copy")
    assert "Expire 4 snapshots?" in type_in("expire", "orders", "--older-than", "0s", code=1, answer="n\n")
    everything = type_in("expire", "--older-than", "0s", "--yes")
    assert "snapshots expired" in everything
    assert len(shop.log("orders")) == 1
    assert "raw_orders" not in everything, "what others make is theirs"
    shop.dbt("run", "--select", "orders")
    shop.dbt("run", "--select", "copy")
    assert shop.rows("copy", "id, amount") == [(0, 10), (1, 10)]
    assert len(shop.log("copy")) > 1
    (held,) = type_in.json("expire", "orders", "--older-than", "0s", "--dry-run", "--release", "copy")
    assert held["held_back_by"] == []
    assert type_in.json("verify")["findings"] == []
