"""A part of the rows: what it replaces, and what is rebuilt after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.materialized_api import MaterializedApi
from dbt_arctic.adapter.model_api import ModelApi


def was_part(found: bool, **config: Any) -> bool:
    pulls = SimpleNamespace(was_part=lambda model: found and model == "model.shop.orders")
    adapter: Any = SimpleNamespace(_pulls=lambda: pulls)
    model = {"unique_id": "model.shop.orders", "name": "orders", "config": config}
    return MaterializedApi.was_part(adapter, model)


@pytest.mark.parametrize("config", [{}, {"full_refresh": None}, {"full_refresh": True}])
def test_the_table_is_rebuilt(config: dict[str, Any]) -> None:
    assert was_part(True, **config)
    assert not was_part(False, **config)


def test_a_model_that_must_not_be_rebuilt_is_an_error() -> None:
    assert not was_part(False, full_refresh=False)
    with pytest.raises(DbtRuntimeError, match="written with --empty or --sample") as error:
        was_part(True, full_refresh=False)
    assert "dbt run --select orders" in str(error.value)


@pytest.mark.parametrize(
    ("kind", "keyed", "partial", "config", "message"),
    [
        ("table", True, True, {"unique_key": ["a", "b"]}, "dbt-arctic adopt orders --key a --key b"),
        (
            "keyed",
            False,
            True,
            {},
            "dbt run --select orders; or keep its rows: dbt-arctic adopt orders --undo",
        ),
        ("keyed", False, False, {"full_refresh": False}, "remove full_refresh for a run"),
        ("keyed", False, False, {}, None),
        ("keyed", True, True, {}, None),
        ("clone", True, True, {}, None),
        (None, True, True, {}, None),
    ],
)
def test_a_part_of_the_rows_does_not_replace_a_table_of_the_other_form(
    kind: str | None, keyed: bool, partial: bool, config: dict[str, Any], message: str | None
) -> None:
    adapter: Any = None
    model = {"unique_id": "model.shop.orders", "name": "orders", "alias": "orders", "config": config}
    if message is None:
        ModelApi.require_form(adapter, model, kind, keyed, partial)
        return
    with pytest.raises(DbtRuntimeError) as error:
        ModelApi.require_form(adapter, model, kind, keyed, partial)
    assert "AR-301" in str(error.value)
    assert message in str(error.value)
