"""The short benchmark: that both sides hold the same rows, and ratios that only a mistake would miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peers.smoke import ratios, smoke
from dbt_arctic.engine.session import SessionConnection


@pytest.mark.long
def test_a_keyed_table_and_merge_hold_the_same_rows_at_no_odd_cost(
    connection: SessionConnection, schema: str, tmp_path: Path
) -> None:
    # It fails if rows differ. With so few rows, speed varies, so the limits are generous.
    found = ratios(smoke(connection, tmp_path, rows=30_000, rounds=2, buckets=4, schema=schema))
    assert found.write > 0.3
    assert found.read < 15
    assert found.compaction > 0.1
