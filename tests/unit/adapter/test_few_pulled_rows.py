"""A model that only pulls few rows is written with the settings for few rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter import keyed_api
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.pulls import ModelPulls
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull
from dbt_arctic.store.refresh_outcome import Outcome

SOURCE, OTHER = "source.shop.crm.orders", "model.shop.customers"
THIS = SimpleNamespace(identifier="orders", name_parts=Name("lake", "shop", "orders"))
PULLED = "SELECT * FROM `crm__orders__pull_1`"


def settings_of_write(
    monkeypatch: pytest.MonkeyPatch, *, few_rows: bool, nodes: list[str], sql: str, **config: Any
) -> Mapping[str, str]:
    """The session settings with which the rows of a model are written."""
    settings = SimpleNamespace(**{"is_partial": False, "overwrite": None, **config})
    conf: dict[str, str] = {}
    written: list[dict[str, str]] = []

    @contextmanager
    def tuned(settings: Mapping[str, str]) -> Iterator[None]:
        conf.update(settings)
        yield
        conf.clear()

    def write_rows(*_: object) -> Outcome:
        written.append(dict(conf))
        return Outcome("UPSERT 1", 1, "")

    monkeypatch.setattr(keyed_api, "write_rows", write_rows)
    monkeypatch.setattr(keyed_api, "batch_interval", lambda model: None)
    pulls, context = ModelPulls(), SimpleNamespace(tuned=tuned, cores=2)
    upstream = Name("lake", "crm", "orders")
    pulls.add("m", {}, Pull(upstream, PULLED, Consumed("id", "1"), True, few_rows=few_rows))
    adapter: Any = SimpleNamespace(
        _pulls=lambda: pulls,
        _run_id=str,
        context=lambda run_id: context,
        prepared_batch=lambda context, model, sql: (context, settings, sql),
    )
    adapter._reads_few_rows = lambda *arguments: KeyedApi._reads_few_rows(adapter, *arguments)
    model = {"unique_id": "m", "name": "orders", "depends_on": {"nodes": nodes}}
    KeyedApi.refresh_keyed(adapter, cast("Any", THIS), model, sql, rebuild=False)
    assert conf == {}
    return written[0]


def test_few_rows_are_written_without_generated_code(monkeypatch: pytest.MonkeyPatch) -> None:
    found = settings_of_write(monkeypatch, few_rows=True, nodes=[SOURCE], sql=PULLED)
    assert found["spark.sql.codegen.wholeStage"] == "false"


@pytest.mark.parametrize(
    ("few_rows", "nodes", "sql"),
    [
        (False, [SOURCE], PULLED),
        (True, [SOURCE, OTHER], f"{PULLED} JOIN `lake`.`shop`.`customers`"),
        (True, [SOURCE], f"{PULLED} WHERE id > (SELECT max(id) FROM `lake`.`shop`.`orders`)"),
    ],
)
def test_a_model_that_may_read_more_keeps_the_settings_of_the_session(
    monkeypatch: pytest.MonkeyPatch, few_rows: bool, nodes: list[str], sql: str
) -> None:
    assert settings_of_write(monkeypatch, few_rows=few_rows, nodes=nodes, sql=sql) == {}


@pytest.mark.parametrize(
    ("sql", "config"),
    [
        (PULLED, {"is_partial": True}),
        (PULLED, {"overwrite": "table"}),
        ("SELECT id, _unavailable FROM `crm__orders__pull_1`", {}),
    ],
)
def test_so_does_a_write_that_reads_the_stored_rows(
    monkeypatch: pytest.MonkeyPatch, sql: str, config: dict[str, Any]
) -> None:
    assert settings_of_write(monkeypatch, few_rows=True, nodes=[SOURCE], sql=sql, **config) == {}
