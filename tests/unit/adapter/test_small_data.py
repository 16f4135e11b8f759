"""What a profile declares reaches the plan of an automatic model: ``small_data`` and settings."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter import planning
from dbt_arctic.adapter.auto_api import AutoApi
from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.other_schema import OtherSchemas, in_other_schemas
from dbt_arctic.adapter.result_inputs import settings_of_meaning, time_of_invocation
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.refresh.config import KeyedConfig

MODEL: dict[str, Any] = {
    "unique_id": "model.shop.orders",
    "name": "orders",
    "config": {"unique_key": "id", "incremental_strategy": "auto", "materialized": "incremental"},
    "compiled_code": "SELECT 1 AS id",
}


@pytest.mark.parametrize("small_data", [True, False])
def test_a_run_knows_it_except_in_a_check(small_data: bool) -> None:
    credentials = ArcticCredentials(database="lake", schema="shop", small_data=small_data)
    adapter: Any = SimpleNamespace(config=SimpleNamespace(credentials=credentials))
    config, _ = AutoApi._auto_config(adapter, MODEL, MODEL["compiled_code"])
    assert config.small_data == small_data
    with in_other_schemas(OtherSchemas("checked")):
        config, _ = AutoApi._auto_config(adapter, MODEL, MODEL["compiled_code"])
    assert not config.small_data


@pytest.mark.parametrize("small_data", [True, False])
def test_a_plan_is_that_of_the_run(small_data: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[bool, RefreshParameters]] = []

    class Planned(Exception):
        pass

    def plan_refresh(catalog: Any, name: Any, config: KeyedConfig, *args: Any, **given: Any) -> None:
        found.append((config.small_data, given["terms"]))
        raise Planned

    node = SimpleNamespace(
        unique_id=MODEL["unique_id"],
        name="orders",
        compiled_code=MODEL["compiled_code"],
        database="lake",
        schema="shop",
        alias="orders",
        config=SimpleNamespace(to_dict=lambda: MODEL["config"], full_refresh=None),
        to_dict=lambda omit_none: MODEL,
        depends_on=SimpleNamespace(nodes=[]),
    )
    manifest = SimpleNamespace(nodes={}, sources={})
    monkeypatch.setattr(planning, "_compile", lambda target, select: ([node], manifest))
    monkeypatch.setattr(planning, "plan_refresh", plan_refresh)
    conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    credentials = ArcticCredentials(database="lake", schema="shop", small_data=small_data, spark_conf=conf)
    target: Any = SimpleNamespace(credentials=credentials)
    session: Any = SimpleNamespace(catalog=None)
    with pytest.raises(Planned):
        planning.plan_models(session, target, [])
    terms = RefreshParameters(
        settings_of_meaning(credentials, MODEL["config"]),
        now=time_of_invocation(credentials, MODEL["config"]),
    )
    assert "Asia/Tokyo" in terms.settings
    assert [(of_config, replace(given, until=terms.until)) for of_config, given in found] == [
        (small_data, terms)
    ]
