"""OpenLineage events are those of the specification, and say what each node read and wrote."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import ValidationError

from dbt_arctic.adapter.last_command import LastCommand, LineageDataset, NodeRun, read_last_command
from dbt_arctic.adapter.openlineage import Lineage, events_of
from dbt_arctic.auto.query_lineage import UpstreamColumn
from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.written_versions import WrittenVersion
from dbt_arctic.planner.properties.column_lineage import Derivation
from tests.openlineage_schema import check_event

INVOCATION = "0a1e31d5-1165-4cb1-8669-a3a3587bd04b"
ORDERS = Name("lake", "dev", "orders")
SAME = Derivation.IDENTITY
BIGINT = CatalogColumn("id", "bigint")


def timed(unique_id: str, status: str = "success", **more: Any) -> dict[str, Any]:
    times = [{"started_at": "2026-11-29T10:00:00.5Z", "completed_at": "2026-11-29T10:00:01Z"}]
    times.append({"started_at": "2026-11-29T10:00:01Z", "completed_at": "2026-11-29T10:00:09Z"})
    return {"unique_id": unique_id, "status": status, "timing": times, "adapter_response": {}, **more}


def node(name: str, *reads: str, kind: str = "model", materialized: str = "incremental") -> dict[str, Any]:
    return {
        "resource_type": kind,
        "name": name,
        "alias": name,
        "database": "lake",
        "schema": "dev",
        "config": {"materialized": materialized},
        "depends_on": {"nodes": [*reads]},
        "language": "sql",
    }


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """A project with a file source, a keyed model, an ephemeral one, and a model that failed."""
    nodes = {
        "model.shop.orders": node("orders", "source.shop.landing.events", "source.shop.raw.rates"),
        "model.shop.between": node(
            "between", "model.shop.orders", "source.shop.raw.rates", materialized="ephemeral"
        ),
        "model.shop.sums": node("sums", "source.shop.raw.rates", "model.shop.between", "macro.x"),
        "test.shop.unique": node("unique", "model.shop.orders", kind="test"),
    }
    sources = {
        "source.shop.landing.events": {
            **node("events"),
            "identifier": "events",
            "source_meta": {"arctic": {"from": "files", "format": "csv"}},
            "meta": {"arctic": {"path": "landing/events"}},
        },
        "source.shop.raw.rates": {**node("rates"), "schema": "raw", "identifier": "Rates"},
    }
    manifest = {"metadata": {"project_name": "shop"}, "nodes": nodes, "sources": sources}
    failed = timed("model.shop.sums", "error", message="AR-201 password=hunter2")
    results = {
        "metadata": {"invocation_id": INVOCATION, "generated_at": "2026-11-29T10:01:00Z"},
        "args": {"which": "build"},
        "results": [
            timed("model.shop.orders", adapter_response={"rows_affected": 3}, compiled_code="SELECT 1"),
            timed("test.shop.unique", "pass"),
            failed,
            timed("model.shop.between", "skipped"),
        ],
    }
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (tmp_path / "run_results.json").write_text(json.dumps(results), encoding="utf-8")
    return tmp_path


def test_the_artifacts_name_each_node_and_what_it_reads(artifacts: Path) -> None:
    command = read_last_command(artifacts)
    orders, sums = command.nodes
    assert (command.invocation_id, command.command, command.project) == (INVOCATION, "build", "shop")
    assert (orders.name, orders.error, orders.rows) == (ORDERS, None, 3)
    assert (orders.started.second, orders.ended.second) == (0, 9)
    assert [one.name.dotted for one in orders.upstreams] == ["lake.dev.events", "lake.raw.Rates"]
    assert orders.upstreams[0].outside == {"from": "files", "format": "csv", "path": "landing/events"}
    names = [one.name.dotted for one in sums.upstreams]
    assert names == ["lake.raw.Rates", ORDERS.dotted], "an ephemeral model is read through"
    assert sums.error == "AR-201 password=hunter2"


def test_events_say_what_was_read_and_written(artifacts: Path) -> None:
    written = WrittenVersion((BIGINT,), "1.20.10", 5, 4096, {"lake.raw.Rates": Consumed("t", "77")})
    events = list(
        events_of(read_last_command(artifacts), lambda run: written if run.name == ORDERS else None)
    )
    for event in events:
        check_event(event)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "FAIL"]
    start, complete, _, fail = events
    assert start["run"]["runId"] == complete["run"]["runId"] != fail["run"]["runId"]
    assert start["eventTime"] == "2026-11-29T10:00:00.500000+00:00"
    assert complete["job"]["namespace"] == "shop"
    assert complete["job"]["name"] == "model.shop.orders"
    assert complete["run"]["facets"]["parent"]["run"]["runId"] == INVOCATION
    files, rates = complete["inputs"]
    assert (files["namespace"], files["name"]) == ("file", "landing/events")
    assert (rates["namespace"], rates["name"]) == ("iceberg://lake", "raw.Rates")
    assert rates["facets"]["version"]["datasetVersion"] == "77"
    (output,) = complete["outputs"]
    assert output["name"] == "dev.orders"
    assert output["facets"]["version"]["datasetVersion"] == "1.20.10"
    assert output["facets"]["schema"]["fields"] == [{"name": "id", "type": "bigint"}]
    statistics = output["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (3, 4096)
    assert fail["run"]["facets"]["errorMessage"]["message"] == "AR-201 password=*****"
    assert fail["outputs"][0]["outputFacets"] == {}


def test_the_output_has_the_lineage_of_its_columns(artifacts: Path) -> None:
    def lineage(run: NodeRun) -> Lineage | None:
        rates = Name("lake", "raw", "Rates")
        sources = (UpstreamColumn(rates, "rate", Derivation.AGGREGATION), UpstreamColumn(ORDERS, "id", SAME))
        return {"id": sources, "one": ()} if run.sql == "SELECT 1" else None

    orders, sums = (
        event["outputs"][0]["facets"]
        for event in events_of(read_last_command(artifacts), lambda run: None, None, lineage)
        if check_event(event) is None and event["eventType"] != "START"
    )
    assert "columnLineage" not in sums, "its query is not known"
    (fields,) = orders["columnLineage"]["fields"].items()
    assert fields == (
        "id",
        {
            "inputFields": [
                {
                    **{"namespace": "iceberg://lake", "name": "raw.Rates", "field": "rate"},
                    "transformations": [{"type": "DIRECT", "subtype": "AGGREGATION"}],
                },
                {
                    **{"namespace": "iceberg://lake", "name": "dev.orders", "field": "id"},
                    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                },
            ]
        },
    )


def test_events_that_are_made_twice_are_the_same(artifacts: Path) -> None:
    made = [json.dumps([*events_of(read_last_command(artifacts), lambda run: None, "n")]) for _ in range(2)]
    assert made[0] == made[1]
    assert json.loads(made[0])[0]["job"]["namespace"] == "n"


@pytest.mark.parametrize(
    ("settings", "namespace", "name"),
    [
        ({"from": "kafka", "servers": ["a:9092", "b:9092"]}, "kafka://a:9092", "clicks"),
        ({"from": "kafka", "servers": "a:9092", "topic": "t"}, "kafka://a:9092", "t"),
        ({"from": "jdbc", "url": "jdbc:postgresql://u:p@h/db"}, "dbt://source", "raw.clicks"),
    ],
)
def test_a_source_outside_of_the_catalog_has_its_own_name(
    settings: dict[str, Any], namespace: str, name: str
) -> None:
    now = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    upstream = LineageDataset(Name("lake", "raw", "clicks"), settings)
    run = NodeRun("model.shop.m", "model", ORDERS, now, now, (upstream,), None, None)
    _, complete = events_of(LastCommand(INVOCATION, "run", "shop", (run,)), lambda run: None)
    check_event(complete)
    assert complete["inputs"] == [{"namespace": namespace, "name": name}]


def test_the_schema_refuses_other_events() -> None:
    with pytest.raises(ValidationError):
        check_event({"eventType": "COMPLETE"})


def test_a_command_that_ran_no_node_has_no_events(artifacts: Path) -> None:
    file = artifacts / "run_results.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"build"', '"generate"'), encoding="utf-8")
    with pytest.raises(ConfigError, match="the last dbt command was generate"):
        read_last_command(artifacts)


def test_without_artifacts_the_error_says_to_run_dbt(tmp_path: Path, artifacts: Path) -> None:
    with pytest.raises(ConfigError, match="run dbt build first"):
        read_last_command(tmp_path / "none")
    (artifacts / "run_results.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="run the dbt command again"):
        read_last_command(artifacts)
    (artifacts / "run_results.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="run the dbt command again"):
        read_last_command(artifacts)
