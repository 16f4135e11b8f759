"""What a snapshot holds after a run, for each strategy and each ``hard_deletes``, in plain Python."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace

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
from tests.dbt.random.stored_values import stored_type
from tests.dbt.random.values import comparable, instant

LAST_DAY = dt.datetime(9999, 12, 31)
CURRENT_END = f"timestamp'{LAST_DAY}Z'"
"""``dbt_valid_to_current`` of some snapshots."""


def snapshot_taken(model: Model, before: Table | None, batch: Batch) -> Expected:
    """What a run makes of a snapshot.

    :raises Refused: it has to fail.
    """
    check = model.config.get("check_cols")
    names = {one.name.lower() for one in batch.columns}
    if check not in (None, "all") and any(name.lower() not in names for name in check):
        raise Refused("check_cols names a column that the query lacks")
    if before is None:
        types = {name: stored_type(one) for name, one in batch.types.items()}
        end = _current_end(model)
        days = not end and model.config["strategy"] == "timestamp" and types["at"] == "date"
        first = Table(types, stored_rows(batch, types), current_end=end, ends_are_days=days)
        _require_one_a_key(model, first, first.rows)
        return Expected(first)
    is_open = len(before.ended) < len(before.rows)
    if before.current_end and before.current_end != _current_end(model) and is_open:
        raise Refused("current records have another end")
    if _current_end(model) not in ("", before.current_end) and before.ends_are_days and not _is_a_day():
        raise Refused("current records would have another end than the one that is set")
    table, may_refuse = evolve(model, replace(before, current_end=_current_end(model)), batch)
    rows = stored_rows(batch, table.types)
    _require_one_a_key(model, table, rows)
    is_new = [
        one.name for one in batch.columns if one.name.lower() not in {name.lower() for name in before.types}
    ]
    checked = list(batch.types) if check == "all" else list(check or [])
    added = any(name.lower() in {one.lower() for one in is_new} for name in checked)
    taken = _taken(model, table, rows, checked, added)
    return Expected(taken, may_refuse)


def _current_end(model: Model) -> str:
    return str(model.config.get("dbt_valid_to_current", ""))


def _is_a_day() -> bool:
    """Whether ``CURRENT_END`` is the first instant of a day in the session's zone."""
    return instant(LAST_DAY) == LAST_DAY


def _require_one_a_key(model: Model, table: Table, rows: list[Row]) -> None:
    keys = Counter(key_of(model, table, row) for row in rows)
    if any(count > 1 for count in keys.values()):
        raise Refused("rows of the snapshot share a key", by_rows=True)


def _taken(model: Model, table: Table, rows: list[Row], checked: list[str], added: bool) -> Table:
    names = {name.lower(): name for name in table.types}
    result = [dict(row) for row in table.rows]
    ended, deleted = set(table.ended), set(table.deleted)
    current = {key_of(model, table, row): place for place, row in enumerate(result) if place not in ended}

    def has_changed(old: Row, new: Row) -> bool:
        if model.config["strategy"] == "timestamp":
            return is_greater(new["at"], old["at"])
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
            if place not in deleted and not has_changed(result[place], row):
                continue
            ended.add(place)
        current[key] = len(result)
        result.append(row)
    mode = model.config.get("hard_deletes", "ignore")
    for key, place in list(current.items()):
        if key in found or mode == "ignore" or place in deleted:
            continue
        ended.add(place)
        if mode == "new_record":
            deleted.add(len(result))
            result.append(dict(result[place]))
    return replace(table, rows=result, deleted=frozenset(deleted), ended=frozenset(ended))
