"""Random settings of each kind of model, and the columns that they name."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.dbt.random.oracle import DELETES, PREDICATES
from tests.dbt.random.project import Column


def _settings_of_upsert(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    draw = chance.random()
    if draw < 0.25:
        config["delete_when"] = chance.choice(list(DELETES))
    elif draw < 0.45:
        columns.append(Column("_action", "string"))
    if chance.random() < 0.3:
        config["sequence_by"] = "seq"
        columns.append(Column("seq", "int"))
    elif chance.random() < 0.3:
        config["deduplicate_by"] = "ver"
        columns.append(Column("ver", "int"))
    if chance.random() < 0.25:
        setting = chance.choice(("merge_update_columns", "merge_exclude_columns"))
        config[setting] = [one.name for one in chance.sample(payload, 1)]
    if chance.random() < 0.2:
        config["partition_by"] = chance.choice(("part", ["part"]))


def _settings_of_merge(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    if chance.random() < 0.35:
        config[chance.choice(("merge_update_columns", "merge_exclude_columns"))] = [
            chance.choice(payload).name
        ]
    _settings_of_delete_insert(chance, config, columns, payload)


def _settings_of_delete_insert(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    if chance.random() < 0.4:
        given = chance.sample(list(PREDICATES), chance.randint(1, 2))
        config["incremental_predicates"] = given[0] if len(given) == 1 and chance.random() < 0.5 else given
    if chance.random() < 0.2:
        config["partition_by"] = "part"


def _settings_of_append(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    if chance.random() < 0.3:
        config["partition_by"] = ["part"]


def _settings_of_overwrite(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    draw = chance.random()
    if draw < 0.45:
        config["partition_by"] = chance.choice(("part", ["part"]))
    elif draw < 0.8:
        columns.append(Column("at", chance.choice(("timestamp", "date", "timestamp_ntz"))))
        config["partition_by"] = chance.choice(("day(at)", "month(at)", ["day(at)", "part"]))
    if "unique_key" in config and chance.random() < 0.2:
        config["overwrite"] = "table"


def _settings_of_microbatch(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    columns.append(Column("at", chance.choice(("timestamp", "timestamp", "date", "timestamp_ntz"))))
    config |= {"event_time": "at", "batch_size": "day", "begin": "2024-02-01"}
    if chance.random() < 0.4:
        config["partition_by"] = "day(at)"


def _settings_of_snapshot(
    chance: random.Random, config: dict[str, Any], columns: list[Column], payload: list[Column]
) -> None:
    if chance.random() < 0.4:
        config |= {"strategy": "timestamp", "updated_at": "at"}
        # A generator of its own keeps what else a seed draws.
        own = random.Random(f"times {payload}")
        columns.append(Column("at", own.choice(("timestamp", "timestamp", "date", "timestamp_ntz"))))
    else:
        config["strategy"] = "check"
        config["check_cols"] = chance.choice(("all", [one.name for one in payload], [payload[0].name]))
        if chance.random() < 0.2:
            config["updated_at"] = "at"
            columns.append(Column("at", "timestamp"))
    if chance.random() < 0.7:
        config["hard_deletes"] = chance.choice(("ignore", "invalidate", "new_record"))


SETTINGS: dict[str, Callable[[random.Random, dict[str, Any], list[Column], list[Column]], None]] = {
    "upsert": _settings_of_upsert,
    "keyed_overwrite": _settings_of_overwrite,
    "keyed_microbatch": _settings_of_microbatch,
    "append": _settings_of_append,
    "merge": _settings_of_merge,
    "delete+insert": _settings_of_delete_insert,
    "insert_overwrite": _settings_of_overwrite,
    "microbatch": _settings_of_microbatch,
    "snapshot": _settings_of_snapshot,
}
