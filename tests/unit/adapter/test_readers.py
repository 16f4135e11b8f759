"""What automatic models read, according to dbt's graph."""

from __future__ import annotations

from typing import Any

from dbt_arctic.adapter.readers import automatic_readers, read_by_automatic, readers
from dbt_arctic.keyed.names import Name

AUTO = {"materialized": "incremental", "incremental_strategy": "auto"}


def node(config: dict[str, str], *reads: str, kind: str = "model") -> dict[str, Any]:
    return {"resource_type": kind, "config": config, "depends_on": {"nodes": list(reads)}}


def test_what_automatic_models_read_themselves_and_through_views() -> None:
    nodes = {
        "model.orders": node({"materialized": "incremental"}, "source.raw"),
        "model.paid": node(AUTO, "model.orders"),
        "model.shown": node({"materialized": "view"}, "model.between"),
        "model.between": node({"materialized": "ephemeral"}, "model.paid"),
        "model.sums": node(AUTO, "model.shown"),
        "model.leaf": node({"materialized": "table"}, "model.sums"),
        "test.sums": node(AUTO, "model.leaf", kind="test"),
    }
    assert read_by_automatic(nodes) == {"model.orders", "model.shown", "model.between", "model.paid"}


def test_a_table_in_between_ends_the_chain() -> None:
    nodes = {
        "model.a": node(AUTO),
        "model.b": node({"materialized": "table"}, "model.a"),
        "model.c": node(AUTO, "model.b"),
    }
    assert read_by_automatic(nodes) == {"model.b"}


def test_who_reads_a_relation_itself_and_through_ephemeral_models() -> None:
    ephemeral, table = {"materialized": "ephemeral"}, {"materialized": "table"}
    nodes = {
        "model.first": node(ephemeral, "source.raw"),
        "model.second": node(ephemeral, "model.first"),
        "model.sums": node(table, "model.second", "source.raw"),
        "model.leaf": node(table, "model.sums"),
        "snapshot.kept": node({"materialized": "snapshot"}, "model.first", kind="snapshot"),
        "test.first": node({}, "model.first", kind="test"),
    }
    assert set(readers(nodes, ["source.raw"])) == {"model.sums", "snapshot.kept"}
    assert readers(nodes, ["model.leaf"]) == []


def test_readers_of_a_relation_by_the_names_of_both() -> None:
    def stored(name: str, **more: Any) -> dict[str, str]:
        return {"database": "lake", "schema": "Shop", "name": name, **more}

    sources = {"source.raw": stored("raw", identifier="raw_orders")}
    nodes = {
        "model.paid": {**node(AUTO, "source.raw"), **stored("paid", alias="Paid")},
        "model.shown": {**node({"materialized": "view"}, "model.paid"), **stored("shown")},
        "model.sums": {**node(AUTO, "model.shown", "source.raw"), **stored("sums")},
        "model.left": {**node(AUTO, "source.raw"), **stored("left")},
        "model.other": {**node({"materialized": "table"}, "source.raw"), **stored("other")},
        "test.sums": {**node(AUTO, "model.sums", kind="test"), **stored("test")},
    }
    selected = [name for name in nodes if name != "model.left"]
    paid, sums = Name("lake", "Shop", "Paid"), Name("lake", "Shop", "sums")
    assert automatic_readers(nodes, sources, selected) == {
        "lake.shop.raw_orders": [paid, sums],
        "lake.shop.paid": [sums],
        "lake.shop.shown": [sums],
    }
