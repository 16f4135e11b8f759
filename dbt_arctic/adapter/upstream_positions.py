"""Which version of a table a model has read, the current one, and what a full refresh would read of it."""

from __future__ import annotations

from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.compaction.markers import count_markers
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed, Version, is_token
from dbt_arctic.sources.unread import Positions, Replay
from dbt_arctic.store.state import find_keyed, load_base, load_change

_ROWS, _BYTES = "total-records", "total-files-size"


class ReadTable(NamedTuple):
    """How far a model has read a table of the catalog."""

    positions: Positions
    replay: Replay | None


def read_table(catalog: CatalogReader, upstream: str, consumed: Consumed) -> ReadTable:
    """How far a model has read a table, from metadata.

    The position in a keyed table is a snapshot of its change table.

    :param upstream: its dotted name.
    """
    name = Name(*upstream.split(".", 2))
    table = find_keyed(catalog, name)
    markers = (0, 0)
    if table is not None:
        states = [load_base(catalog, table), load_change(catalog, table)]
        markers = count_markers(table, states[-1])
    else:
        found = catalog.of(name).load_table(name.schema, name.identifier)
        states = [] if found is None else [found]
    token = consumed.version
    read = Version.parse(token).change_snapshot if is_token(token) else consumed.snapshot_id
    if not states:
        return ReadTable(Positions(str(read or "")), None)
    totals = [_total(states, name) for name in (_ROWS, _BYTES)]
    rows, size = (None if one is None else max(0, one - of) for one, of in zip(totals, markers, strict=True))
    end = states[-1].current_snapshot_id
    return ReadTable(Positions(str(read or ""), str(end or "")), Replay("row", rows, size))


def _total(states: list[TableState], name: str) -> int | None:
    """The sum of a number of the current snapshots; ``None`` if one of them does not have it."""
    newest = [state.history()[0].summary for state in states if state.current_snapshot_id is not None]
    if any(name not in one for one in newest):
        return None
    return sum(int(one[name]) for one in newest)


__all__ = ["ReadTable", "read_table"]
