"""What automatic models read, as dbt's graph tells it."""

from __future__ import annotations

from typing import Any

from dbt_arctic.adapter.readers import read_by_automatic

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
