"""What a run does with change events before it writes: counts what is no change, and applies a truncation."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_arctic.errors import ConfigError, SourceTruncated
from dbt_arctic.sources.change_settings import ChangeEvents
from dbt_arctic.sources.change_sql import Delivery, rows_of_events, summary_of
from dbt_arctic.sources.quarantine import cache_statement
from dbt_arctic.store.context import Context

TRUNCATED = "The source {}: its table was truncated. Rows of older events are left out."
_COUNTED = ("change", "truncate", "alter")


@dataclass(frozen=True)
class TakenChanges:
    """The rows of change events that a run reads.

    :param sql: their SQL.
    :param notes: what else the messages are.
    :param truncated_at: the place of the last truncation of the table; empty for none.
    """

    sql: str
    notes: tuple[str, ...]
    truncated_at: str = ""


def take_changes(
    context: Context,
    events: ChangeEvents,
    delivery: Delivery,
    view: str,
    first: bool,
    model: str,
    known: str = "",
) -> TakenChanges:
    """Plan the rows of a run that consumes change events. The messages are read once and kept for the write.

    :param view: over the messages.
    :param first: whether the model has consumed nothing of the source, so that its table has no rows of it.
    :param known: the place of a truncation that the model has applied; older events change nothing.
    :raises SourceTruncated: the table was truncated, and the model has older rows; or it is not known which
        events are older.
    :raises ConfigError: the messages are events of several tables.
    """
    context.run("stage", cache_statement(view))
    counts: dict[str, int] = {}
    truncated_at, unordered, names = "", 0, set()
    for kind, number, tables, least, greatest, place, without_place in context.query(
        summary_of(events, delivery, view)
    ):
        counts[str(kind)] = int(number)
        if kind == "change" and int(tables) > 1:
            names = {str(least), str(greatest)}
        if kind == "truncate":
            truncated_at, unordered = str(place or ""), int(without_place)
    if names:
        raise ConfigError(
            f"the source {delivery.name} has events of several tables: {', '.join(sorted(names))}",
            where=model,
            why="rows of different tables would get the same keys",
            fix=f"set table in its meta.arctic, for instance table: {min(names)}; declare one source for "
            "each table",
        )
    notes = [
        f"The source {delivery.name}: {number:,} {_called(kind, number)} ignored."
        for kind, number in sorted(counts.items())
        if kind not in (*_COUNTED, "None")
    ]
    known = "" if events.order == "delivery" else known
    if not counts.get("truncate"):
        truncated_at = known
    elif known and not unordered and truncated_at <= known:
        truncated_at = known
        notes.append(f"The source {delivery.name}: a truncation that was applied already has come again.")
    elif not first or unordered or events.order == "delivery":
        raise truncation_error(delivery, first, model)
    else:
        notes.append(TRUNCATED.format(delivery.name))
    return TakenChanges(rows_of_events(events, delivery, view, truncated_at), tuple(notes), truncated_at)


def _called(kind: str, number: int) -> str:
    if number == 1 or kind == "bootstrap":
        return kind
    return "events of other tables" if kind == "event of another table" else f"{kind}s"


def truncation_error(delivery: Delivery, first: bool, model: str) -> SourceTruncated:
    """The error if a model cannot leave out the rows from before a truncation.

    :param first: whether the model has no rows of the source yet.
    """
    if first:
        return SourceTruncated(
            f"the table of the source {delivery.name} was truncated or dropped, and it is not known which "
            "events are older",
            where=model,
            why="the truncation has no order, or the source has order: delivery",
            fix="set order: position (or time, for Canal) in the source's meta.arctic; or build the model "
            "when the topic no longer has the truncation",
        )
    return table_truncated(delivery.name, model)


def table_truncated(source: str, model: str) -> SourceTruncated:
    """The error if a table was truncated of which a model has rows."""
    return SourceTruncated(
        f"the table of the source {source} was truncated or dropped",
        where=model,
        why="its older rows must be removed, and a run that reads new events does not know all of them. "
        "Nothing was written",
        fix="build the table from the events that came after, which leaves out older ones: "
        f"dbt run --full-refresh --select {model}",
    )


__all__ = ["TRUNCATED", "TakenChanges", "table_truncated", "take_changes", "truncation_error"]
