"""What the next run of a model would read of a captured table, and how late it is; without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.databases.api import Slot
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.capture_changes import waiting_changes
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_settings import CaptureSource
from dbt_arctic.sources.capture_table import Captured, load_capture
from dbt_arctic.sources.unread import Unread


@dataclass(frozen=True)
class CapturePreview:
    """The next run of a model, as far as one captured table is concerned.

    :param reads_all: whether the model would read all rows of the table.
    :param changes: how many changes it would read.
    :param kept_bytes: how much of its log the server keeps for the slot.
    :param problem: why the run would fail; empty if nothing is in its way.
    """

    model: str
    source: str
    reads_all: bool
    changes: int
    kept_bytes: int
    problem: str = ""


@dataclass(frozen=True)
class SlotContents:
    """What a slot has that was not captured yet.

    :param kept_bytes: how much of its log the server keeps for the slot.
    :param changes: by table.
    """

    kept_bytes: int
    changes: Mapping[str, TableChanges]


@dataclass(frozen=True)
class CapturedTable:
    """A captured table, and where its changes are.

    :param name: of the capture table.
    :param table: ``schema.table``, as the log has it.
    :param slots: the contents of slots that were read already, by capture table. Many tables share a slot.
    """

    catalog: CatalogReader
    source: CaptureSource
    name: Name
    table: str
    open_slot: Callable[[], AbstractContextManager[Slot]]
    slots: MutableMapping[Name, SlotContents] = field(default_factory=dict)

    def preview(self, model: str, last: Consumed | None) -> CapturePreview:
        """What the next run would read.

        :param last: what the model has consumed of the table.
        """
        reads_all = last is None and self.source.loads
        try:
            captured = self.captured()
            slot = self._slot(captured)
            found = self._unread(captured, slot.changes, model, last)
        except ArcticError as error:
            return CapturePreview(model, self.source.name, reads_all, 0, 0, error.what)
        return CapturePreview(
            model, self.source.name, reads_all, 0 if reads_all else found.number, slot.kept_bytes
        )

    def unread(self, model: str, last: Consumed | None, read_ms: int | None) -> Unread:
        """What a model has not read.

        :param last: what the model has consumed of the table.
        :param read_ms: the time of the commit that consumed it, since when a change has been waiting at most
            if it is not known when it was made.
        """
        name = self.source.name
        try:
            captured = self.captured()
            found = self._unread(captured, self._slot(captured).changes, model, last)
        except ArcticError as error:
            return Unread(name, "change", problem=error.what)
        return Unread(name, "change", found.number, found.oldest_ms or (read_ms if found.number else None))

    def captured(self) -> Captured | None:
        """The capture table; ``None`` if nothing was captured yet."""
        found = load_capture(self.catalog, self.name, self.source.name)
        return None if found is None else found[1]

    def _slot(self, captured: Captured | None) -> SlotContents:
        if self.name not in self.slots:
            with self.open_slot() as slot:
                state = slot.state()
                waiting = waiting_changes(slot, state.current, captured)
                self.slots[self.name] = SlotContents(state.kept_bytes, waiting)
        return self.slots[self.name]

    def _unread(
        self,
        captured: Captured | None,
        waiting: Mapping[str, TableChanges],
        model: str,
        last: Consumed | None,
    ) -> TableChanges:
        """The changes that a model has not read, in the capture table and in the slot."""
        found = waiting.get(self.table, TableChanges())
        if captured is None:
            return found
        start = captured.range.start
        if last is not None:
            start = captured.require_unread(last, self.table, self.source.name, model)
        known = captured.changes_since(self.table, start)
        return found if known is None else found.plus(known)


__all__ = ["CapturePreview", "CapturedTable", "SlotContents"]
