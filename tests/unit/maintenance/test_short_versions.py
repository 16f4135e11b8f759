"""Short versions: what ``history`` shows is accepted, and a prefix of two snapshots is refused with both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.maintenance.short_versions import abbreviated
from dbt_arctic.maintenance.timeline import timeline
from dbt_arctic.maintenance.versions import resolve
from tests.unit.maintenance.conftest import Orders, commits
from tests.unit.maintenance.test_history import catalog_of


def numbered(side: TableState, start: int, *log: str) -> TableState:
    """The side with snapshots whose ids begin at ``start``."""
    snapshots = commits(*log, start=start)
    current = snapshots[-1].snapshot_id
    return replace(side, snapshots=snapshots, current_snapshot_id=current, branches={"main": current})


def test_snapshots_may_be_given_by_a_unique_prefix(orders: Orders) -> None:
    base = numbered(orders.side("base", 1), 5551110, "b", "m10")
    change = numbered(orders.side("change", 1), 8432121, "b", "a10", "a20", "a30")
    catalog = catalog_of(orders, base, change)

    def resolved(text: str) -> str:
        return resolve(catalog, orders.table, text, "here").token

    assert resolved("1.8432123") == "1.8432123.5551111", "as of that commit, with what was merged by then"
    assert resolved("1.8432121") == "1.8432121.5551110"
    assert resolved("1.8432123.5551110") == "1.8432123.5551110"
    with pytest.raises(VersionUnavailable, match="4 begin with these digits") as ambiguous:
        resolved("1.843212")
    assert all(f"1.{commit.snapshot_id}" in str(ambiguous.value) for commit in change.snapshots)
    with pytest.raises(VersionUnavailable, match=r"2 begin with these digits[\s\S]*1.8432123.5551111"):
        resolved("1.8432123.555111")
    for text in ("1.84321", "1.999999999"):
        with pytest.raises(VersionUnavailable, match="has no version"):
            resolved(text)
    assert resolved("1.999999999.1") == "1.999999999.1", "expired: its readers report it"
    with pytest.raises(VersionUnavailable):
        resolved("7.8432121")


def test_what_history_shows_is_accepted(orders: Orders) -> None:
    base = numbered(orders.side("base", 1), 7432123456789012345, "b", "m10", "m20")
    change = numbered(orders.side("change", 1), 8432123456789012345, "b", "a10", "a20")
    catalog = catalog_of(orders, base, change)
    entries = timeline(orders.table, base, change, {})
    short = abbreviated([entry.version for entry in entries if entry.version])
    assert len(short) == len({entry.version for entry in entries})
    for version, text in short.items():
        assert resolve(catalog, orders.table, text, "here") == version
    only = numbered(orders.side("change", 1), 8432123456789012345, "b")
    (entry,) = timeline(orders.table, numbered(base, 7432123456789012345, "b"), only, {})
    assert entry.version is not None
    assert abbreviated([entry.version]) == {entry.version: "1.8432123"}
    for text in ("1.8432123", "1.843212", "1.8432123.7432123"):
        found = resolve(
            catalog_of(orders, numbered(base, 7432123456789012345, "b"), only), orders.table, text, ""
        )
        assert found == entry.version
