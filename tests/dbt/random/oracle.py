"""What each materialization and strategy means, in plain Python.

Written from dbt's documentation and ``docs/reference/models.md``, not from the code: which rows a table holds
after a run, and which runs have to be refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
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
    listed,
    stored_rows,
)
from tests.dbt.random.project import (
    EVENT_TIME,
    KEYED,
    PLAIN,
    Batch,
    Interval,
    Model,
    Round,
    has_event_time,
)
from tests.dbt.random.snapshots import snapshot_taken
from tests.dbt.random.stored_values import NotExact, TooLarge, keep, require_carried_over, stored_type
from tests.dbt.random.values import instant


def expect(
    model: Model, before: Table | None, batch: Batch, round_: Round, poisoned: bool = False
) -> Expected:
    """What a run makes of a table.

    :raises Refused: it has to fail.
    """
    require_allowed(model, batch, round_)
    if model.kind == "view":
        types = {name: stored_type(one) for name, one in batch.types.items()}
        return Expected(Table(types, batch.dicts, form="view", is_partial=round_.is_partial))
    if model.kind == "seed":
        return Expected(Table(_seed_types(model, batch), [] if round_.empty else _seed_rows(batch)))
    if poisoned and batch.rows:
        raise Refused("a row fails while it is computed", by_spark=True)
    if model.kind == "snapshot":
        # With a part of the rows, a key that the part lacks is not a deleted one.
        return snapshot_taken(model, before, batch, ends_deleted=not round_.is_partial)
    if is_built(model, before, round_):
        return Expected(_built(model, batch))
    assert before is not None
    return _refreshed(model, before, batch, lambda evolved, rows: _write(model, evolved, rows, batch))


def is_built(model: Model, before: Table | None, round_: Round) -> bool:
    """Whether the run rebuilds the table, whatever exists there.

    :raises Refused: it would have to, but is not allowed to.
    """
    if before is None or model.kind == "table":
        return True
    form = "keyed" if model.is_keyed else "plain"
    if {before.form, form} == {"plain", "keyed"} and round_.is_partial and not rebuilds(model, round_):
        raise Refused("a table of the other form is not replaced by a part of the rows")
    if model.config.get("full_refresh") is False:
        if {before.form, form} == {"plain", "keyed"}:
            raise Refused("a table of the other form is not built anew with full_refresh: false")
        return before.form == "view"
    return before.form != form or rebuilds(model, round_)


def rebuilds(model: Model, round_: Round) -> bool:
    """Whether the run is a full refresh of a model. Its setting goes before the command's."""
    return bool(model.config.get("full_refresh", round_.full_refresh))


USED_BY = {
    "incremental_predicates": ("merge", "delete+insert"),
    "merge_update_columns": ("merge", "upsert"),
    "merge_exclude_columns": ("merge", "upsert"),
}
"""Settings, and the strategies that they have an effect on. With others they are an error."""


def require_allowed(model: Model, batch: Batch, round_: Round) -> None:
    """:raises Refused: by its settings or its contract the model must not run, whatever its rows are."""
    _require_settings(model)
    _require_contract(model, batch, round_)


def _require_settings(model: Model) -> None:
    idle = [name for name, kinds in USED_BY.items() if name in model.config and model.kind not in kinds]
    if model.kind in (*PLAIN, *KEYED) and idle:
        raise Refused(f"{idle} have no effect")


def _require_contract(model: Model, batch: Batch, round_: Round) -> None:
    declared = round_.contracts.get(model.name)
    if declared is None:
        return
    told = {one.name.lower(): one.type.lower() for one in declared}
    produced = {one.name.lower(): one.type.lower() for one in batch.columns}
    if model.is_keyed:
        told.pop("_action", None)
        produced.pop("_action", None)
    if told != produced:
        raise Refused("the query has other columns than the contract")


def _built(model: Model, batch: Batch) -> Table:
    types = {name: stored_type(one) for name, one in batch.types.items() if name != "_action"}
    empty = Table(
        types,
        [],
        partitions=frozenset(listed(model.config.get("partition_by"))),
        form="keyed" if model.is_keyed else "plain",
    )
    rows = stored_rows(batch, types)
    return _upserted(model, empty, rows) if model.is_keyed else replace(empty, rows=rows)


def as_read(model: Model, batch: Batch, round_: Round) -> Batch:
    """The batch as the model reads it in a round: from an upstream, at times only a part of it."""
    if model.source == "inline" or not round_.is_partial:
        return as_stored_upstream(model, batch)
    rows = () if round_.empty else batch.rows
    if round_.sample is not None and has_event_time(batch):
        place = [one.name for one in batch.columns].index(EVENT_TIME)
        first, end = map(dt.datetime.fromisoformat, round_.sample)
        type_ = batch.columns[place].type
        rows = tuple(row for row in rows if (at := row[place]) and first <= _event_time(at, type_) < end)
    return as_stored_upstream(model, replace(batch, rows=rows))


def _event_time(value: Any, type_: str) -> dt.datetime:
    """The instant of a value of an event time. A local one is one of the session's zone."""
    return value if type_ == "timestamp" else instant(_with_time(value))


def _with_time(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def as_stored_upstream(model: Model, batch: Batch) -> Batch:
    """The batch with the types that the model reads: a stored upstream has other types than its query."""
    if model.source not in ("table", "view"):
        return batch
    columns = tuple(replace(one, type=stored_type(one.type)) for one in batch.columns)
    return replace(batch, columns=columns)


# Columns


def _refreshed(
    model: Model, before: Table, batch: Batch, write: Callable[[Table, list[Row]], Table]
) -> Expected:
    evolved, may_refuse = evolve(model, before, batch)
    expected = Expected(write(evolved, stored_rows(batch, evolved.types)), may_refuse)
    if model.is_keyed or model.config.get("on_schema_change") != "sync_all_columns":
        return expected
    # Of a plain table, columns are dropped after the rows are written.
    whole, _ = evolve(model, before, batch, drops=False)
    return replace(expected, undropped=write(whole, stored_rows(batch, whole.types)))


# Strategies


def _write(model: Model, table: Table, rows: list[Row], batch: Batch) -> Table:
    if model.kind == "append":
        return replace(table, rows=[*table.rows, *rows])
    if model.kind == "merge":
        return _merged(model, table, rows, {one.name.lower() for one in batch.columns})
    if model.kind == "delete+insert":
        keys = {key for row in rows if None not in (key := key_of(model, table, row))}
        kept = [row for row in table.rows if key_of(model, table, row) not in keys or not allowed(model, row)]
        return replace(table, rows=[*kept, *rows])
    if model.kind == "insert_overwrite":
        parts = {partition_of(model, row) for row in rows}
        partitioned = bool(model.config.get("partition_by"))
        kept = [row for row in table.rows if partitioned and partition_of(model, row) not in parts]
        return replace(table, rows=[*kept, *rows])
    if model.kind == "keyed_overwrite":
        parts = {partition_of(model, row) for row in rows}
        partitioned = bool(model.config.get("partition_by")) and model.config.get("overwrite") != "table"
        kept = [row for row in table.rows if partitioned and partition_of(model, row) not in parts]
        return _upserted(model, replace(table, rows=kept), rows)
    assert model.kind == "upsert", model.kind
    return _upserted(model, table, rows, {one.name.lower() for one in batch.columns})


def allowed(model: Model, row: Row) -> bool:
    """Whether the incremental predicates let a row be changed. See ``PREDICATES``."""
    return all(PREDICATES[text](row) for text in listed(model.config.get("incremental_predicates")))


PREDICATES: dict[str, Callable[[Row], bool]] = {
    "DBT_INTERNAL_DEST.part >= 1": lambda row: row["part"] is not None and row["part"] >= 1,
    "DBT_INTERNAL_DEST.part = 0 or DBT_INTERNAL_DEST.part is null -- or so": lambda row: (
        row["part"] in (0, None)
    ),
    "DBT_INTERNAL_DEST.part <> 2": lambda row: row["part"] not in (2, None),
}
"""Predicates of random models, and what they mean."""

DELETES: dict[str, Callable[[Row], bool]] = {
    "part = 2": lambda row: row["part"] == 2,
    "part = 2 or part is null -- gone": lambda row: row["part"] in (2, None),
}
"""``delete_when`` of random models, and what it means."""

PARTITIONS: dict[str, Callable[[Row], Any]] = {
    "part": lambda row: row["part"],
    "day(at)": lambda row: None if row["at"] is None else str(row["at"])[:10],
    "month(at)": lambda row: None if row["at"] is None else str(row["at"])[:7],
}
"""``partition_by`` of random models, and the partition of a row."""


def partition_of(model: Model, row: Row) -> tuple[Any, ...]:
    return tuple(PARTITIONS[text](row) for text in listed(model.config.get("partition_by")))


def _merged(model: Model, table: Table, rows: list[Row], produced: set[str]) -> Table:
    """``MERGE``: a row of the table that several match is an error; what matches none is inserted."""
    changed = _changed_columns(model, table, produced)
    matched: set[int] = set()
    result = []
    for old in table.rows:
        key = key_of(model, table, old)
        found = [
            place
            for place, row in enumerate(rows)
            if None not in key and allowed(model, old) and key_of(model, table, row) == key
        ]
        if len(found) > 1:
            raise Refused(f"several rows match the key {key}", by_spark=True)
        matched |= set(found)
        new = {name: rows[found[0]][name] for name in changed} if found else {}
        result.append({**old, **new})
    inserted = [row for place, row in enumerate(rows) if place not in matched]
    return replace(table, rows=[*result, *inserted])


def _changed_columns(model: Model, table: Table, produced: set[str]) -> list[str]:
    update = {one.lower() for one in listed(model.config.get("merge_update_columns"))}
    exclude = {one.lower() for one in listed(model.config.get("merge_exclude_columns"))}
    return [
        name
        for name in table.types
        if name.lower() in produced and (name.lower() in update if update else name.lower() not in exclude)
    ]


def _upserted(model: Model, table: Table, rows: list[Row], produced: set[str] | None = None) -> Table:
    """A keyed table after upserts and deletes.

    :param produced: where some columns change only: what the batch has.
    """
    sequence = model.config.get("sequence_by")
    partial = [key for key in ("merge_update_columns", "merge_exclude_columns") if model.config.get(key)]
    current = {key_of(model, table, row): row for row in table.rows}
    memory = dict(table.memory)
    for key, row in _one_a_key(model, table, rows).items():
        is_delete = row.get("_action") == "D" or (
            model.config.get("delete_when") in DELETES and DELETES[model.config["delete_when"]](row)
        )
        if sequence is not None:
            rank = (row[sequence], is_delete)
            # Of one value a delete wins, then the later commit.
            if key in memory and memory[key] > rank:
                continue
            memory[key] = rank
        row = {name: value for name, value in row.items() if name != "_action"}
        if is_delete:
            current.pop(key, None)
        elif key in current and partial and produced is not None:
            changed = {*_changed_columns(model, table, produced), *([sequence] if sequence else [])}
            current[key] = {**current[key], **{name: row[name] for name in changed}}
        else:
            current[key] = row
    return replace(table, rows=list(current.values()), memory=memory)


def _one_a_key(model: Model, table: Table, rows: list[Row]) -> dict[Any, Row]:
    """:raises Refused: NULL in a key, or several rows of one that nothing orders."""
    orders = model.config.get("deduplicate_by")
    found: dict[Any, Row] = {}
    for row in rows:
        key = key_of(model, table, row)
        if None in key:
            raise Refused(f"NULL in the key {key}", by_rows=True)
        if model.config.get("sequence_by") and row[model.config["sequence_by"]] is None:
            raise Refused("no value in sequence_by", by_rows=True)
        if key not in found:
            found[key] = row
        elif orders is None:
            raise Refused(f"two rows of the key {key}", by_rows=True)
        elif is_greater(row[orders], found[key][orders]):
            found[key] = row
    return found


def with_late_row(model: Model, table: Table, row: Row) -> Table:
    """A keyed table with a row that another process upserts."""
    config = {name: value for name, value in model.config.items() if name != "delete_when"}
    return _upserted(replace(model, config=config), table, [row])


def refreshed_with_late_row(model: Model, before: Table, after: Table, row: Row) -> Expected:
    """A keyed table that was refreshed in full while a row landed in the earlier one.

    :raises Refused: the new table does not hold the row, and nothing is replaced.
    """
    try:
        carried = carried_over(model, before, row, after.types)
    except NotExact as error:
        raise Refused(f"the new table does not hold a late row: {error}", by_late_row=True) from error
    except TooLarge as error:
        raise Refused(f"a late row: {error}", by_spark=True, by_late_row=True) from error
    return Expected(with_late_row(model, after, carried), has_other_key_types(model, before, after.types))


def carried_over(model: Model, before: Table, row: Row, types: dict[str, str]) -> Row:
    """The row of a table as its successor holds it: NULL in new columns, and without the lost ones.

    :raises NotExact: / :raises TooLarge: it does not.
    """
    names = {name.lower(): name for name in before.types}
    found: Row = {}
    for name, type_ in types.items():
        old = names.get(name.lower())
        if old is not None:
            require_carried_over(before.types[old], type_)
        found[name] = None if old is None else keep(row[old], before.types[old], type_)
    return found


def has_other_key_types(model: Model, before: Table, types: dict[str, str]) -> bool:
    """Whether the key has other types: two earlier keys may be one, so that both outcomes are right."""
    now = {name.lower(): type_ for name, type_ in types.items()}
    then = {name.lower(): type_ for name, type_ in before.types.items()}
    return any(now.get(key.lower()) != then.get(key.lower()) for key in model.keys)


# Microbatch


def expect_batch(
    model: Model,
    before: Table | None,
    batch: Batch,
    interval: Interval,
    *,
    rebuild: bool,
    zone: str = "UTC",
    poisoned: bool = False,
) -> Expected:
    """What one batch makes of a table: its interval is replaced. A local time is compared as one of UTC.

    :param poisoned: whether a row of this batch fails while it is computed.
    :raises Refused: it has to fail.
    """
    event_time = model.config["event_time"]
    place = [one.name for one in batch.columns].index(event_time)
    type_ = batch.columns[place].type

    def is_in(value: Any) -> bool:
        return value is not None and interval[0] <= _with_time(value) < interval[1]

    of_batch = replace(batch, rows=tuple(row for row in batch.rows if is_in(row[place])))
    if type_ == "date" and model.config["batch_size"] == "hour":
        raise Refused("a date is in each hour of its day")
    if model.source != "inline" and zone != "UTC" and type_ != "timestamp":
        raise Refused("upstreams are filtered by UTC, and the model's rows by local times")
    stored = type_ if before is None or rebuild else before.types[event_time]
    if (type_, stored) == ("date", "timestamp") and any(instant(end) < end for end in interval):
        raise Refused("a date is stored in the interval of another batch")
    if poisoned and of_batch.rows:
        raise Refused("a row fails while it is computed", by_spark=True)
    # Rows of other days may be computed before they are left out.
    may_refuse = poisoned and bool(batch.rows)
    if before is None or rebuild:
        return Expected(_built(model, of_batch), may_refuse)

    def write(table: Table, rows: list[Row]) -> Table:
        kept = [row for row in table.rows if not is_in(row[event_time])]
        if model.is_keyed:
            return _upserted(model, replace(table, rows=kept), rows)
        return replace(table, rows=[*kept, *rows])

    expected = _refreshed(model, before, of_batch, write)
    return replace(expected, may_refuse=expected.may_refuse or may_refuse)


# Seeds


def _seed_types(model: Model, batch: Batch) -> dict[str, str]:
    declared = {name.lower(): one for name, one in (model.config.get("column_types") or {}).items()}
    if not declared.keys() <= {name.lower() for name in batch.types}:
        raise Refused("column_types names a column that the file lacks")
    return {name: stored_type(declared.get(name.lower(), one)) for name, one in batch.types.items()}


def _seed_rows(batch: Batch) -> list[Row]:
    """The rows of the file. A time in it is one of the session's zone."""
    return [
        {
            one.name: instant(value) if one.type == "timestamp" and value is not None else value
            for one, value in zip(batch.columns, row, strict=True)
        }
        for row in batch.rows
    ]
