"""Random cases, each from a seed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.keyed.data_type import parse_type, type_text
from tests.dbt.random.drift import DRIFTS, KEY_DRIFTS, changed_inside, new_type, reordered
from tests.dbt.random.fits import keep
from tests.dbt.random.known import KNOWN
from tests.dbt.random.oracle import DELETES, PREDICATES
from tests.dbt.random.project import KEYED, PLAIN, Batch, Case, Column, Model, Round
from tests.dbt.random.seeds import draw_seed, seed_value
from tests.dbt.random.values import COLLATED, KEY_TYPES, canonical, draw_value

WEIGHTS = {
    "upsert": 5,
    "keyed_overwrite": 2,
    "keyed_microbatch": 1,
    "append": 2,
    "merge": 4,
    "delete+insert": 3,
    "insert_overwrite": 3,
    "microbatch": 1,
    "table": 1,
    "view": 1,
    "seed": 1,
    "snapshot": 5,
}
CAN_FAIL = ("upsert", "keyed_overwrite", "append", "merge", "delete+insert", "table", "snapshot")
"""Kinds of models that a row may fail in: of others, which rows are computed is Spark's business."""
KEYED_BY = ("merge", "delete+insert", "snapshot", *KEYED)
ON_SCHEMA_CHANGE = (
    None,
    None,
    None,
    "ignore",
    "fail",
    "append_new_columns",
    "append_new_columns",
    "sync_all_columns",
)


def draw_case(seed: int, models: int = 8, rounds: int = 4) -> Case:
    """A case with about so many models and rounds."""
    chance = random.Random(f"dbt {seed}")
    kinds = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=max(1, models + chance.randint(-1, 1)))
    drafts = [_draft(chance, f"m{number}", kind) for number, kind in enumerate(kinds)]
    told: list[Round] = []
    count = max(2, rounds + chance.randint(-1, 1))
    while len(told) < count:
        number = len(told)
        if (
            told
            and told[-1].verb == "build"
            and (told[-1].ends or told[-1].poisoned)
            and chance.random() < 0.6
        ):
            told.append(replace(told[-1], verb="retry", ends={}))
            continue
        batches = {draft.model.name: draft.next_batch(chance, number) for draft in drafts}
        names = [draft.model.name for draft in drafts if draft.model.kind not in ("view", "seed")]
        ends = {}
        if names and number and chance.random() < 0.25:
            ends[chance.choice(names)] = (chance.randint(0, 7), chance.random() < 0.5)
        partitions = {
            one.model.name: None if one.model.config.get("partition_by") else "part"
            for one in drafts
            if number and one.model.kind in (*PLAIN, *KEYED) and chance.random() < 0.03
        }
        poisoned = [
            draft.model.name for draft in drafts if draft.model.kind in CAN_FAIL and chance.random() < 0.03
        ]
        told.append(
            Round(
                batches,
                threads=chance.choice((1, 1, 1, 2, 3, 4)),
                full_refresh=chance.random() < 0.08,
                ends=ends,
                poisoned=frozenset(poisoned) - ends.keys(),
                days=(chance.randint(0, 2), chance.randint(1, 2)),
                partitions=partitions,
            )
        )
    return Case(seed, tuple(draft.model for draft in drafts), tuple(told))


@dataclass
class Draft:
    """A model, and what its query gives now.

    :param protected: columns that its settings name, and which therefore stay.
    :param pool: the values of each column of the key.
    """

    model: Model
    columns: list[Column]
    protected: set[str]
    pool: dict[str, list[Any]]
    drifts: float
    last: Batch | None = None

    def next_batch(self, chance: random.Random, number: int) -> Batch:
        if self.last is not None and chance.random() < 0.1:
            return self.last
        if self.last is not None and self.model.kind != "seed":
            self._drift(chance)
        self.last = Batch(tuple(self.columns), tuple(self._rows(chance, number)))
        return self.last

    def _rows(self, chance: random.Random, number: int) -> list[tuple[Any, ...]]:
        kind = self.model.kind
        least = 1 if kind == "seed" else 0
        count = 0 if not least and chance.random() < 0.12 else chance.randint(1, 4 if number else 6)
        rows = [self._row(chance, number) for _ in range(count)]
        if not self.model.keys or chance.random() < self._duplicates:
            return self._ordered(rows)
        types = [one.type for one in self.columns]
        places = [place for place, one in enumerate(self.columns) if one.name.lower() in self._key_names]
        by_key = {tuple(canonical(row[place], types[place]) for place in places): row for row in rows}
        return list(by_key.values())

    @property
    def _key_names(self) -> set[str]:
        return {name.lower() for name in self.model.keys}

    @property
    def _duplicates(self) -> float:
        if "sequence_by" in self.model.config:
            return 0
        if "deduplicate_by" in self.model.config:
            return 0.9
        return 0.04 if self.model.is_keyed or self.model.kind == "snapshot" else 0.15

    def _ordered(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Rows of one key have different values in ``deduplicate_by``: what is left open is not asked."""
        names = [one.name for one in self.columns]
        if "ver" not in names:
            return rows
        place = names.index("ver")
        return [
            (*row[:place], None if number == 0 and row[place] is None else number * 2, *row[place + 1 :])
            for number, row in enumerate(rows)
        ]

    def _row(self, chance: random.Random, number: int) -> tuple[Any, ...]:
        return tuple(self._value(chance, one, number) for one in self.columns)

    def _value(self, chance: random.Random, column: Column, number: int) -> Any:
        name, config = column.name.lower(), self.model.config
        if name in self.pool:
            nulls = 0.01 if self.model.is_keyed else 0.08
            return None if chance.random() < nulls else chance.choice(self.pool[name])
        if name == "part":
            return chance.choice((0, 1, 2, None))
        if name == "seq":
            return None if chance.random() < 0.02 else chance.randint(0, 6)
        if name == "ver":
            return chance.choice((None, 1))
        if name == "_action":
            return "D" if chance.random() < 0.3 else "U"
        if name == "at":
            if chance.random() < 0.06:
                return None
            day = dt.datetime(2024, 3, 1) + dt.timedelta(days=chance.randint(-1, 4))
            if column.type == "date":
                return day.date()
            return day + dt.timedelta(seconds=chance.choice((0, 1, 43200, 86399)))
        if self.model.kind == "seed":
            return seed_value(chance, column, config)
        return draw_value(chance, column.type)

    # Drift

    def _drift(self, chance: random.Random) -> None:
        if chance.random() > self.drifts:
            return
        ways = [self._add, self._drop, self._retype, self._retype, self._reorder, self._respell]
        if self.model.kind != "snapshot":
            # Whether a NULL in a new field is a change of the row is left open.
            ways += [self._change_inside, self._change_inside]
        chance.choice(ways)(chance)

    def _free(self) -> list[int]:
        return [place for place, one in enumerate(self.columns) if one.name.lower() not in self.protected]

    def _add(self, chance: random.Random) -> None:
        used = {one.name.lower() for one in self.columns}
        name = next(f"v{number}" for number in range(1, 20) if f"v{number}" not in used)
        self.columns.insert(chance.randint(0, len(self.columns)), Column(name, self._new_type(chance)))

    def _new_type(self, chance: random.Random) -> str:
        return new_type(chance, self.model.kind)

    def _drop(self, chance: random.Random) -> None:
        free = self._free()
        if len(free) > 1:
            del self.columns[chance.choice(free)]

    def _retype(self, chance: random.Random) -> None:
        keys = [place for place, one in enumerate(self.columns) if one.name.lower() in self.pool]
        free = self._free()
        if keys and chance.random() < 0.25:
            place = chance.choice(keys)
            column = self.columns[place]
            options = KEY_DRIFTS.get(column.type, ())
            if options:
                wanted = chance.choice(options)
                values = self.pool[column.name.lower()]
                self.pool[column.name.lower()] = [keep(value, column.type, wanted) for value in values]
                self.columns[place] = replace(column, type=wanted)
        elif free:
            place = chance.choice(free)
            column = self.columns[place]
            options = DRIFTS.get(column.type, ())
            wanted = chance.choice(options) if options else None
            if wanted is not None:
                self.columns[place] = replace(column, type=wanted)

    def _change_inside(self, chance: random.Random) -> None:
        places = [place for place in self._free() if "struct" in self.columns[place].type]
        if places:
            place = chance.choice(places)
            column = self.columns[place]
            changed = type_text(changed_inside(chance, parse_type(column.type)))
            self.columns[place] = replace(column, type=changed)

    def _reorder(self, chance: random.Random) -> None:
        chance.shuffle(self.columns)
        self.columns = [replace(one, type=reordered(chance, one.type)) for one in self.columns]

    def _respell(self, chance: random.Random) -> None:
        free = self._free()
        if free:
            place = chance.choice(free)
            self.columns[place] = replace(self.columns[place], name=self.columns[place].name.swapcase())


# Models


def _draft(chance: random.Random, name: str, kind: str) -> Draft:
    if kind == "seed":
        settings, columns = draw_seed(chance)
        names = {one.name for one in columns}
        return Draft(Model(name, kind, settings), columns, names, {}, 0)
    config: dict[str, Any] = {}
    columns = [Column("part", "int")]
    pool: dict[str, list[Any]] = {}
    if kind in KEYED_BY:
        columns += _keys(chance, kind, config, pool)
    payload = [Column(f"v{number}", new_type(chance, kind)) for number in range(1, chance.randint(2, 4))]
    columns += payload
    _SETTINGS.get(kind, lambda *_: None)(chance, config, columns, payload)
    if kind in (*PLAIN, *KEYED):
        mode = chance.choice(ON_SCHEMA_CHANGE)
        if mode is not None:
            config["on_schema_change"] = mode
    if kind in KEYED:
        config["buckets"] = chance.choice((1, 1, 2))
    protected = {one.name.lower() for one in columns} - {one.name.lower() for one in payload}
    for setting in ("merge_update_columns", "merge_exclude_columns"):
        protected |= {one.lower() for one in config.get(setting, ())}
    if config.get("check_cols") not in (None, "all") and chance.random() < 0.9:
        protected |= {one.lower() for one in config["check_cols"]}
    source = chance.choice(("inline", "inline", "inline", "ephemeral", "view", "table"))
    if source != "inline" and any(one.type in ("void", COLLATED) for one in columns):
        source = "ephemeral"
    chance.shuffle(columns)
    return Draft(Model(name, kind, config, source), columns, protected, pool, chance.choice((0, 0.3, 0.7)))


def _keys(
    chance: random.Random, kind: str, config: dict[str, Any], pool: dict[str, list[Any]]
) -> list[Column]:
    odd = "k2" if kind == "snapshot" and "odd names in snapshots' keys" in KNOWN else "the-line"
    names = chance.choice((["k"], ["k"], ["k1", "k2"], ["k1", odd]))
    config["unique_key"] = names[0] if len(names) == 1 and chance.random() < 0.8 else names
    columns = []
    for name in names:
        type_ = chance.choice(KEY_TYPES)
        columns.append(Column(name, type_))
        values = {repr(value): value for _ in range(4) if (value := draw_value(chance, type_, 0)) is not None}
        pool[name] = list(values.values())
    return columns


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
        columns.append(Column("at", "timestamp"))
    else:
        config["strategy"] = "check"
        config["check_cols"] = chance.choice(("all", [one.name for one in payload], [payload[0].name]))
    if chance.random() < 0.7:
        config["hard_deletes"] = chance.choice(("ignore", "invalidate", "new_record"))


_SETTINGS: dict[str, Callable[[random.Random, dict[str, Any], list[Column], list[Column]], None]] = {
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
