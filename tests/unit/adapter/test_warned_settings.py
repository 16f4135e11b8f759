"""The warning about settings of other adapters: once for each setting, for models of the root project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.ui import warning_tag

from dbt_arctic.adapter import dbt_warning
from dbt_arctic.adapter.impl import ArcticAdapter

WARNING = f"{warning_tag('')}"
"""dbt's mark, with its colour."""


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Checks models of the project ``shop`` in one run, and returns the warnings."""
    warned: list[str] = []
    monkeypatch.setattr(dbt_warning, "warn_or_error", lambda event: warned.append(event.msg))

    adapter: Any = ArcticAdapter.__new__(ArcticAdapter)
    adapter.config = SimpleNamespace(
        project_name="shop",
        models={"shop": {"+buckets": 4}},
        credentials=SimpleNamespace(database="lake", catalog_names=["lake"], lower_case_catalogs=[]),
    )
    adapter._warned = set()

    def checked(package: str, config: Mapping[str, Any]) -> list[str]:
        model = {"name": "orders", "package_name": package, "config": config, "database": "lake"}
        adapter.check_config({**model, "alias": "orders", "unique_id": "model.shop.orders"})
        assert all(found.startswith(WARNING) for found in warned)
        return [found.removeprefix(WARNING).splitlines()[0] for found in warned]

    return checked


def test_a_setting_is_reported_once_and_only_in_the_root_project(check: Callable[..., list[str]]) -> None:
    assert check("dbt_utils", {"transient": True}) == []
    assert check("shop", {"transient": True}) == ["AR-301 transient has no effect"]
    found = check("shop", {"transient": True, "cluster_by": ["id"]})
    assert found == ["AR-301 transient has no effect", "AR-301 cluster_by has no effect"]


def test_a_warning_is_marked_and_says_that_it_stands_for_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(dbt_warning, "warn_or_error", lambda event: events.append(event.msg))
    adapter: Any = ArcticAdapter.__new__(ArcticAdapter)
    adapter.config, adapter._warned = SimpleNamespace(models={}), set()
    for name in ("orders", "lines"):
        adapter._warn_of_settings({"name": name, "config": {"file_format": "delta"}})
    (shown,) = events
    assert shown.splitlines()[:2] == [
        f"{WARNING}AR-301 file_format has no effect",
        "  where: orders; other models with this setting are not listed",
    ]


def test_a_setting_of_ours_is_reported_unless_the_project_sets_it_for_many_models(
    check: Callable[..., list[str]],
) -> None:
    assert check("shop", {"materialized": "table", "unique_key": "id", "buckets": 4}) == [
        "AR-301 unique_key has no effect with materialized='table'"
    ]
