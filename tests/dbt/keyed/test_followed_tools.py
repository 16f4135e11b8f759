"""Pages on what works next to dbt: appends from Python, lineage and dbt-utils are as they say."""

from __future__ import annotations

import inspect
import json
import re
import threading
from typing import Any

import pandas as pd
import pytest
import yaml

import dbt_arctic
from dbt_arctic.errors import ArcticError
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.followed_pages import Guide
from tests.dbt.keyed.test_packages import MACROS, package
from tests.openlineage_schema import check_event
from tests.pages import HOW_TO, blocks, section, spans, table
from tests.unit.cli.test_openlineage import Server

pytestmark = pytest.mark.long

APPEND = HOW_TO / "append-from-python.md"
LINEAGE = HOW_TO / "send-lineage.md"
UTILS = HOW_TO / "use-dbt-utils.md"


def test_rows_are_appended_from_python(
    shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = Guide(shop, "append-from-python")
    guide.follow()
    (build,) = (command for command in spans(APPEND) if command.program == "dbt")
    guide.run(build)
    monkeypatch.chdir(shop.folder)
    monkeypatch.setenv("DBT_PROFILES_DIR", str(shop.folder))
    first, deletes = (block.text for block in blocks(APPEND) if block.language == "python")
    prints = re.findall(r"prints `(.*?)`", section(APPEND, "Append a batch"))
    assert len(prints) == 2
    scope: dict[str, Any] = {}

    def again(expected: str) -> None:
        capsys.readouterr()
        exec(first, scope)
        assert capsys.readouterr().out.splitlines()[-1] == expected

    def stored() -> list[Any]:
        return shop.rows("payments", "payment_id, int(amount)")

    for line in prints:
        again(line)
    assert stored() == [(1, 10), (2, 20)]
    exec(deletes, scope)
    (action,) = re.findall(r'Pass `(action=".*?")`', section(APPEND, "Deletes and late rows"))
    exec(f'dbt_arctic.append("payments", changes, {action})', scope)
    assert stored() == [(1, 10)]
    again(prints[1])
    assert stored() == [(1, 10)], "the earlier batch does not undo the delete"

    named = [name for row in table(APPEND, "argument").rows for name in re.findall(r"`(\w+)`", row[0])]
    assert named == [*inspect.signature(dbt_arctic.append).parameters][2:]
    assert "append 2026-01-05/part-1" in type_in("history", "payments")
    # How long a key is remembered.
    type_in("compact", "payments", "--kind", "full")
    again(prints[1])
    type_in("expire", "payments", "--older-than", "1h", "--yes")
    again(prints[1])
    model = (shop.folder / "models" / "payments.sql").read_text(encoding="utf-8")
    shop.model("payments", model.replace(", full_refresh=false", ""))
    shop.dbt("run", "--full-refresh")
    assert stored() == []
    (restore,) = (command for command in spans(APPEND) if "--previous" in command.words)
    type_in("restore", "payments", *restore.arguments[1:], "--yes")
    again(prints[1])
    assert stored() == [(1, 10)]
    shop.dbt("run", "--full-refresh")
    again(prints[0])


def test_what_is_checked_of_appended_rows(shop: Shop) -> None:
    shop.model("payments", Guide(shop, "append-from-python").text("payment_id,"))
    shop.model(
        "totals",
        "{{ config(materialized='materialized_view', unique_key='payment_id') }} "
        "select payment_id, sum(amount) as amount from {{ ref('payments') }} group by payment_id",
    )
    shop.model("seen", "select * from {{ ref('payments') }}")
    contract = {"enforced": True}
    columns = [{"name": "id", "data_type": "bigint"}, {"name": "note", "data_type": "string"}]
    columns[1]["constraints"] = [{"type": "not_null"}]
    notes = {"name": "notes", "config": {"contract": contract}, "columns": columns}
    shop.file("models/notes.yml", yaml.safe_dump({"models": [notes]}))
    shop.model(
        "notes",
        "{{ config(materialized='incremental', unique_key='id', on_schema_change='fail') }} "
        "select 1L as id, 'x' as note where false",
    )
    shop.dbt("run")
    exact, types, _pandas, keys, nulls, refused = re.findall(
        r"^\* (.*)$", section(APPEND, "What is checked"), re.M
    )
    at = pd.to_datetime(["2026-01-05"], utc=True)
    good = pd.DataFrame({"payment_id": [1], "amount": [10], "paid_at": at})
    folders = {"project_dir": str(shop.folder), "profiles_dir": str(shop.folder)}

    def fails(text: str, rows: pd.DataFrame, name: str = "payments", at: int = 0) -> None:
        """The call fails with a code that the text names, or with any if it names none."""
        with pytest.raises(ArcticError) as caught:
            dbt_arctic.append(name, rows, **folders)
        codes = re.findall(r"AR-\d+", text)
        assert not codes or caught.value.code == codes[at], caught.value

    twice = pd.concat([good, good.assign(amount=[11])])
    fails(exact, good.drop(columns="amount"))
    fails(exact, good.assign(more=[1]))
    fails(types, good.assign(amount=[1.5]))
    fails(types, good.assign(amount=["10"]))
    (integer,) = re.findall(r"Use the type `(\w+)`", types)
    missing = pd.concat([good, good.assign(payment_id=[2], amount=[None])])
    fails(types, missing.astype({"amount": "float64"}))
    nanoseconds = good.assign(payment_id=[3], paid_at=at + pd.Timedelta(1, "ns"))
    fails("", nanoseconds)
    fails(keys, good.astype({"payment_id": integer}).assign(payment_id=pd.array([None], integer)))
    fails(keys, twice, at=1)
    fails(nulls, pd.DataFrame({"id": [1], "note": pd.array([None], "string")}), "notes")
    for name in ("totals", "seen"):
        fails(refused, pd.DataFrame({"payment_id": [1], "amount": [1]}), name)
    assert shop.rows("payments") == [], "nothing is written"

    (rounded,) = re.findall(r"`(\.dt\.round\(.*?\))`", types)
    dbt_arctic.append("payments", missing.astype({"amount": integer}), **folders)
    rounded_times = eval(f"frame['paid_at']{rounded}", {"frame": nanoseconds})
    dbt_arctic.append("payments", nanoseconds.assign(paid_at=rounded_times), **folders)
    dbt_arctic.append("payments", twice, deduplicate_by="amount", **folders)
    assert shop.rows("payments", "payment_id, int(amount)") == [(1, 11), (2, None), (3, 10)]


def test_lineage_is_sent(shop: Shop, type_in: Terminal) -> None:
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profiles["shop"]["outputs"]
    outputs["prod"] = outputs["dev"]
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    settings = {"from": "files", "path": "landing/clicks", "format": "json", "columns": {"id": "bigint"}}
    clicks = {"name": "clicks", "config": {"meta": {"arctic": settings}}}
    shop.file("models/landing.yml", yaml.safe_dump({"sources": [{"name": "landing", "tables": [clicks]}]}))
    shop.file("landing/clicks/1.json", '{"id": 1}\n')
    shop.model(
        "clicks",
        "{{ config(materialized='incremental') }} "
        "select id from {{ incremental_pull(source('landing', 'clicks')) }}",
    )
    shop.source("raw_orders", "select 1L as order_id, 'ann' as customer, 5L as amount")
    shop.model(
        "orders",
        "{{ config(materialized='incremental', unique_key='order_id') }} "
        "select * from {{ source('raw', 'raw_orders') }}",
    )
    shop.model(
        "revenue",
        "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer') }} "
        "select customer, upper(customer) as name, sum(amount) as amount "
        "from {{ ref('orders') }} group by customer",
    )
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        known = {"http://localhost:5000": url, "https://lineage.example.com": url}
        try:
            Guide(shop, "send-lineage", known=known).follow()
        finally:
            server.shutdown()
            thread.join()
    written = [json.loads(line) for line in (shop.folder / "events.jsonl").read_text("utf-8").splitlines()]
    sent = [event for _, event in server.received]
    # The events of both builds. Those of the first one were also written to the file.
    assert sent[: len(written)] == written
    assert len(sent) == 2 * len(written) == 12
    check_lineage(shop, type_in, written)

    shop.model(
        "orders", "{{ config(materialized='table') }} select 1 div 0 as order_id, 'x' customer, 1L amount"
    )
    shop.fail("build")
    ran = [*shop.script.ran]
    events = [json.loads(line) for line in Guide(shop, "send-lineage").type_in(["openlineage"]).splitlines()]
    assert shop.script.ran == ran, "no statement of Spark"
    states = re.findall(r"`([A-Z]+)`", section(LINEAGE, "What the events contain").splitlines()[0])
    kinds = {event["job"]["name"].split(".")[-1]: [] for event in events}
    for event in events:
        kinds[event["job"]["name"].split(".")[-1]].append(event["eventType"])
    assert kinds == {"clicks": states[:2], "orders": [states[0], states[2]]}, "revenue was skipped"


def check_lineage(shop: Shop, type_in: Terminal, events: list[dict[str, Any]]) -> None:
    """The events are what the table of the page says."""
    parts = {row[0].replace("`", ""): row[1] for row in table(LINEAGE, "part").rows}
    (specification,) = re.findall(r"version (\d-\d-\d)", section(LINEAGE, "What the events contain"))
    for event in events:
        check_event(event)
        assert f"/{specification}/" in event["schemaURL"]
        assert "parent" in event["run"]["facets"]
    ended = {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}
    example = re.findall(r"`(model\..*?)`", parts["job"])[0]
    orders, revenue, clicks = (
        ended[f"{example.rpartition('.')[0]}.{name}"] for name in ("orders", "revenue", "clicks")
    )
    assert orders["job"]["namespace"] == "shop", "the project's name"
    for known in (f"{example.rpartition('.')[0]}.orders", example):
        assert known in ended
    (read,), (source,), (file,) = revenue["inputs"], orders["inputs"], clicks["inputs"]
    (output,), (wrote,) = revenue["outputs"], orders["outputs"]
    namespace, name = re.findall(r"`(.*?)`", parts["tables"])
    assert (wrote["namespace"], wrote["name"]) == (
        namespace.replace("CATALOG", "lake"),
        name.replace("SCHEMA", shop.schema).replace("TABLE", "orders"),
    )
    assert (read["namespace"], read["name"]) == (wrote["namespace"], wrote["name"])
    assert (
        file["namespace"]
        == re.findall(r"files: `(.*?)` and the path", parts["sources outside the catalog"])[0]
    )
    assert file["name"].endswith("landing/clicks")
    version = version_of(wrote)
    assert version_of(read) == version, "automatic models record what they read"
    assert version_of(source) is None
    assert version == type_in.json("history", "orders")[-1]["version"], "that of the first build"
    assert wrote["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["customer", "name", "amount"]
    kinds = re.findall(r"`([A-Z]+)`", parts["columnLineage"])
    fields = output["facets"]["columnLineage"]["fields"]
    found = {column: one["inputFields"][0]["transformations"][0]["subtype"] for column, one in fields.items()}
    assert found == dict(zip(("customer", "name", "amount"), kinds, strict=True))
    assert "columnLineage" not in clicks["outputs"][0]["facets"]


def version_of(dataset: dict[str, Any]) -> str | None:
    facet = dataset["facets"].get("version")
    return None if facet is None else str(facet["datasetVersion"])


def test_macros_of_dbt_utils_are_found(shop: Shop) -> None:
    """With a package that dispatches as dbt-utils does, because tests reach no package index."""
    package(shop)
    overridden = [name for row in table(UTILS, "macro").rows for name in re.findall(r"`(\w+)`", row[0])]
    defaults = {
        name for name, (_, default) in MACROS.items() if "the default" in default or name == "unpivot"
    }
    assert defaults < {*overridden, "cast_to"}
    rows = "values (1L, 10, null), (1L, 20, 'b'), (2L, null, null) as t(id, amount, note)"
    shop.source("raw_orders", f"select id, cast(amount as int) amount, note from {rows}")
    table_ = "{{ config(materialized='table') }} "
    shop.model("first", table_ + "{{ dbt_utils.deduplicate(source('raw', 'raw_orders'), 'id', 'amount') }}")
    dispatch = yaml.safe_load(Guide(shop, "use-dbt-utils").text("dispatch:"))
    (order,) = dispatch["dispatch"]
    assert order["search_order"][0] == "my_project"
    project = yaml.safe_load((shop.folder / "dbt_project.yml").read_text(encoding="utf-8"))

    def dispatched(*search: str) -> None:
        own = {"dispatch": [{**order, "search_order": [*search]}]} if search else {}
        shop.file("dbt_project.yml", yaml.safe_dump({**project, **own}))

    as_shown = ["shop", *order["search_order"][1:]]
    for search in ([], as_shown):
        dispatched(*search)
        shop.dbt("run")
        assert shop.rows("first") == [(1, 10, None), (2, None, None)], "rows with a NULL are kept"
    dispatched(*(one for one in as_shown if one != "dbt"))
    assert "the default was asked" in shop.fail("run")
    dispatched(*as_shown)
    own = "{% macro default__deduplicate(relation, partition_by, order_by) %}select 5 as own{% endmacro %}"
    shop.file("macros/own.sql", own)
    shop.dbt("run")
    assert shop.rows("first") == [(5,)], "macros of the project come first"
    shop.model(
        "listed", "{% do dbt_utils.get_relations_by_pattern('x', '%', database='other') %} select 1 as a"
    )
    codes = re.findall(r"AR-\d+", section(UTILS, "Macros that the adapter overrides"))
    assert codes[0] in shop.fail("run", "--select", "listed")
