"""A random case as a value: models, and rounds with a batch for each; and the files that dbt reads."""

from __future__ import annotations

import csv
import datetime as dt
import io
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from tests.dbt.keyed.conftest import SPARK_CONF
from tests.dbt.random.cheap_settings import AS_FOR_USERS, FEW_TASKS, is_usual
from tests.dbt.random.queries import sql_of_query
from tests.dbt.random.values import quote, sql_of

CONF = {**SPARK_CONF, **FEW_TASKS, "spark.sql.session.timeZone": "UTC"}
"""Spark's settings, in which a timestamp is shown as UTC."""
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Beirut", "Australia/Lord_Howe")
"""Time zones of sessions. In Beirut summer time begins at midnight, on Lord Howe it is half an hour."""
HOOK_LOG = "hook_log"
"""The table into which hooks write."""
KEYED = ("upsert", "keyed_overwrite", "keyed_microbatch")
PLAIN = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")
REPLACED = ("table", "view", "seed")
INCREMENTAL = (*KEYED, *PLAIN, "auto")
KINDS = (*INCREMENTAL, *REPLACED, "snapshot")
STRATEGIES = {"keyed_overwrite": "insert_overwrite", "keyed_microbatch": "microbatch", "upsert": None}
EVENT_TIME = "at"
"""The column that is the event time of an upstream that has it."""
DAY_ZERO = "2024-03-01"


def is_set_aside(name: str, relations: Iterable[str]) -> bool:
    """Whether an interrupted run that replaces a view by a table, or the reverse, has renamed the old one."""
    return any(one.startswith(f"{name}__arctic_old_") for one in relations)


PACKAGED = "\n{{ shared.all_rows() }}"
"""The end of a query that has no rows unless the package takes Spark's branch."""


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

    :param config: dbt's settings except materialization and strategy.
    :param source: where the rows come from: ``inline``, or an upstream that is ``ephemeral``, a ``view`` or
        a ``table``.
    :param ending: what stands after the query.
    :param upstream: the model that an automatic model reads.
    :param query: which query an automatic model has, of ``QUERIES``.
    """

    name: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    source: str = "inline"
    ending: str = ""
    upstream: str = ""
    query: str = ""

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
    :param interval: the start and the end of the event times of microbatch models, in UTC.
    :param settings: of some models, settings that are others in this round; ``None`` removes one.
    :param kinds: models that are of another kind in this round.
    :param contracts: models with an enforced contract, and the columns that it has.
    :param cancel: a model and one of its statements, at which Ctrl-C is pressed.
    :param adopted: models whose plain table ``dbt-arctic adopt`` makes a keyed one before the run.
    :param evolved: models whose partitioning another program changes and changes back before the run, with a
        rewrite of all files in between.
    :param reserved: the name of an additional model, which is that of a part of a keyed table.
    :param planned: whether ``dbt-arctic plan`` follows the run.
    :param late: models into which another process upserts while they are refreshed in full.
    :param excluded: nodes that the command leaves out: models, and upstreams of these.
    :param is_selection: whether the command names the other nodes instead, in ``--select``.
    :param empty: whether upstreams are read without their rows (``--empty``).
    :param sample: the first day and the one after the last of what is read of upstreams with an event time
        (``--sample``).
    """

    batches: dict[str, Batch]
    verb: str = "build"
    threads: int = 1
    full_refresh: bool = False
    ends: dict[str, tuple[int, bool]] = field(default_factory=dict)
    poisoned: frozenset[str] = frozenset()
    interval: tuple[str, str] = (DAY_ZERO, "2024-03-03")
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    contracts: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    cancel: tuple[str, int] | None = None
    adopted: frozenset[str] = frozenset()
    evolved: frozenset[str] = frozenset()
    reserved: str = ""
    planned: bool = False
    late: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    is_selection: bool = False
    empty: bool = False
    sample: tuple[str, str] | None = None

    @property
    def is_partial(self) -> bool:
        """Whether models read a part of their upstreams."""
        return self.empty or self.sample is not None

    def settled(self, model: Model) -> Model:
        """A model with its kind and settings of this round."""
        given = {**model.config, **self.settings.get(model.name, {})}
        if model.name in self.contracts:
            given["contract"] = {"enforced": True}
        config = {name: value for name, value in given.items() if value is not None}
        return replace(model, kind=self.kinds.get(model.name, model.kind), config=config)

    def only(self, names: set[str]) -> Round:
        """The round of some models."""
        return replace(
            self,
            batches={one: batch for one, batch in self.batches.items() if one in names},
            ends={one: end for one, end in self.ends.items() if one in names},
            poisoned=self.poisoned & names,
            settings={one: given for one, given in self.settings.items() if one in names},
            kinds={one: kind for one, kind in self.kinds.items() if one in names},
            contracts={one: columns for one, columns in self.contracts.items() if one in names},
            cancel=self.cancel if self.cancel and self.cancel[0] in names else None,
            adopted=self.adopted & names,
            evolved=self.evolved & names,
            late=self.late & names,
            excluded=frozenset(one for one in self.excluded if one.removeprefix("in_") in names),
            threads=1,
        )


@dataclass(frozen=True)
class Case:
    """:param zone: the session's time zone."""

    seed: int
    models: tuple[Model, ...]
    rounds: tuple[Round, ...]
    zone: str = "UTC"

    @property
    def spark_conf(self) -> dict[str, str]:
        usual = AS_FOR_USERS if is_usual(self.seed) else {}
        is_ansi = random.Random(f"ansi {self.seed}").random() < 0.9
        ansi = {} if is_ansi else {"spark.sql.ansi.enabled": "false"}
        return {**CONF, **usual, **ansi, "spark.sql.session.timeZone": self.zone}

    @property
    def has_microbatch(self) -> bool:
        return any("microbatch" in model.kind for model in self.models)

    @property
    def project(self) -> dict[str, Any]:
        """What ``dbt_project.yml`` says."""
        said: dict[str, Any] = {"name": "random", "version": "1.0", "profile": "random"}
        if any({"pre_hook", "post_hook"} & model.config.keys() for model in self.models):
            said["on-run-start"] = (
                f"-- one; two\ncreate table if not exists {{{{ target.schema }}}}.{HOOK_LOG}"
                " (model string, step string) using iceberg; -- no statement;"
            )
        return said


def files_of(case: Case, round_: Round) -> dict[str, str]:
    """The project's files in a round, by path."""
    files: dict[str, str] = {}
    seeds, contracts = [], []
    for model in case.models:
        if model.kind == "auto":
            sql = sql_of_query(model.query, model.upstream, model.keys)
            files[f"models/{model.name}.sql"] = f"{_config(round_.settled(model).settings)}\n{sql}"
            continue
        batch = round_.batches[model.name]
        if model.name in round_.contracts:
            contracts.append({"name": model.name, "columns": _declared(round_.contracts[model.name])})
        if model.kind == "seed":
            files[f"seeds/{model.name}.csv"] = _csv(batch)
            seeds.append({"name": model.name, "config": dict(round_.settled(model).config)})
        else:
            poison = _poison(round_, model) if model.name in round_.poisoned else ""
            files.update(_model_files(round_.settled(model), batch, poison))
    if any(PACKAGED in model.ending for model in case.models):
        files |= _PACKAGE
    if round_.reserved:
        files[f"models/{round_.reserved}.sql"] = "{{ config(materialized='table') }}\nselect 1 as k"
    if contracts:
        files["models/properties.yml"] = yaml.safe_dump({"models": contracts}, sort_keys=False)
    if seeds:
        files["seeds/properties.yml"] = yaml.safe_dump({"seeds": seeds}, sort_keys=False)
    return files


_PACKAGE = {
    "dbt_packages/shared/dbt_project.yml": yaml.safe_dump({"name": "shared", "version": "1.0"}),
    "dbt_packages/shared/macros/rows.sql": "{% macro all_rows() -%}\n"
    "{% if target.type in ('bigquery', 'spark') %}/* all */{% else %}limit 0{% endif %}\n{%- endmacro %}\n",
}


def _declared(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """The columns of a contract, as a properties file has them."""
    return [
        {"name": one.name, "data_type": one.type, **({} if one.name.isidentifier() else {"quote": True})}
        for one in columns
    ]


def _poison(round_: Round, model: Model) -> str:
    """A condition that fails in each row; of a microbatch model, in the last batch."""
    condition = "where isnull(raise_error('poisoned row'))"
    if "microbatch" not in model.kind:
        return condition
    start = batches_of(model, round_)[-1][0]
    is_last = f"(model.batch.event_time_start | string | replace('T', ' ')).startswith('{start}')"
    return f"{{% if execute and model.get('batch') and {is_last} %}}{condition}{{% endif %}}"


def _csv(batch: Batch) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([one.name for one in batch.columns])
    writer.writerows([["" if value is None else _cell(value) for value in row] for row in batch.rows])
    return out.getvalue()


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _model_files(model: Model, batch: Batch, poison: str) -> dict[str, str]:
    sql = batch.sql
    files = {}
    if model.source != "inline":
        upstream = f"in_{model.name}"
        times = {"event_time": EVENT_TIME} if has_event_time(batch) else {}
        files[f"models/{upstream}.sql"] = f"{_config({'materialized': model.source, **times})}\n{sql}"
        sql = f"select * from {{{{ ref('{upstream}') }}}}"
    if poison:
        sql = f"select * from (\n{sql}\n) as whole {poison}"
    text = f"{_config(model.settings)}\n{sql}{model.ending}"
    if model.kind == "snapshot":
        files[f"snapshots/{model.name}.sql"] = f"{{% snapshot {model.name} %}}\n{text}\n{{% endsnapshot %}}"
    else:
        files[f"models/{model.name}.sql"] = text
    return files


def _config(settings: dict[str, Any]) -> str:
    return "{{ config(" + ", ".join(f"{name}={value!r}" for name, value in settings.items()) + ") }}"


def has_event_time(batch: Batch) -> bool:
    return any(one.name == EVENT_TIME for one in batch.columns)


def arguments_of(case: Case, round_: Round) -> list[str]:
    """The command line of dbt."""
    if round_.verb == "retry":
        return ["retry"]
    words = ["build", "--threads", str(round_.threads)]
    if round_.full_refresh:
        words.append("--full-refresh")
    if case.has_microbatch:
        words += ["--event-time-start", round_.interval[0], "--event-time-end", round_.interval[1]]
    if round_.empty:
        words.append("--empty")
    if round_.sample is not None:
        words += ["--sample", repr(dict(zip(("start", "end"), round_.sample, strict=True)))]
    if round_.excluded and round_.is_selection:
        words += ["--select", *sorted(nodes_of(case) - round_.excluded)]
    elif round_.excluded:
        words += ["--exclude", *sorted(round_.excluded)]
    return words


def nodes_of(case: Case) -> set[str]:
    """The models, seeds and snapshots of the project, by name."""
    stored = {f"in_{model.name}" for model in case.models if model.source in ("view", "table")}
    return stored | {model.name for model in case.models}


Interval = tuple[dt.datetime, dt.datetime]


def batches_of(model: Model, round_: Round) -> list[Interval]:
    """The batches of a microbatch model: the first instant, and the one after the last, in UTC."""
    size = model.config["batch_size"]
    start, end = map(dt.datetime.fromisoformat, round_.interval)
    found = []
    at = start.replace(minute=0)
    if size != "hour":
        at = at.replace(hour=0)
    if size == "month":
        at = at.replace(day=1)
    while at < end:
        lengths = {"hour": dt.timedelta(hours=1), "day": dt.timedelta(days=1), "month": dt.timedelta(days=31)}
        following = at + lengths[size]
        if size == "month":
            following = following.replace(day=1)
        found.append((at, following))
        at = following
    return found
