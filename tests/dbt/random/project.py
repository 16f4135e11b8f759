"""A random case as a value: models, and rounds with a batch for each; and the files that dbt reads."""

from __future__ import annotations

import csv
import datetime as dt
import io
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from tests.dbt.keyed.conftest import SPARK_CONF
from tests.dbt.random.values import quote, sql_of

CONF = {**SPARK_CONF, "spark.sql.session.timeZone": "UTC"}
"""Spark's settings, in which a timestamp is shown as UTC."""
KEYED = ("upsert", "keyed_overwrite", "keyed_microbatch")
PLAIN = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")
REPLACED = ("table", "view", "seed")
KINDS = (*KEYED, *PLAIN, *REPLACED, "snapshot")
STRATEGIES = {"keyed_overwrite": "insert_overwrite", "keyed_microbatch": "microbatch", "upsert": None}
DAY_ZERO = "2024-03-01"


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Batch:
    """What a model's query gives in a round."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip((one.name for one in self.columns), row, strict=True)) for row in self.rows]

    @property
    def types(self) -> dict[str, str]:
        return {one.name: one.type for one in self.columns}

    @property
    def sql(self) -> str:
        if not self.rows:
            values = ", ".join(f"{sql_of(None, one.type)} AS {quote(one.name)}" for one in self.columns)
            return f"SELECT {values} WHERE false"
        rows = [
            "("
            + ", ".join(sql_of(value, one.type) for value, one in zip(row, self.columns, strict=True))
            + ")"
            for row in self.rows
        ]
        names = ", ".join(quote(one.name) for one in self.columns)
        return "SELECT * FROM VALUES\n  " + ",\n  ".join(rows) + f"\nAS t({names})"


@dataclass(frozen=True)
class Model:
    """:param kind: the materialization, or the strategy of an incremental model.

    :param config: dbt's settings besides materialization and strategy.
    :param source: where the rows come from: ``inline``, or an upstream that is ``ephemeral``, a ``view`` or
        a ``table``.
    """

    name: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    source: str = "inline"

    @property
    def is_keyed(self) -> bool:
        return self.kind in KEYED

    @property
    def keys(self) -> list[str]:
        key = self.config.get("unique_key")
        return [key] if isinstance(key, str) else list(key or [])

    @property
    def settings(self) -> dict[str, Any]:
        if self.kind in ("table", "view"):
            return {"materialized": self.kind, **self.config}
        if self.kind in ("snapshot", "seed"):
            return dict(self.config)
        strategy = STRATEGIES.get(self.kind, self.kind)
        named = {"incremental_strategy": strategy} if strategy else {}
        return {"materialized": "incremental", **named, **self.config}


@dataclass(frozen=True)
class Round:
    """One invocation of dbt.

    :param verb: ``build``, or ``retry`` of the round before, whose batches it has.
    :param ends: models whose run ends at one of their statements: the number, and whether right after it.
    :param poisoned: models of which a row fails while it is computed.
    :param days: the first day of event time, and how many, for microbatch models.
    :param partitions: models whose ``partition_by`` is another one in this round.
    """

    batches: dict[str, Batch]
    verb: str = "build"
    threads: int = 1
    full_refresh: bool = False
    ends: dict[str, tuple[int, bool]] = field(default_factory=dict)
    poisoned: frozenset[str] = frozenset()
    days: tuple[int, int] = (0, 2)
    partitions: dict[str, Any] = field(default_factory=dict)

    def settled(self, model: Model) -> Model:
        """A model with its settings of this round."""
        if model.name not in self.partitions:
            return model
        return replace(model, config={**model.config, "partition_by": self.partitions[model.name]})


@dataclass(frozen=True)
class Case:
    seed: int
    models: tuple[Model, ...]
    rounds: tuple[Round, ...]


def files_of(case: Case, round_: Round) -> dict[str, str]:
    """The project's files in a round, by path."""
    files: dict[str, str] = {}
    seeds = []
    for model in case.models:
        batch = round_.batches[model.name]
        if model.kind == "seed":
            files[f"seeds/{model.name}.csv"] = _csv(batch)
            seeds.append({"name": model.name, "config": dict(model.config)})
        else:
            files.update(_model_files(round_.settled(model), batch, model.name in round_.poisoned))
    if seeds:
        files["seeds/properties.yml"] = yaml.safe_dump({"seeds": seeds}, sort_keys=False)
    return files


def _csv(batch: Batch) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([one.name for one in batch.columns])
    writer.writerows([["" if value is None else _cell(value) for value in row] for row in batch.rows])
    return out.getvalue()


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _model_files(model: Model, batch: Batch, poisoned: bool) -> dict[str, str]:
    sql = batch.sql
    files = {}
    if model.source != "inline":
        upstream = f"in_{model.name}"
        times = {"event_time": model.config["event_time"]} if "event_time" in model.config else {}
        files[f"models/{upstream}.sql"] = f"{_config({'materialized': model.source, **times})}\n{sql}"
        sql = f"select * from {{{{ ref('{upstream}') }}}}"
    if poisoned:
        sql = f"select * from (\n{sql}\n) as whole where isnull(raise_error('poisoned row'))"
    text = f"{_config(model.settings)}\n{sql}"
    if model.kind == "snapshot":
        files[f"snapshots/{model.name}.sql"] = f"{{% snapshot {model.name} %}}\n{text}\n{{% endsnapshot %}}"
    else:
        files[f"models/{model.name}.sql"] = text
    return files


def _config(settings: dict[str, Any]) -> str:
    return "{{ config(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ") }}"


def arguments_of(round_: Round, has_microbatch: bool) -> list[str]:
    """The command line of dbt."""
    if round_.verb == "retry":
        return ["retry"]
    words = ["build", "--threads", str(round_.threads)]
    if round_.full_refresh:
        words.append("--full-refresh")
    if has_microbatch:
        start, end = interval_of(round_)
        words += ["--event-time-start", start, "--event-time-end", end]
    return words


def interval_of(round_: Round) -> tuple[str, str]:
    first = dt.date.fromisoformat(DAY_ZERO) + dt.timedelta(days=round_.days[0])
    return str(first), str(first + dt.timedelta(days=round_.days[1]))
