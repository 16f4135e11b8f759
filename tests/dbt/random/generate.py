"""Random cases, each from a seed."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_arctic.data_type import parse_type, type_text
from tests.dbt.random.automatic import draw_automatic, with_settings_of_session
from tests.dbt.random.draw_other_programs import with_others
from tests.dbt.random.draw_times import with_other_times
from tests.dbt.random.drift import DRIFTS, KEY_DRIFTS, changed_inside, keys_as, new_type, reordered
from tests.dbt.random.event_times import EventTimes, draw_times
from tests.dbt.random.hooks import hooks_of
from tests.dbt.random.oracle import PREDICATES, USED_BY, as_stored_upstream
from tests.dbt.random.project import EVENT_TIME, KEYED, PLAIN, ZONES, Batch, Case, Column, Model, Round
from tests.dbt.random.properties import draw_properties
from tests.dbt.random.seeds import draw_seed, seed_value
from tests.dbt.random.settings import SETTINGS
from tests.dbt.random.values import COLLATED, KEY_TYPES, canonical, draw_value, in_zone

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
CAN_FAIL = (
    "upsert",
    "keyed_overwrite",
    "append",
    "merge",
    "delete+insert",
    "table",
    "snapshot",
    "microbatch",
    "keyed_microbatch",
)
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

NESTED_KEY = "struct<x:string,y:string>"
NESTED_KEYS = [
    {"x": x, "y": y} for x, y in (("a, b", "c"), ("a", "b, c"), (None, "c"), ("NULL", "c"), ("a|b", ""))
]
"""Keys of which several have one text if they are cast to a string."""
OTHER_KINDS = (
    ("table", "view", "append", "insert_overwrite"),
    ("upsert", "merge", "delete+insert", "keyed_overwrite", "table", "view"),
)
"""What models without a key, and those with one, may become from one run to the next."""


def draw_case(seed: int, models: int = 8, rounds: int = 4) -> Case:
    """A case with about so many models and rounds."""
    chance = random.Random(f"dbt {seed}")
    zone = chance.choice(ZONES) if chance.random() < 0.4 else "UTC"
    with in_zone(zone):
        kinds = chance.choices(
            list(WEIGHTS), list(WEIGHTS.values()), k=max(1, models + chance.randint(-1, 1))
        )
        times = draw_times(seed, zone)
        drafts = [_draft(chance, f"m{number}", kind, times) for number, kind in enumerate(kinds)]
        automatic = draw_automatic(chance, [draft.model for draft in drafts])
        automatic = with_settings_of_session(seed, automatic)
        told: list[Round] = []
        count = max(2, rounds + chance.randint(-1, 1))
        while len(told) < count:
            if told and _is_retried(chance, told[-1]):
                told.append(replace(told[-1], verb="retry", ends={}))
            else:
                told.append(_round(chance, drafts, automatic, len(told), times))
        case = Case(seed, (*(draft.model for draft in drafts), *automatic), tuple(told), zone)
        return with_others(with_other_times(case))


def _is_retried(chance: random.Random, last: Round) -> bool:
    failed = last.verb == "build" and bool(last.ends or last.poisoned) and last.cancel is None
    return failed and chance.random() < 0.6


def _round(
    chance: random.Random, drafts: list[Draft], automatic: list[Model], number: int, times: EventTimes
) -> Round:
    batches = {draft.model.name: draft.next_batch(chance, number) for draft in drafts}
    for draft in drafts:
        if number and chance.random() < 0.06:
            draft.change_kind(chance)
    kinds = {draft.model.name: draft.kind for draft in drafts if draft.kind != draft.model.kind}
    names = [draft.model.name for draft in drafts if draft.kind not in ("view", "seed")]
    names += [model.name for model in automatic]
    ends = {}
    if names and number and chance.random() < 0.25:
        ends[chance.choice(names)] = (chance.randint(0, 7), chance.random() < 0.5)
    cancel = None
    if names and number and not ends and chance.random() < 0.04:
        cancel = (chance.choice(names), chance.randint(0, 7))
    settings = {draft.model.name: given for draft in drafts if (given := _settings(chance, draft, number))}
    poisoned = {
        draft.model.name for draft in drafts if draft.kind in CAN_FAIL and chance.random() < 0.03
    } - ends.keys()
    return Round(
        batches,
        threads=chance.choice((1, 1, 1, 2, 3, 4)),
        full_refresh=chance.random() < 0.08,
        ends=ends,
        poisoned=frozenset(poisoned),
        interval=times.interval(chance.randint(0, 2), chance.randint(1, 2)),
        settings=settings,
        kinds=kinds,
        contracts={
            draft.model.name: contract for draft in drafts if (contract := draft.contract(chance)) is not None
        },
        cancel=cancel,
    )


WRITES_ROWS = ("append", "merge", "delete+insert")
"""The plain strategies that do not need the partitions of their rows."""
OTHER_PARTITIONS = (None, "part", "bucket(2, part)", "bucket(4, part)")


def _settings(chance: random.Random, draft: Draft, number: int) -> dict[str, Any]:
    """The settings of a model in a round that differ from its first ones."""
    given = dict(draft.settings)
    kind, config = draft.kind, draft.model.config
    if draft.properties is not None and kind not in ("view", "seed"):
        draft.properties = draw_properties(chance, draft.properties)
        given["tblproperties"] = draft.properties or None
    if kind == "seed" and chance.random() < 0.05:
        given["column_types"] = {**config.get("column_types", {}), "Zip_code": "string"}
    if not number or kind != draft.model.kind or kind not in (*PLAIN, *KEYED):
        return given
    if chance.random() < 0.06:
        given["partition_by"] = chance.choice(OTHER_PARTITIONS if kind in WRITES_ROWS else (None, "part"))
    if chance.random() < 0.03:
        setting = chance.choice([name for name, kinds in USED_BY.items() if kind not in kinds] or [None])
        if setting is not None:
            given[setting] = {"incremental_predicates": [next(iter(PREDICATES))]}.get(setting, ["part"])
    return given


@dataclass
class Draft:
    """A model, and what its query gives now.

    :param protected: columns that its settings name, and which therefore stay.
    :param pool: the values of each column of the key.
    :param kind, settings: what the model is now, where that differs from its first kind and settings.
    :param properties: ``None`` where the model never has any.
    :param times: of a microbatch model, what draws its event times.
    """

    model: Model
    columns: list[Column]
    protected: set[str]
    pool: dict[str, list[Any]]
    drifts: float
    last: Batch | None = None
    has_contract: bool = False
    kind: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, str] | None = None
    times: EventTimes | None = None

    def __post_init__(self) -> None:
        self.kind = self.model.kind

    def next_batch(self, chance: random.Random, number: int) -> Batch:
        if self.last is not None and chance.random() < 0.1:
            return self.last
        if self.last is not None and self.model.kind != "seed":
            self._drift(chance)
            self._drift_of_event_time()
        self.last = Batch(tuple(self.columns), tuple(self._rows(chance, number)))
        return self.last

    def change_kind(self, chance: random.Random) -> None:
        """Another materialization or strategy, from now on; of models whose settings all of them have."""
        config = self.model.config
        kinds = OTHER_KINDS[bool(self.model.keys)]
        shared = {"unique_key", "on_schema_change", "buckets", "partition_by", "full_refresh"}
        if (
            self.model.kind not in kinds
            or not config.keys() <= shared
            or self.model.source not in ("inline", "ephemeral")
        ):
            return
        if config.get("partition_by") not in (None, "part", ["part"]) or self.has_contract:
            return
        if any(one.name == "_action" for one in self.columns):
            return
        self.kind = chance.choice(kinds)
        self.settings = {}
        if self.kind in KEYED and self.model.kind not in KEYED:
            self.settings["buckets"] = 1
        if self.kind not in KEYED and "buckets" in config:
            self.settings["buckets"] = None
        if self.kind == "view" and "partition_by" in config:
            self.settings["partition_by"] = None

    def contract(self, chance: random.Random) -> tuple[Column, ...] | None:
        """The columns of an enforced contract: those of the query, and at times others."""
        if not self.has_contract or self.last is None:
            return None
        columns = list(as_stored_upstream(self.model, self.last).columns)
        if any(one.type in ("void", COLLATED) or "void" in one.type for one in columns):
            return None
        draw, place = chance.random(), chance.randrange(len(columns))
        if draw < 0.06 and len(columns) > 1:
            del columns[place]
        elif draw < 0.12:
            other = "bigint" if columns[place].type != "bigint" else "string"
            columns[place] = replace(columns[place], type=other)
        elif draw < 0.3:
            columns[place] = replace(columns[place], name=columns[place].name.swapcase())
        chance.shuffle(columns)
        return tuple(columns)

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
        """Rows of one key have different values in ``deduplicate_by``, because ties are not specified."""
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
        if name == EVENT_TIME and self.times is not None:
            return self.times.value(column.type)
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

    def _drift_of_event_time(self) -> None:
        if self.times is not None and self.drifts:
            self.columns = [
                replace(one, type=self.times.other_type(one.type)) if one.name == EVENT_TIME else one
                for one in self.columns
            ]

    def _drift(self, chance: random.Random) -> None:
        if chance.random() > self.drifts:
            return
        ways = [self._add, self._drop, self._retype, self._retype, self._reorder, self._respell]
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
                self.pool[column.name.lower()] = keys_as(values, column.type, wanted)
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


def _draft(chance: random.Random, name: str, kind: str, times: EventTimes) -> Draft:
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
    SETTINGS.get(kind, lambda *_: None)(chance, config, columns, payload)
    has_contract = kind not in ("snapshot", "seed") and chance.random() < 0.1
    if kind in (*PLAIN, *KEYED):
        if chance.random() < 0.06:
            config["full_refresh"] = chance.random() < 0.3
        mode = chance.choice(ON_SCHEMA_CHANGE)
        if has_contract:
            mode = chance.choice(("append_new_columns", "fail"))
        if mode is not None:
            config["on_schema_change"] = mode
    if "microbatch" in kind:
        config |= times.settings()
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
    if "microbatch" not in kind and chance.random() < 0.07:
        config |= hooks_of(name)
    ending = chance.choice((";", " ;\n", "\n; -- the end; of it\n")) if chance.random() < 0.1 else ""
    model = Model(name, kind, config, source, ending)
    properties: dict[str, str] | None = {} if chance.random() < 0.2 else None
    drifts = chance.choice((0, 0.3, 0.7))
    draft = Draft(model, columns, protected, pool, drifts, has_contract=has_contract, properties=properties)
    draft.times = times if "microbatch" in kind else None
    return draft


def _keys(
    chance: random.Random, kind: str, config: dict[str, Any], pool: dict[str, list[Any]]
) -> list[Column]:
    names = chance.choice((["k"], ["k"], ["k1", "k2"], ["k1", "the-line"]))
    config["unique_key"] = names[0] if len(names) == 1 and chance.random() < 0.8 else names
    columns: list[Column] = []
    for name in names:
        type_ = chance.choice(KEY_TYPES)
        is_last = kind != "snapshot" and name == names[-1]
        if is_last and {type_, *(one.type for one in columns)} == {"boolean"}:
            type_ = "smallint"  # keyed tables, which plain models may become, have buckets of their key
        values = {repr(value): value for _ in range(4) if (value := draw_value(chance, type_, 0)) is not None}
        # A generator of its own keeps what else a seed draws.
        if type_ == "string" and random.Random("".join(values)).random() < 0.2:
            type_ = COLLATED
        if type_ == "string" and random.Random(f"number {values}").random() < 0.2:
            values = {one: one for one in ("7", "007", "00501", "x")}
        if kind == "snapshot" and random.Random(f"nested {values}").random() < 0.1:
            type_, values = NESTED_KEY, dict(enumerate(NESTED_KEYS))
        columns.append(Column(name, type_))
        pool[name] = list(values.values())
    return columns
