"""What a snapshot holds after a run, for each strategy and each ``hard_deletes``, in plain Python."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.dbt.random.columns import (
    Expected,
    Refused,
    Row,
    Table,
    evolve,
    is_greater,
    key_of,
    stored_rows,
)
from tests.dbt.random.project import Batch, Model
from tests.dbt.random.stored_values import NotExact, keep, require_exact, stored_type
from tests.dbt.random.values import comparable, instant, local

LAST_DAY = dt.datetime(9999, 12, 31)
CURRENT_END = f"timestamp'{LAST_DAY}Z'"
"""``dbt_valid_to_current`` of some snapshots."""


def snapshot_taken(
    model: Model, before: Table | None, batch: Batch, *, ends_deleted: bool = True
) -> Expected:
    """What a run makes of a snapshot.

    :param ends_deleted: whether the record of a key that the rows lack ends.
    :raises Refused: it has to fail.
    """
    check = model.config.get("check_cols")
    names = {one.name.lower() for one in batch.columns}
    if check not in (None, "all") and any(name.lower() not in names for name in check):
        raise Refused("check_cols names a column that the query lacks")
    if before is None:
        types = {name: stored_type(one) for name, one in batch.types.items()}
        end = _current_end(model)
        time = _time_of(model, types)
        _require_a_time(model, time)
        first = Table(types, stored_rows(batch, types), current_end=end)
        _require_one_a_key(model, first, first.rows)
        starts = tuple(_start(model, row, types, time) for row in first.rows)
        # A local time and an end that is a TIMESTAMP are TIMESTAMPs in one column.
        return Expected(replace(first, starts=starts, start_type=time, end_type="timestamp" if end else time))
    is_open = len(before.ended) < len(before.rows)
    if before.current_end and before.current_end != _current_end(model) and is_open:
        raise Refused("current records have another end")
    if _current_end(model) not in ("", before.current_end) and before.end_type == "date" and not _is_a_day():
        raise Refused("current records would have another end than the one that is set")
    table, may_refuse = evolve(model, replace(before, current_end=_current_end(model)), batch)
    _require_fitting_times(model, table, _time_of(model, table.types))
    rows = stored_rows(batch, table.types)
    _require_one_a_key(model, table, rows)
    is_new = [
        one.name for one in batch.columns if one.name.lower() not in {name.lower() for name in before.types}
    ]
    checked = list(batch.types) if check == "all" else list(check or [])
    added = any(name.lower() in {one.lower() for one in is_new} for name in checked)
    taken = _taken(model, table, rows, checked, added, ends_deleted)
    return Expected(taken, may_refuse)


TIMES = ("date", "timestamp", "timestamp_ntz")
_CAST = re.compile(r"cast\(`(\w+)` as (\w+)\)")
"""The expressions that some snapshots have as ``updated_at``."""


def _time_of(model: Model, types: dict[str, str]) -> str:
    """The type of ``updated_at``, of rows as the snapshot stores them; without it, of the time of the run."""
    updated_at = model.config.get("updated_at")
    if updated_at is None:
        return "timestamp"
    cast = _CAST.fullmatch(updated_at)
    return cast[2] if cast else types[updated_at]


def _start(model: Model, row: Row, types: dict[str, str], stored: str) -> Any:
    """The start of the record of a row. Times of runs are later than all times of rows."""
    updated_at = model.config.get("updated_at")
    if updated_at is None:
        return _now(stored)
    cast = _CAST.fullmatch(updated_at)
    name, type_ = (cast[1], cast[2]) if cast else (updated_at, types[updated_at])
    return keep(_cast(row[name], types[name], type_), type_, stored)


def _now(type_: str) -> Any:
    now = dt.datetime(2026, 1, 1)
    return now.date() if type_ == "date" else now


def _cast(value: Any, old: str, new: str) -> Any:
    """What ``cast`` makes of a time."""
    if value is None or old == new:
        return value
    if old == "date":
        return keep(value, old, new)
    naive = local(value) if old == "timestamp" else value
    return {"date": naive.date(), "timestamp_ntz": naive, "timestamp": instant(naive)}[new]


def _require_a_time(model: Model, time: str) -> None:
    if time not in TIMES and model.config.get("hard_deletes", "ignore") != "ignore":
        raise Refused("the time of a deletion is stored in the same column as updated_at")


def _require_fitting_times(model: Model, table: Table, time: str) -> None:
    """:raises Refused: the columns of starts and ends would change the times of this run."""
    _require_a_time(model, time)
    ends = [time]
    if model.config.get("hard_deletes", "ignore") != "ignore":
        ends.append(table.start_type)
    try:
        require_exact(time, table.start_type)
        for type_ in ends:
            # The end of current records made TIMESTAMPs of the ends in the first run.
            if not (table.current_end and (type_, table.end_type) == ("timestamp_ntz", "timestamp")):
                require_exact(type_, table.end_type)
    except NotExact as error:
        raise Refused(f"updated_at: {error}") from error


def _current_end(model: Model) -> str:
    return str(model.config.get("dbt_valid_to_current", ""))


def _is_a_day() -> bool:
    """Whether ``CURRENT_END`` is the first instant of a day in the session's zone."""
    return instant(LAST_DAY) == LAST_DAY


def _require_one_a_key(model: Model, table: Table, rows: list[Row]) -> None:
    keys = Counter(key_of(model, table, row) for row in rows)
    if any(count > 1 for count in keys.values()):
        raise Refused("rows of the snapshot share a key", by_rows=True)


def _taken(
    model: Model, table: Table, rows: list[Row], checked: list[str], added: bool, ends_deleted: bool
) -> Table:
    names = {name.lower(): name for name in table.types}
    result = [dict(row) for row in table.rows]
    ended, deleted, starts = set(table.ended), set(table.deleted), list(table.starts)
    current = {key_of(model, table, row): place for place, row in enumerate(result) if place not in ended}

    def has_changed(place: int, new: Row) -> bool:
        old = result[place]
        if model.config["strategy"] == "timestamp":
            return is_greater(_start(model, new, table.types, table.start_type), starts[place])
        columns = [names[name.lower()] for name in checked]
        return added or any(
            comparable(old[name], table.types[name]) != comparable(new[name], table.types[name])
            for name in columns
        )

    found = set()
    for row in rows:
        key = key_of(model, table, row)
        found.add(key)
        if key in current:
            place = current[key]
            if place not in deleted and not has_changed(place, row):
                continue
            ended.add(place)
        current[key] = len(result)
        result.append(row)
        starts.append(_start(model, row, table.types, table.start_type))
    mode = model.config.get("hard_deletes", "ignore")
    for key, place in list(current.items()):
        if key in found or mode == "ignore" or not ends_deleted or place in deleted:
            continue
        ended.add(place)
        if mode == "new_record":
            deleted.add(len(result))
            result.append(dict(result[place]))
            starts.append(_now(table.start_type))
    return replace(
        table, rows=result, deleted=frozenset(deleted), ended=frozenset(ended), starts=tuple(starts)
    )
