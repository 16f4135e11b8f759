"""The compaction settings of a model or project, with defaults: ``compaction: {trigger: ..., ...}``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.compaction.metrics import MIB, TARGET_FILE_BYTES
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import DEFAULT_BUCKETS, check_bucket_count
from dbt_arctic.store.duration import parse_duration

DEFAULT_TRIM_GRACE_SECONDS = 600
"""The grace period. Longer than the analysis of any statement and the catalog cache of any other reader."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(kb|mb|gb)", re.IGNORECASE)
_UNITS = {"kb": 1024, "mb": MIB, "gb": 1024 * MIB}


@dataclass(frozen=True)
class Trigger:
    """The thresholds that make a table due. Any one suffices.

    :param pending: rows that are not merged, as a share of the base rows.
    :param files: files in excess of what the rows need, per bucket.
    :param age_s: age of the oldest pending change in seconds.
    :param read_amplification: the cost of a read relative to fresh files.
    :param deleted: stored rows that are hidden, as a share of the base rows.
    """

    pending: float = 0.1
    files: int = 20
    age_s: int = 24 * 3600
    read_amplification: float = 1.3
    deleted: float = 0.2


@dataclass(frozen=True)
class CompactionSettings:
    """The compaction settings of a model.

    :param trigger: ``None`` to compact only on request.
    :param budget_s: seconds for one run of ``compact`` or ``compact_due``; ``None`` if not set.
    :param shed: do nothing for now because the load is high. The operations remain due.
    :param buckets: the configured number of buckets; ``None`` to choose it automatically.
    :param target_bucket_bytes: the target size of a bucket of a table without user partitions.
    :param trim_grace_s: the grace period: how long merged changes stay in the change table.
    :param parallelism: the number of tasks that should read a sufficiently large table.
    """

    trigger: Trigger | None = field(default_factory=Trigger)
    budget_s: int | None = None
    target_file_bytes: int = TARGET_FILE_BYTES
    shed: bool = False
    buckets: int | None = None
    target_bucket_bytes: int = TARGET_FILE_BYTES
    parallelism: int = DEFAULT_BUCKETS
    trim_grace_s: float = DEFAULT_TRIM_GRACE_SECONDS


_SETTINGS = ("trigger", "budget", "target_file_size", "target_bucket_size", "parallelism", "shed", "history")


def parse_settings(model: str, value: object, buckets: object = None) -> CompactionSettings:
    """Read and check the compaction settings of a model.

    :param buckets: the separate setting of the model: a number, ``auto`` or nothing.
    :raises ConfigError: an unknown setting or an invalid value.
    """
    fixed = buckets if isinstance(buckets, int) and not isinstance(buckets, bool) else None
    if fixed is not None:
        check_bucket_count(model, fixed)
    if value is None:
        return CompactionSettings(buckets=fixed)
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"compaction is {value!r}",
            where=model,
            fix="a mapping, for instance compaction={'trigger': {'pending': 0.05}, 'budget': '5 minutes'}",
        )
    _require_known(model, "compaction", value, _SETTINGS)
    budget = value.get("budget")
    return CompactionSettings(
        trigger=_trigger(model, value.get("trigger")),
        budget_s=None if budget is None else parse_duration(model, "budget", budget, 0),
        target_file_bytes=_size(model, "target_file_size", value.get("target_file_size")),
        shed=_flag(model, value.get("shed", False)),
        buckets=fixed,
        target_bucket_bytes=_size(model, "target_bucket_size", value.get("target_bucket_size")),
        parallelism=int(_number(model, "parallelism", value, DEFAULT_BUCKETS, 1)),
    )


def _trigger(model: str, value: object) -> Trigger | None:
    if value is None:
        return Trigger()
    if value == "never":
        return None
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"compaction has the trigger {value!r}",
            where=model,
            fix="'never', or a mapping with pending, files, age, read_amplification or deleted",
        )
    _require_known(model, "trigger", value, ("pending", "files", "age", "read_amplification", "deleted"))
    default = Trigger()
    return Trigger(
        pending=_number(model, "pending", value, default.pending, 0),
        files=int(_number(model, "files", value, default.files, 1)),
        age_s=parse_duration(model, "age", value.get("age"), default.age_s),
        read_amplification=_number(model, "read_amplification", value, default.read_amplification, 1),
        deleted=_number(model, "deleted", value, default.deleted, 0),
    )


def _number(model: str, name: str, value: Mapping[str, Any], default: float, minimum: float) -> float:
    given = value.get(name, default)
    if isinstance(given, bool) or not isinstance(given, int | float) or given < minimum:
        raise ConfigError(f"{name} is {given!r}", where=model, fix=f"a number, {minimum} or greater")
    return float(given)


def _flag(model: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"shed is {value!r}", where=model, fix="true or false")
    return value


def _size(model: str, name: str, value: object) -> int:
    if value is None:
        return TARGET_FILE_BYTES
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or float(match.group(1)) <= 0:
        raise ConfigError(
            f"{name} is {value!r}", where=model, fix="a size with its unit, for instance '256 MB'"
        )
    return int(float(match.group(1)) * _UNITS[match.group(2).lower()])


def _require_known(model: str, what: str, value: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [name for name in value if name not in known]
    if unknown:
        meant = difflib.get_close_matches(str(unknown[0]).lower(), known, 1)
        raise ConfigError(
            f"{what} has no setting {unknown[0]!r}",
            where=model,
            why=f"it has {', '.join(known)}",
            fix=f"did you mean {meant[0]}?" if meant else "remove it, or use one of these",
        )
