"""Pins one version of everything for a whole invocation of dbt: ``consistent_reads`` in the profile.

The versions of all sources and models are recorded when the invocation begins. From then on, ``ref()`` and
``source()`` read that version. A completed model is read at its new version, so the layers of a run see each
other's results.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dbt_arctic.adapter.catalog_names import is_known
from dbt_arctic.adapter.other_catalog_reads import OtherReads
from dbt_arctic.auto.upstreams import Upstream, inspect_upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.store.without_views import text_without_view


@dataclass(frozen=True)
class Pin:
    """A relation at a version. ``text`` represents it in a FROM clause."""

    name: Name
    consumed: Consumed
    text: str


class Pins:
    """The pins of one invocation. Threads of dbt share them."""

    def __init__(self, catalog: CatalogReader, catalog_names: Collection[str]) -> None:
        self._catalog, self._catalog_names = catalog, catalog_names
        self._lock = threading.Lock()
        self._pins: dict[str, Pin | None] = {}

    def pin(self, names: Iterable[Name]) -> None:
        """Record the current versions of relations. Views and missing relations are read as they are."""
        with self._lock:
            for name in names:
                self._pins[name.dotted.lower()] = _pinned(self._catalog, name)

    def find(self, name: Name) -> Pin | None:
        """The pin of a relation. A relation that was unknown at the beginning is pinned on first use.

        Relations of catalogs that are not in the profile are not pinned.
        """
        if not is_known(name.catalog, self._catalog_names):
            return None
        key = name.dotted.lower()
        with self._lock:
            if key not in self._pins:
                self._pins[key] = _pinned(self._catalog, name)
            return self._pins[key]

    @property
    def texts(self) -> dict[str, Name]:
        """The relations by their texts."""
        with self._lock:
            return {pin.text: pin.name for pin in self._pins.values() if pin is not None}

    def unpinned(self, sql: str) -> str:
        """The SQL with relation names instead of pinned versions."""
        return _with_names(sql, self.texts)


def _with_names(sql: str, texts: Mapping[str, Name]) -> str:
    # The longest first: one text may be a part of another.
    for text in sorted(texts, key=len, reverse=True):
        sql = sql.replace(text, texts[text].sql)
    return sql


def _pinned(catalog: CatalogReader, name: Name) -> Pin | None:
    found = inspect_upstream(catalog, name, None)
    if not isinstance(found, Upstream):
        return None
    text = f"(\n{found.states['new']}\n)"
    snapshot_id = found.consumed.snapshot_id if found.kind == "table" else None
    if found.name_reads_new and snapshot_id is not None:
        text = name.at(snapshot_id)
    return Pin(name, found.consumed, text)


class _Current:
    """The pins of the current invocation in this process; ``None`` if nothing is pinned.

    ``other_reads`` knows the relations that must not be read by their names, if the profile has several
    catalogs. ``records`` reads the catalogs, if one of them may have no views. ``texts`` are those by which
    some were read.
    """

    pins: Pins | None = None
    other_reads: OtherReads | None = None
    records: WithRecords | None = None
    texts: ClassVar[dict[str, Name]] = {}


def begin(catalog: CatalogReader | None, catalog_names: Collection[str] = ()) -> Pins | None:
    """Begin an invocation. If a catalog is given, all reads of it are pinned."""
    _Current.pins = Pins(catalog, catalog_names) if catalog is not None else None
    return _Current.pins


def begin_others(others: OtherReads | None, catalog: CatalogReader | None = None) -> None:
    """Begin an invocation with these relations of several catalogs; ``None`` for one catalog.

    :param catalog: the readers of all catalogs of the profile.
    """
    _Current.other_reads, _Current.texts = others, {}
    _Current.records = catalog if isinstance(catalog, WithRecords) else None


def other_reads() -> OtherReads | None:
    """The relations of several catalogs of this invocation; ``None`` if there is one catalog."""
    return _Current.other_reads


def text_of(name: Name) -> str | None:
    """The text by which ``ref()`` and ``source()`` read a relation; ``None`` to read it by its name."""
    pin = _Current.pins.find(name) if _Current.pins is not None else None
    if pin is not None:
        return pin.text
    text = _text_today(name)
    if text is not None:
        remember_text(text, name)
    return text


def _text_today(name: Name) -> str | None:
    text = _Current.other_reads.text_of(name) if _Current.other_reads is not None else None
    if text is None and _Current.records is not None:
        text = text_without_view(_Current.records, name)
    return text


def remember_text(text: str, name: Name) -> None:
    """Remember that a text in the SQL of this invocation reads a relation."""
    _Current.texts[text] = name


def current() -> Pins | None:
    """The pins of the current invocation."""
    return _Current.pins


def texts_of(sql: str) -> dict[Name, str]:
    """The relations in SQL that must not be read by their names, with their current texts.

    They are those that ``ref()`` and ``source()`` have written into it.
    """
    if _Current.other_reads is None and _Current.records is None:
        return {}
    texts = dict(_Current.texts)
    if _Current.pins is not None:
        texts |= _Current.pins.texts
    found = {name: _text_today(name) for text, name in texts.items() if text in sql}
    return {name: text for name, text in found.items() if text is not None}


def refuse_records(sql: str, where: str) -> None:
    """Refuse to store SQL that reads a keyed table without a view: its text is that of one generation.

    :raises ConfigError: names the table.
    """
    for text, name in _Current.texts.items():
        if _Current.records is not None and text in sql and text_without_view(_Current.records, name):
            raise ConfigError(
                f"the keyed table {name} has no view",
                where=where,
                why=f"the catalog {name.catalog} has none, and other clients could not read a view over it",
                fix="make it a table, or an incremental model",
            )


def unpinned(sql: str) -> str:
    """SQL with relation names instead of the pinned versions of this invocation, and of other texts."""
    sql = _with_names(sql, dict(_Current.texts))
    return sql if _Current.pins is None else _Current.pins.unpinned(sql)
