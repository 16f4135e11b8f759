"""Pins one version of everything for a whole invocation of dbt: ``consistent_reads`` in the profile.

The versions of all sources and models are recorded when the invocation begins. From then on, ``ref()`` and
``source()`` read that version. A completed model is read at its new version, so the layers of a run see each
other's results.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from dbt_arctic.adapter.databases import is_of
from dbt_arctic.auto.upstreams import Upstream, look_at
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed


@dataclass(frozen=True)
class Pin:
    """A relation at a version. ``text`` represents it in a FROM clause."""

    name: Name
    consumed: Consumed
    text: str


class Pins:
    """The pins of one invocation. Threads of dbt share them."""

    def __init__(self, catalog: CatalogReader, catalog_name: str) -> None:
        self._catalog, self._catalog_name = catalog, catalog_name
        self._lock = threading.Lock()
        self._pins: dict[str, Pin | None] = {}

    def pin(self, names: Iterable[Name]) -> None:
        """Record the current versions of relations. Views and missing relations are read as they are."""
        with self._lock:
            for name in names:
                self._pins[name.dotted.lower()] = _pinned(self._catalog, name)

    def find(self, name: Name) -> Pin | None:
        """The pin of a relation. A relation that was unknown at the beginning is pinned on first use.

        Relations of other catalogs are not pinned.
        """
        if not is_of(name.catalog, self._catalog_name):
            return None
        key = name.dotted.lower()
        with self._lock:
            if key not in self._pins:
                self._pins[key] = _pinned(self._catalog, name)
            return self._pins[key]

    def unpinned(self, sql: str) -> str:
        """The SQL with relation names instead of pinned versions."""
        with self._lock:
            pins = [pin for pin in self._pins.values() if pin is not None]
        # The longest first: one text may be a part of another.
        for pin in sorted(pins, key=lambda pin: -len(pin.text)):
            sql = sql.replace(pin.text, pin.name.sql)
        return sql


def _pinned(catalog: CatalogReader, name: Name) -> Pin | None:
    found = look_at(catalog, name, None)
    if not isinstance(found, Upstream):
        return None
    text = f"(\n{found.states['new']}\n)"
    if found.kind == "table" and found.consumed.version != "0":
        text = name.at(int(found.consumed.version))
    return Pin(name, found.consumed, text)


class _Current:
    """The pins of the current invocation in this process; ``None`` if nothing is pinned."""

    pins: Pins | None = None


def begin(catalog: CatalogReader | None, catalog_name: str = "") -> Pins | None:
    """Begin an invocation. If a catalog is given, all reads of it are pinned."""
    _Current.pins = Pins(catalog, catalog_name) if catalog is not None else None
    return _Current.pins


def current() -> Pins | None:
    """The pins of the current invocation."""
    return _Current.pins


def unpinned(sql: str) -> str:
    """SQL with relation names instead of the pinned versions of this invocation."""
    return sql if _Current.pins is None else _Current.pins.unpinned(sql)
