"""Determines how far a table lags behind its upstreams.

Compares the versions that its newest commit consumed with the commits that its upstreams have made since.
Reads only metadata, and each upstream once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.log import carried_log, consumed_versions, is_change, rows_added
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed, Version, is_outside, is_token
from dbt_arctic.store.leftovers import txn_ms
from dbt_arctic.store.rejected_table import SUFFIX
from dbt_arctic.store.state import find_keyed, load_change, plain_id


@dataclass(frozen=True)
class Lag:
    """The lag of a consumer behind one upstream.

    :param since_ms: the time of the oldest commit that was not consumed; ``None`` if there is none.
    :param lost: the reason if the lag is unknown: the next run starts from all rows, or asks for a full
        refresh.
    :param commits: the number of commits with rows that were not consumed.
    :param rows: the rows that these commits have added to the log of a keyed table, or to a plain table;
        ``None`` if one of them has expired.
    :param read: the snapshot that was consumed, of a keyed table that of its change table; empty for none.
    :param end: the current one.
    """

    upstream: str
    since_ms: int | None = None
    lost: str = ""
    commits: int = 0
    rows: int | None = 0
    read: str = ""
    end: str = ""


class _Upstream(NamedTuple):
    """The log of an upstream.

    :param table_id: empty if it does not exist.
    :param commits: newest first.
    :param others: all snapshots of a plain table, also those from before it was replaced.
    """

    table_id: str
    commits: list[Snapshot]
    is_keyed: bool
    others: Sequence[Snapshot] = ()


@dataclass
class Upstreams:
    """The logs of upstreams, each read once."""

    catalog: CatalogReader
    _known: dict[str, _Upstream] = field(default_factory=dict)

    def lags(self, state: TableState, until_ms: int | None = None) -> list[Lag]:
        """The lags of the table with this state (for a keyed table, the state of its change table).

        :param until_ms: the time of a past state; ``None`` for the current one.
        """
        consumed = consumed_versions(state.history())
        # The entries of an automatic model include one for its query, which is not a table. Topics and
        # databases are not in the catalog.
        names = sorted(name for name, one in consumed.items() if name.count(".") >= 2 and not is_outside(one))
        lags = [self._lag(upstream, consumed[upstream], until_ms) for upstream in names]
        # Rejected rows may be dropped at any time. The model then goes on without them.
        return [lag for lag in lags if not (lag.lost and lag.upstream.endswith(SUFFIX))]

    def _lag(self, upstream: str, last: Consumed, until_ms: int | None) -> Lag:
        if upstream not in self._known:
            try:
                self._known[upstream] = self._look(upstream)
            except ArcticError as error:
                return Lag(upstream, lost=error.what)
        table_id, commits, is_keyed, others = self._known[upstream]
        token = last.version
        wanted = Version.parse(token).change_snapshot if is_token(token) else last.snapshot_id
        none = Lag(upstream, read=str(wanted or ""), end=str(commits[0].snapshot_id) if commits else "")
        if table_id != last.table_id:
            return replace(none, lost="it was rebuilt since then" if table_id else "it no longer exists")
        if is_keyed != is_token(token):
            return replace(none, lost="it has become a keyed table" if is_keyed else "it is no longer keyed")
        found = none
        for commit in commits:
            if commit.snapshot_id == wanted:
                return found
            is_news = is_change(commit) if is_keyed else commit.operation != "replace"
            if is_news and (until_ms is None or commit.timestamp_ms <= until_ms):
                found = _and(found, commit.timestamp_ms, rows_added(commit))
        for snapshot_id, txn in carried_log(commits) if is_keyed else ():
            if snapshot_id == wanted:
                return found
            if txn and (until_ms is None or txn_ms(txn) <= until_ms):
                found = _and(found, txn_ms(txn), None)
        if not wanted:  # read when it had no rows
            return found
        before = next((one for one in others if one.snapshot_id == wanted), None)
        if before is not None and commits and commits[-1].sequence_number > before.sequence_number:
            return found  # the table was replaced since
        return replace(none, lost="the version that was read last has expired")

    def _look(self, upstream: str) -> _Upstream:
        name = Name(*upstream.split(".", 2))
        table = find_keyed(self.catalog, name)
        if table is not None:
            return _Upstream(table.generation.change_id, load_change(self.catalog, table).history(), True)
        state = self.catalog.of(name).load_table(name.schema, name.identifier)
        if state is None:
            return _Upstream("", [], False)
        return _Upstream(plain_id(state), state.history(), False, state.snapshots)


def _and(lag: Lag, at_ms: int, rows: int | None) -> Lag:
    """The lag with one more commit, which is older than the others."""
    both = None if lag.rows is None or rows is None else lag.rows + rows
    return replace(lag, since_ms=at_ms, commits=lag.commits + 1, rows=both)
