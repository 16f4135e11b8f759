"""The event-time interval of one batch of a microbatch model, as SQL.

Depends only on the two ends of a batch, and on the name and type of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, timezone
from typing import Any

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.refresh.config import choose_strategy
from dbt_arctic.refresh.materializations import is_automatic

_LITERALS: Mapping[str, Callable[[datetime], str]] = {
    "timestamp": lambda at: f"TIMESTAMP {literal(str(at))}",
    "timestamp_ntz": lambda at: f"TIMESTAMP_NTZ {literal(str(at.replace(tzinfo=None)))}",
    "date": lambda at: f"DATE {literal(str(at.date()))}",
}


_DURATION_OF_A_START = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UTC_ZONES = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "+00:00", "UTC+00:00"})


@dataclass(frozen=True)
class Interval:
    """An interval from ``start`` (inclusive) to ``end`` (exclusive); both in UTC."""

    event_time: str
    start: datetime
    end: datetime

    @classmethod
    def of(cls, event_time: str, start: datetime | str, end: datetime | str) -> Interval:
        """Create an interval from the ends of a batch. The name of the column may be in backticks."""
        if len(event_time) > 1 and event_time[0] == event_time[-1] == "`":
            event_time = event_time[1:-1].replace("``", "`")
        return cls(event_time, _utc(start), _utc(end))

    def condition(self, model: str, columns: Sequence[tuple[str, str]]) -> str:
        """The SQL condition for rows of the interval.

        Its literals have the type of the column, so that Iceberg can compare them with the statistics of
        partitions and files.

        :param columns: name and Spark type of each column to choose from.
        :raises ConfigError: the column does not exist or does not hold a time.
        """
        there = self._column(columns)
        if there is None:
            raise ConfigError(
                f"event_time is {self.event_time}, which the model does not return",
                where=model,
                why=f"its columns are: {', '.join(name for name, _ in columns)}",
                fix="select the column under that name, or correct event_time in the model's config",
            )
        name, type_ = there
        if type_ not in _LITERALS:
            raise ConfigError(
                f"event_time is {name}, which is of type {type_}",
                where=model,
                why="a batch is an interval of time",
                fix=f"cast it to one of: {', '.join(_LITERALS)}",
            )
        if type_ == "date" and any(at.time() != time() for at in self._ends):
            raise ConfigError(
                f"event_time is {name}, which is a date, but the batches are hours",
                where=model,
                why="the last batch of a day would replace the rows of the others",
                fix="set batch_size to 'day' or longer, or make the column a timestamp",
            )
        written = _LITERALS[type_]
        return f"{quote(name)} >= {written(self.start)} AND {quote(name)} < {written(self.end)}"

    def stored_range(self, type_: str) -> tuple[int, int]:
        """The least and the greatest value of the interval, as Iceberg stores them.

        :param type_: the Spark type of the column, one that ``condition`` accepts.
        """
        days = type_ == "date"
        step = timedelta(days=1) if days else timedelta(microseconds=1)
        return (self.start - _EPOCH) // step, (self.end - _EPOCH) // step - 1

    def is_whole(self, sample: Interval, now: datetime) -> bool:
        """Whether a sample has all rows of this interval that exist by now.

        The end of a relative sample, such as ``3 days``, is the start of the command.
        """
        return sample.start <= self.start and min(self.end, now - _DURATION_OF_A_START) <= sample.end

    def is_local(self, columns: Sequence[tuple[str, str]]) -> bool:
        """Whether the event-time column has no time zone, so that its instants depend on the session."""
        there = self._column(columns)
        return there is not None and there.type in ("date", "timestamp_ntz")

    def require_same_batches(
        self,
        model: str,
        produced: Sequence[tuple[str, str]],
        stored: Sequence[tuple[str, str]],
        query: Callable[[str], Sequence[tuple[Any, ...]]],
    ) -> None:
        """Require that each row belongs to the same batch by the query's event time and by the stored one.

        The query is restricted by its own type, the stored interval by the table's. Pairs of types that a
        table does not store are left to the check of the columns.

        :param produced: name and Spark type of the query's columns.
        :param stored: those of the table's columns.
        :param query: runs a query in the session, whose time zone decides when a date begins.
        :raises SchemaChanged: stored rows would belong to another batch than the query's, or to none.
        """
        one, other = self._column(produced), self._column(stored)
        rebuild = f"rebuild the table: dbt run --full-refresh --select {model}"
        if other is None or other.type not in _LITERALS:
            there = "does not have" if other is None else f"stores as {other.type}"
            raise SchemaChanged(
                f"event_time is {self.event_time}, which the table {there}",
                where=model,
                why="the stored rows have no time, so no batch would replace them",
                fix=rebuild,
            )
        if one is None or (one.type, other.type) != ("date", "timestamp"):
            return
        # Dates are stored in order, so all are in their batch if those at both ends are.
        kept = (
            f"CAST({_LITERALS['date'](at)} AS TIMESTAMP) >= {_LITERALS['timestamp'](at)}" for at in self._ends
        )
        ((zone, is_same),) = query(f"SELECT current_timezone(), {' AND '.join(kept)}")
        if not is_same:
            raise SchemaChanged(
                f"event_time is {one.name}, which is date in the query and timestamp in the table",
                where=model,
                why=f"the table stores a date as midnight in {zone}, the session's time zone. That is before "
                "midnight in UTC, in the interval of another batch",
                fix=f"return a timestamp from the model, set spark.sql.session.timeZone to UTC, or {rebuild}",
            )

    def restrict(self, sql: str, condition: str) -> str:
        """Restrict a query to rows of the interval. Rows outside of it belong to other batches."""
        return f"SELECT *\nFROM (\n{sql}\n)\nWHERE {condition}"

    @property
    def _ends(self) -> tuple[datetime, datetime]:
        return self.start, self.end

    def _column(self, columns: Sequence[tuple[str, str]]) -> ColumnInfo | None:
        """The event-time column, if it is one of the columns."""
        wanted = self.event_time.lower()
        return next((ColumnInfo(*column) for column in columns if column[0].lower() == wanted), None)


def batch_interval(model: Mapping[str, Any]) -> Interval | None:
    """The interval of the current batch; ``None`` for any strategy other than ``microbatch``.

    :raises ConfigError: dbt created no batches.
    """
    if choose_strategy(model["name"], model["config"]) != "microbatch":
        return None
    batch = model.get("batch")
    if not batch:
        raise ConfigError(
            "a microbatch model was run without a batch",
            where=model["name"],
            why="dbt creates batches only in dbt run, dbt build and dbt retry",
            fix="use one of these commands",
        )
    return Interval.of(model["config"]["event_time"], batch["event_time_start"], batch["event_time_end"])


def filtered_upstreams(model: Mapping[str, Any], graph: Mapping[str, Any]) -> list[str]:
    """The names of the upstreams of a model that dbt filters by the batch.

    They have an ``event_time``.

    :param graph: dbt's ``graph``: ``nodes`` and ``sources`` by their unique ids.
    """
    known = {**graph.get("nodes", {}), **graph.get("sources", {})}
    read = [known[one] for one in model["depends_on"]["nodes"] if one in known]
    return [node["name"] for node in read if (node.get("config") or {}).get("event_time")]


def refuse_local_time(model: str, event_time: str, zone: str, filtered: Sequence[str]) -> None:
    """Refuse a local event time over filtered upstreams in a session that is not UTC.

    :raises ConfigError: upstreams would be filtered by instants and the rows of the model by local times, so
        some rows would belong to no batch.
    """
    if zone in _UTC_ZONES:
        return
    raise ConfigError(
        f"event_time is {event_time}, a column without a time zone, and the session's time zone is {zone}",
        where=model,
        why=f"a batch is an interval in UTC: {', '.join(filtered)} would be filtered by UTC, the model's own "
        f"rows by the time in {zone}, and rows between the two would be in no batch",
        fix="make it a TIMESTAMP column, set spark.sql.session.timeZone to UTC, or remove event_time from "
        "what the model reads",
    )


def refuse_pull(model: Mapping[str, Any]) -> None:
    """Refuse an incremental pull in a microbatch or automatic model.

    :raises ConfigError: a pull consumes a version once, but a microbatch model runs once per batch, and an
        automatic one determines itself what it reads.
    """
    if is_automatic(model["config"]):
        raise ConfigError(
            "incremental_pull() in a model with the strategy 'auto'",
            where=model["name"],
            why="the strategy determines the changes itself",
            fix="write ref() instead, or use incremental_strategy='upsert'",
        )
    if model["config"].get("incremental_strategy") == "microbatch":
        raise ConfigError(
            "incremental_pull() cannot be used with the strategy 'microbatch'",
            where=model["name"],
            why="a batch reads an interval of event time, not the changes since the last commit",
            fix="use ref(), or another strategy",
        )


def _utc(value: datetime | str) -> datetime:
    at = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
    return at.replace(tzinfo=timezone.utc) if at.tzinfo is None else at.astimezone(timezone.utc)
