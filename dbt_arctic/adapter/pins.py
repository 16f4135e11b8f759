"""One version of everything for a whole invocation of dbt: ``consistent_reads`` in the profile.

When the invocation begins, the version of each source and model is noted. From then on ``ref()`` and
``source()`` stand for that version. A model that completes is read at the version that it has then, so the
layers of one run see each other's results.
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
    """A relation at a version. ``text`` stands in a FROM clause for it."""

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
        """Note the versions that relations have now. Views and what does not exist are read as they are."""
        with self._lock:
            for name in names:
                self._pins[name.dotted.lower()] = _pinned(self._catalog, name)

    def find(self, name: Name) -> Pin | None:
        """The pin of a relation; one that was not known at the beginning is pinned with its first use.
        What is in another catalog is read as it is.
        """
        if not is_of(name.catalog, self._catalog_name):
            return None
        key = name.dotted.lower()
        with self._lock:
            if key not in self._pins:
                self._pins[key] = _pinned(self._catalog, name)
            return self._pins[key]

    def unpinned(self, sql: str) -> str:
        """The SQL with the relations in place of what stands for them."""
        with self._lock:
            pins = [pin for pin in self._pins.values() if pin is not None]
        # The longest first: the text of one may be a part of another's.
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
    """The pins of the invocation that runs in this process; ``None`` where nothing is to be pinned."""

    pins: Pins | None = None


def begin(catalog: CatalogReader | None, catalog_name: str = "") -> Pins | None:
    """Begin an invocation: with a catalog, everything in it is read at one version."""
    _Current.pins = Pins(catalog, catalog_name) if catalog is not None else None
    return _Current.pins


def current() -> Pins | None:
    return _Current.pins


def unpinned(sql: str) -> str:
    """SQL with the names of relations in place of their versions in this invocation."""
    return sql if _Current.pins is None else _Current.pins.unpinned(sql)
