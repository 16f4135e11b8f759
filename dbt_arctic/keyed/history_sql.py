"""SQL that computes the intervals of a history from events.

The intervals of a key are a function of the set of its events, and stored rows remember the events that their
columns do not show, so the result does not depend on the order in which events arrive. This module knows
nothing about where events come from.
"""

from __future__ import annotations

from dbt_arctic.keyed.checks import EXACT_JSON, raise_error_sql, shown_row
from dbt_arctic.keyed.history import ADDED_BY_SOURCES, CLOSED, DELETED, LAST, VERSION, History, first_of
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import equal_value
from dbt_arctic.keyed.table import ACTION

_STORED, _WAS, _TIMES, _WAS_LAST = "_arctic_is_stored", "_arctic_was", "_arctic_times", "_arctic_was_last"
_OPENS, _RUN, _FRESH, _BEFORE = "_arctic_opens", "_arctic_run", "_arctic_fresh", "_arctic_before_"
_RUN_END, _RUN_END_AT, _RUN_END_FRESH = "_arctic_end", "_arctic_end_at", "_arctic_end_fresh"
_END = "_arctic_end_of_"
_NEXT, _NEXT_AT, _NEXT_DELETED, _NEXT_FRESH = (
    "_arctic_next",
    "_arctic_next_at",
    "_arctic_next_deleted",
    "_arctic_next_fresh",
)
_BEFORE_FRESH = "_arctic_before_fresh"


def intervals(history: History, new: str, stored: str | None = None) -> str:
    """SQL of the rows to write: ``history.stored_columns`` and ``_action``.

    A row is written if it differs from the stored one. ``D`` hides a row: a key had no interval that began
    there, but the event is remembered.

    :param new: SQL of the new events, as ``events_sql`` returns.
    :param stored: SQL of the stored rows of the same keys with ``_action``, those that are hidden included;
        ``None`` for a table that is built.
    """
    all_events = _new(history, new)
    if stored is not None:
        all_events += f"\n  UNION ALL\n{_remembered(history, stored)}"
    return f"""\
WITH all_events AS (
{all_events}
), ranked_events AS (
{_ranked(history)}
), distinct_events AS (
{_distinct(history)}
), ordered_events AS (
{_ordered(history)}
), numbered_events AS (
  SELECT *,
    CAST(sum({quote(_OPENS)}) OVER (PARTITION BY {quote_all(history.key)} ORDER BY {quote(history.sequence)}
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS INT) AS {quote(_RUN)}
  FROM ordered_events
), closed_intervals AS (
{_closed(history)}
)
{_written(history)}"""


def _new(history: History, new: str) -> str:
    sequence_type = history.columns[history.sequence]
    return (
        f"  SELECT {quote_all(history.columns)}, {quote(DELETED)}, 0 AS {quote(_STORED)},\n"
        f"    CAST(NULL AS STRING) AS {quote(_WAS)}, CAST(NULL AS BIGINT) AS {quote(_TIMES)}, "
        f"CAST(NULL AS {sequence_type}) AS {quote(_WAS_LAST)}\n"
        f"  FROM (\n{new}\n  )"
    )


def _remembered(history: History, stored: str) -> str:
    """The events that stored rows are known to come from.

    They are the one that opened the interval, the latest one, and the delete that closed it.
    """
    kind, sequence, time = quote("_arctic_kind"), quote(history.sequence), quote(history.time)
    last, closed, meta = quote(LAST), quote(CLOSED), history.meta
    closing = "" if history.records_deletes else f" WHEN 3 THEN {closed}"
    selected = []
    for name in history.columns:
        value = column = quote(name)
        if name == history.sequence:
            value = f"CASE {kind} WHEN 2 THEN {last}{closing} ELSE {sequence} END"
        elif name == history.time:
            closing_at = "" if history.records_deletes else f" WHEN 3 THEN {quote(meta.valid_to)}"
            value = f"CASE {kind} WHEN 2 THEN {quote(meta.updated_at)}{closing_at} ELSE {time} END"
        elif name in history.ignored:
            first = f"WHEN {kind} = 1 AND {last} IS NOT NULL THEN {quote(first_of(name))}"
            value = f"CASE {first} WHEN {kind} < 3 THEN {column} END"
        elif name in history.tracked:
            value = f"CASE WHEN {kind} < 3 THEN {column} END"
        selected.append(value if value == column else f"{value} AS {column}")
    known = [f"{kind} = 1", f"({kind} = 2 AND {last} IS NOT NULL)"]
    if not history.records_deletes:
        known.append(f"({kind} = 3 AND {closed} IS NOT NULL)")
    return f"""\
  SELECT {", ".join(selected)},
    CASE WHEN {kind} = 3 THEN true ELSE {quote(DELETED)} END AS {quote(DELETED)}, 1 AS {quote(_STORED)},
    CASE WHEN {kind} = 1 THEN {quote(ACTION)} END AS {quote(_WAS)},
    CASE WHEN {kind} = 1 THEN {quote(VERSION)} END AS {quote(_TIMES)},
    CASE WHEN {kind} = 1 THEN coalesce({last}, {sequence}) END AS {quote(_WAS_LAST)}
  FROM (
    SELECT *, explode(array(1, 2, 3)) AS {kind}
    FROM (
{stored}
    )
  )
  WHERE {" OR ".join(known)}"""


def _ranked(history: History) -> str:
    """Events with their place among those of the same key and sequence.

    A delete wins, then the greatest ``deduplicate_by``.
    """
    place = quote_all(history.row_key)
    order = ", ".join(
        [f"{quote(DELETED)} DESC", *(f"({one}) DESC NULLS LAST" for one in history.deduplicate_by)]
    )
    return f"""\
  SELECT *, rank() OVER (PARTITION BY {place} ORDER BY {order}) AS `_arctic_rank`,
    count(*) OVER (PARTITION BY {place}) AS `_arctic_copies`
  FROM all_events"""


def _distinct(history: History) -> str:
    """One event for each key and sequence, with what is stored of its row."""
    place = quote_all(history.row_key)
    compared = [name for name in history.values if not name.startswith(ADDED_BY_SOURCES)]
    if history.time != history.sequence:
        compared.append(history.time)
    deleted = quote(DELETED)
    if compared:
        row = f"to_json(struct({quote_all(compared)}), {EXACT_JSON})"
        text = f"CASE WHEN `_arctic_copies` > 1 AND `_arctic_rank` = 1 AND NOT {deleted} THEN {row} END"
        error = raise_error_sql(
            "AR-304",
            "several events of a key have the same sequence and different values: ",
            shown_row(history.row_key),
            history.model,
            f"it is unknown which of them comes later; {history.sequence} is the same",
            "set deduplicate_by to a column that orders them, or choose a finer sequence_by",
        )
        deleted = (
            f"CASE WHEN `_arctic_least` <> `_arctic_greatest` THEN CAST({error} AS BOOLEAN) "
            f"ELSE {deleted} END"
        )
    else:
        text = "CAST(NULL AS STRING)"
    return f"""\
  SELECT {quote_all(history.columns)}, {deleted} AS {quote(DELETED)}, 1 - {quote(_STORED)} AS {quote(_FRESH)},
    {quote(_WAS)}, {quote(_TIMES)}, {quote(_WAS_LAST)}
  FROM (
    SELECT {quote_all(history.columns)}, {quote(DELETED)}, {quote(_STORED)},
      max({quote(_WAS)}) OVER (PARTITION BY {place}) AS {quote(_WAS)},
      max({quote(_TIMES)}) OVER (PARTITION BY {place}) AS {quote(_TIMES)},
      max({quote(_WAS_LAST)}) OVER (PARTITION BY {place}) AS {quote(_WAS_LAST)},
      min({text}) OVER (PARTITION BY {place}) AS `_arctic_least`,
      max({text}) OVER (PARTITION BY {place}) AS `_arctic_greatest`,
      row_number() OVER (
        PARTITION BY {place} ORDER BY `_arctic_rank`, {quote(_STORED)} DESC) AS `_arctic_choice`
    FROM ranked_events
  )
  WHERE `_arctic_choice` = 1"""


def _ordered(history: History) -> str:
    """Whether each event opens an interval: it changes a tracked column, deletes, or inserts again."""
    over = f"OVER (PARTITION BY {quote_all(history.key)} ORDER BY {quote(history.sequence)})"
    deleted = quote(DELETED)
    same = [
        equal_value(quote(name), f"lag({quote(name)}) {over}", history.columns[name])
        for name in history.tracked
    ]
    before = []
    if history.records_deletes:
        before = [f"lag({quote(name)}) {over} AS {quote(_BEFORE + name)}" for name in history.values]
        before.append(f"lag({quote(_FRESH)}) {over} AS {quote(_BEFORE_FRESH)}")
    return f"""\
  SELECT {", ".join(["*", *before])},
    CASE WHEN lag({deleted}) {over} IS NULL OR {deleted} <> lag({deleted}) {over} THEN 1
      WHEN {deleted} THEN 0
      WHEN {" AND ".join(same) or "true"} THEN 0 ELSE 1 END AS {quote(_OPENS)}
  FROM distinct_events"""


def _closed(history: History) -> str:
    """The latest event of each interval, and the event that closes it.

    A frame over the next interval instead of all following rows, which Spark would read again for each row.
    """
    key, sequence, run = quote_all(history.key), quote(history.sequence), quote(_RUN)
    whole = (
        f"OVER (PARTITION BY {key}, {run} ORDER BY {sequence} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
    )
    following = f"OVER (PARTITION BY {key} ORDER BY {run} RANGE BETWEEN 1 FOLLOWING AND 1 FOLLOWING)"
    opening = f"{quote(_OPENS)} = 1"
    ends = "".join(
        f"last_value({quote(name)}) {whole} AS {quote(_END + name)},\n    " for name in history.ignored
    )
    return f"""\
  SELECT *,
    last_value({sequence}) {whole} AS {quote(_RUN_END)},
    last_value({quote(history.time)}) {whole} AS {quote(_RUN_END_AT)},
    last_value({quote(_FRESH)}) {whole} AS {quote(_RUN_END_FRESH)},
    {ends}min({sequence}) {following} AS {quote(_NEXT)},
    min(CASE WHEN {opening} THEN {quote(history.time)} END) {following} AS {quote(_NEXT_AT)},
    max(CASE WHEN {quote(DELETED)} THEN 1 ELSE 0 END) {following} AS {quote(_NEXT_DELETED)},
    max(CASE WHEN {opening} THEN {quote(_FRESH)} END) {following} AS {quote(_NEXT_FRESH)}
  FROM numbered_events"""


def _written(history: History) -> str:
    """The rows that differ from the stored ones, of intervals and of events that must be remembered."""
    deleted, sequence, opening = quote(DELETED), quote(history.sequence), f"{quote(_OPENS)} = 1"
    is_later = f"{quote(_RUN)} > 1"
    exists = f"(NOT {deleted} OR {is_later})" if history.records_deletes else f"NOT {deleted}"
    shown, end = quote("_arctic_is_shown"), quote(_RUN_END)
    carried = f"{exists} AND {sequence} = {end}"
    if not history.records_deletes:
        # A delete that closes an interval is a part of its row.
        carried = f"({carried}) OR ({deleted} AND {opening} AND {is_later})"
    changed = [
        f"coalesce({quote(_WAS)}, 'D') = 'D'",
        f"{quote(_FRESH)} = 1",
        f"{quote(_RUN_END_FRESH)} = 1",
        f"coalesce({quote(_NEXT_FRESH)}, 0) = 1",
        f"{end} <> {quote(_WAS_LAST)}",
    ]
    if history.records_deletes:
        changed.append(f"({deleted} AND {quote(_BEFORE_FRESH)} = 1)")
    hidden = (
        f"coalesce({quote(_WAS)}, '') = 'U' OR ({quote(_WAS)} IS NULL AND NOT ({carried})) "
        f"OR ({quote(_WAS)} = 'D' AND {quote(_FRESH)} = 1)"
    )
    columns = ",\n  ".join(f"{value} AS {quote(name)}" for name, value in _columns(history).items())
    return f"""\
SELECT {columns},
  CASE WHEN {shown} THEN 'U' ELSE 'D' END AS {quote(ACTION)}
FROM (
  SELECT *, ({opening} AND {exists}) AS {shown}
  FROM closed_intervals
)
WHERE ({shown} AND ({" OR ".join(changed)}))
  OR (NOT {shown} AND ({hidden}))"""


def _columns(history: History) -> dict[str, str]:
    """The SQL of each stored column."""
    shown, deleted, end = quote("_arctic_is_shown"), quote(DELETED), quote(_RUN_END)
    time, meta = quote(history.time), history.meta
    is_longer = f"{shown} AND {end} <> {quote(history.sequence)}"
    found = {}
    for name in history.columns:
        latest = quote(_END + name) if name in history.ignored else quote(name)
        if name in history.values and history.records_deletes:
            latest = f"CASE WHEN {deleted} THEN {quote(_BEFORE + name)} ELSE {latest} END"
        is_own = latest == quote(name)
        found[name] = latest if is_own else f"CASE WHEN {shown} THEN {latest} ELSE {quote(name)} END"
    until = f"coalesce({quote(_NEXT_AT)}, CAST(({history.open_until}) AS {history.columns[history.time]}))"
    described = {
        meta.scd_id: history.scd_id,
        meta.updated_at: quote(_RUN_END_AT),
        meta.valid_from: time,
        meta.valid_to: until,
        meta.is_deleted: f"CASE WHEN {deleted} THEN 'True' ELSE 'False' END",
    }
    found |= {name: f"CASE WHEN {shown} THEN {described[name]} END" for name in history.described}
    found[VERSION] = f"CAST(coalesce({quote(_TIMES)}, 0) + 1 AS BIGINT)"
    found[DELETED] = deleted
    found[LAST] = f"CASE WHEN {is_longer} THEN {end} END"
    if not history.records_deletes:
        found[CLOSED] = f"CASE WHEN {shown} AND {quote(_NEXT_DELETED)} = 1 THEN {quote(_NEXT)} END"
    found |= {first_of(name): f"CASE WHEN {is_longer} THEN {quote(name)} END" for name in history.ignored}
    return {name: found[name] for name in history.stored_columns}
