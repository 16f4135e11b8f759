"""Determines from the log of a table when its rows last changed. Reads no rows and needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.keyed.log import PROPERTY_TXN, carried_log
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_CREATED
from dbt_arctic.refresh.clone import origin
from dbt_arctic.store.leftovers import txn_ms
from dbt_arctic.store.state import find_keyed, load_change

_CHANGES = ("added-records", "deleted-records", "added-position-deletes", "added-equality-deletes")


def last_modified_ms(catalog: CatalogReader, name: Name) -> int | None:
    """Milliseconds since the epoch of the last commit that changed rows; ``None`` if there was none.

    For a keyed table, this is its last upsert or its build, because compaction does not change rows. For a
    clone, it is that of its source.

    :raises UnknownRelation: no table has this name.
    """
    name = origin(catalog, name)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is not None:
        history = state.history()
        changed_ms = next((entry.timestamp_ms for entry in history if _changed_rows(entry)), None)
        return _before_what_is_left(history) if changed_ms is None else changed_ms
    keyed = find_keyed(catalog, name)
    if keyed is not None:
        return _of_change_table(load_change(catalog, keyed))
    if catalog.of(name).load_view(name.schema, name.identifier) is not None:
        raise UnknownRelation(
            f"{name} is a view, which has no commit time",
            where=name.dotted,
            why="its rows change with the tables that it reads",
            fix="set loaded_at_field or loaded_at_query for this source",
        )
    raise UnknownRelation(
        f"the table {name} does not exist",
        where=name.dotted,
        fix="correct the source's name or schema, or create the table",
    )


def changed_since(state: TableState, since: int | None) -> bool:
    """Whether a commit to a plain table after one of its snapshots has changed rows, or replaced the table.

    :param since: ``None`` if it had no snapshot.
    """
    for entry in state.history():
        if entry.snapshot_id == since:
            return False
        if _changed_rows(entry):
            return True
    return since is not None


def _of_change_table(change: TableState) -> int | None:
    history = change.history()
    for entry in history:
        if PROPERTY_TXN in entry.summary and _changed_rows(entry):
            return entry.timestamp_ms
    carried = next((txn for _, txn in carried_log(history) if txn), None)
    if carried is not None:
        return txn_ms(carried)
    left = _before_what_is_left(history)
    if left is not None:
        return left
    created = change.properties.get(PROPERTY_CREATED)
    return None if created is None else int(created)


def _before_what_is_left(history: Sequence[Snapshot]) -> int | None:
    """The latest possible time if the commit that changed rows has expired.

    It is that of the oldest remaining snapshot.
    """
    return history[-1].timestamp_ms if history and history[-1].parent_id is not None else None


def _changed_rows(entry: Snapshot) -> bool:
    """Whether a commit changed rows: it is not a rewrite of files and has rows."""
    return entry.operation != "replace" and any(int(entry.summary.get(key, "0")) for key in _CHANGES)
