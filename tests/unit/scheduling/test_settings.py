"""The settings ``target_lag`` and ``schedule``: what they mean, and what a wrong value is answered with."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.scheduling.settings import KeepSettings, check_values, parse_keep, require_versions


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ({}, KeepSettings()),
        ({"target_lag": "5 minutes"}, KeepSettings(target_lag_s=300)),
        ({"target_lag": 90}, KeepSettings(target_lag_s=90)),
        ({"target_lag": " Downstream"}, KeepSettings(is_downstream=True)),
        ({"schedule": {"every": "1 hour"}}, KeepSettings(every_s=3600)),
        ({"schedule": {"every": "1 day"}, "materialized": "table"}, KeepSettings(every_s=86400)),
        ({"schedule": {"every": "1 day"}, "target_lag": None}, KeepSettings(every_s=86400)),
        ({"target_lag": "5 minutes", "materialized": "view"}, KeepSettings()),
        ({"schedule": {"every": "1 day"}, "materialized": "ephemeral"}, KeepSettings()),
    ],
)
def test_the_settings_say_when_a_model_is_refreshed(config: dict[str, Any], settings: KeepSettings) -> None:
    found = parse_keep("orders", {"materialized": "incremental", **config})
    assert found == settings
    assert found.is_set == (settings != KeepSettings())


@pytest.mark.parametrize(
    ("config", "what", "fix"),
    [
        ({"target_lag": "5 minuts"}, "target_lag is '5 minuts', which is not a duration", "'5 minutes'"),
        ({"target_lag": "5m"}, "target_lag is '5m'", "'5 minutes' or 'downstream'"),
        ({"target_lag": 0}, "target_lag is 0", "'5 minutes'"),
        ({"target_lag": True}, "target_lag is True", "'5 minutes'"),
        ({"target_lag": "upstream", "materialized": "view"}, "target_lag is 'upstream'", "'downstream'"),
        ({"schedule": "1 hour"}, "schedule is '1 hour'", "schedule={'every': '1 hour'}"),
        ({"schedule": {"cron": "* * * * *"}}, "no setting 'cron'", "run dbt from cron"),
        ({"schedule": {}}, "schedule is {}", "schedule={'every': '1 hour'}"),
        ({"schedule": {"every": "hourly"}}, "every is 'hourly'", "'1 hour'"),
        ({"schedule": {"every": "0 hours"}}, "every is '0 hours'", "'1 hour'"),
        ({"schedule": {"every": 60}, "target_lag": 60}, "both target_lag and schedule", "remove one"),
        ({"materialized": "table", "target_lag": 60}, "materialized='table'", "schedule={'every'"),
    ],
)
def test_a_wrong_value_is_an_error_with_the_fix(config: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_keep("orders", {"materialized": "incremental", **config})
    assert what in caught.value.what
    assert fix in caught.value.fix
    assert caught.value.where == "orders"


def test_while_dbt_parses_only_the_values_are_checked() -> None:
    assert check_values("orders", {"materialized": "table", "target_lag": 60}).target_lag_s == 60
    with pytest.raises(ConfigError):
        check_values("orders", {"target_lag": "soon"})


def test_a_target_lag_needs_versions() -> None:
    require_versions("orders", KeepSettings(target_lag_s=60), records_versions=True)
    require_versions("orders", KeepSettings(every_s=60), records_versions=False)
    for settings in (KeepSettings(target_lag_s=60), KeepSettings(is_downstream=True)):
        with pytest.raises(ConfigError, match="its lag is unknown") as caught:
            require_versions("orders", settings, records_versions=False)
        assert "incremental_pull" in caught.value.fix
