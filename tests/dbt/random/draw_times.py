"""Draws what happens to the times of snapshots: types that change, and settings that name another column.

With random numbers of its own, so that the models and rows of a seed stay the same.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import replace
from typing import Any

from tests.dbt.random.project import Batch, Case, Column, Model, Round
from tests.dbt.random.values import quote

TIMES = ("timestamp", "date", "timestamp_ntz")
OTHER = "at2"
"""A second time of some rows, which is later than the first one or the same."""


def with_other_times(case: Case) -> Case:
    models, rounds = list(case.models), list(case.rounds)
    for model in models:
        chance = random.Random(f"times {case.seed} {model.name}")
        if model.kind != "snapshot" or "at" not in rounds[0].batches[model.name].types:
            continue
        if chance.random() < 0.6:
            rounds = _changed(chance, model, rounds)
    return replace(case, rounds=tuple(rounds))


def _changed(chance: random.Random, model: Model, rounds: list[Round]) -> list[Round]:
    types = {"at": rounds[0].batches[model.name].types["at"], OTHER: chance.choice(TIMES)}
    later: dict[int, list[int]] = {}
    settings: dict[str, Any] = {}
    found: list[Round] = []
    for number, round_ in enumerate(rounds):
        if round_.verb == "retry":
            last = found[-1]
            found.append(replace(round_, batches=last.batches, settings=last.settings))
            continue
        if number and chance.random() < 0.25:
            types[chance.choice(("at", OTHER))] = chance.choice(TIMES)
        if number and chance.random() < 0.4:
            settings = chance.choice(_ways(chance, model))
        batch = round_.batches[model.name]
        if id(batch) not in later:
            later[id(batch)] = [chance.choice((0, 0, 1, 7, 90000)) for _ in batch.rows]
        given = {**round_.settings.get(model.name, {}), **settings}
        found.append(
            replace(
                round_,
                batches={**round_.batches, model.name: _timed(batch, types, later[id(batch)])},
                settings={**round_.settings, model.name: given} if given else round_.settings,
            )
        )
    return found


def _ways(chance: random.Random, model: Model) -> list[dict[str, Any]]:
    """Settings that a later round may have in place of the first ones."""
    ways: list[dict[str, Any]] = [{}, {"updated_at": OTHER}]
    type_ = chance.choice(TIMES)
    ways.append({"updated_at": f"cast({quote(OTHER)} as {type_})"})
    if model.config["strategy"] == "timestamp":
        return [*ways, {"strategy": "check", "check_cols": "all", "updated_at": None}]
    timestamp = {"strategy": "timestamp", "check_cols": None}
    return [*ways, {"updated_at": None}, *({**timestamp, "updated_at": name} for name in ("at", OTHER))]


def _timed(batch: Batch, types: dict[str, str], later: list[int]) -> Batch:
    place = [one.name for one in batch.columns].index("at")
    columns = [replace(one, type=types["at"]) if one.name == "at" else one for one in batch.columns]
    rows = []
    for row, seconds in zip(batch.rows, later, strict=True):
        at = row[place]
        if at is not None and not isinstance(at, dt.datetime):
            at = dt.datetime.combine(at, dt.time())
        other = None if at is None or seconds == 7 else at + dt.timedelta(seconds=seconds)
        values = [*row, _as(other, types[OTHER])]
        values[place] = _as(at, types["at"])
        rows.append(tuple(values))
    return Batch((*columns, Column(OTHER, types[OTHER])), tuple(rows))


def _as(value: dt.datetime | None, type_: str) -> dt.date | None:
    return value.date() if value is not None and type_ == "date" else value
