"""The settings ``target_lag`` and ``schedule`` of a model, which ``dbt-arctic keep`` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.store.duration import parse_duration

DOWNSTREAM = "downstream"
SETTINGS = ("target_lag", "schedule")
_CURRENT = ("view", "ephemeral")
"""Materializations without rows of their own."""
_PULL = "select ... from {{ incremental_pull(ref('...')) }}, or incremental_strategy='auto'"


@dataclass(frozen=True)
class KeepSettings:
    """When a model is refreshed. At most one of the three is set.

    :param target_lag_s: how late the model may be, in seconds.
    :param is_downstream: whether it is refreshed when a model that reads it needs it.
    :param every_s: the seconds between two refreshes.
    """

    target_lag_s: int | None = None
    is_downstream: bool = False
    every_s: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether ``dbt-arctic keep`` refreshes the model."""
        return self != KeepSettings()


def parse_keep(model: str, config: Mapping[str, Any]) -> KeepSettings:
    """Read and check ``target_lag`` and ``schedule`` in the config of a model.

    >>> parse_keep("orders", {"materialized": "incremental", "target_lag": "5 minutes"}).target_lag_s
    300

    A view is always current, so it has none of these settings, even if its folder has.

    :raises ConfigError: a wrong value, both settings, or ``target_lag`` on a table without versions.
    """
    lag, schedule = (config.get(name) for name in SETTINGS)
    found = check_values(model, config)
    materialized = config.get("materialized")
    if materialized in _CURRENT:
        return KeepSettings()
    if lag is not None and schedule is not None:
        raise ConfigError(
            "both target_lag and schedule are set",
            where=model,
            why="each of them decides when dbt-arctic keep refreshes the model",
            fix="remove one of the two; in a model, set it to none to remove one of a folder",
        )
    if lag is not None and materialized == "table":
        raise ConfigError(
            "target_lag has no effect with materialized='table'",
            where=model,
            why="the table records no versions of what it reads, so its lag is unknown",
            fix="use schedule={'every': '1 hour'}, or materialized='incremental' with " + _PULL,
        )
    return found


def check_values(model: str, config: Mapping[str, Any]) -> KeepSettings:
    """Read ``target_lag`` and ``schedule`` alone: while dbt parses, other settings may not be complete.

    :raises ConfigError: a wrong value.
    """
    lag, schedule = (config.get(name) for name in SETTINGS)
    every_s = None if schedule is None else _every(model, schedule)
    if lag is None:
        return KeepSettings(every_s=every_s)
    if isinstance(lag, str) and lag.strip().lower() == DOWNSTREAM:
        return KeepSettings(is_downstream=True, every_s=every_s)
    lag_s = _seconds(model, "target_lag", lag, "'5 minutes' or 'downstream'")
    return KeepSettings(target_lag_s=lag_s, every_s=every_s)


def require_versions(model: str, settings: KeepSettings, records_versions: bool) -> None:
    """Refuse a target lag of a model that records no versions of what it reads.

    :param records_versions: whether the model pulls or is automatic.
    :raises ConfigError: its lag is unknown.
    """
    if records_versions or not (settings.is_downstream or settings.target_lag_s):
        return
    raise ConfigError(
        "target_lag has no effect on this model",
        where=model,
        why="it does not pull and is not automatic: it records no versions of what it reads, so its lag is "
        "unknown",
        fix=f"{_PULL}; or schedule={{'every': '1 hour'}}",
    )


def _every(model: str, value: object) -> int:
    unknown = [name for name in value if name != "every"] if isinstance(value, Mapping) else []
    if not isinstance(value, Mapping) or unknown or "every" not in value:
        raise ConfigError(
            f"schedule has no setting {unknown[0]!r}" if unknown else f"schedule is {value!r}",
            where=model,
            fix="schedule={'every': '1 hour'}; for times of the day, run dbt from cron",
        )
    return _seconds(model, "every", value["every"], "'1 hour'")


def _seconds(model: str, setting: str, value: object, example: str) -> int:
    try:
        found = parse_duration(model, setting, value, 0)
    except ConfigError as error:
        raise ConfigError(error.what, where=model, fix=f"for example {setting}: {example}") from error
    if found <= 0:
        raise ConfigError(
            f"{setting} is {value!r}",
            where=model,
            why="a change takes at least the time of a refresh to arrive",
            fix=f"for example {setting}: {example}",
        )
    return found


__all__ = ["DOWNSTREAM", "SETTINGS", "KeepSettings", "check_values", "parse_keep", "require_versions"]
