"""A table that was built from a part of the rows is rebuilt, unless its model must not be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.materialized_api import MaterializedApi


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
