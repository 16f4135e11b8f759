"""The table of operations stays small, and loses nothing of what others write meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.metrics import side_metrics
from dbt_arctic.keyed import operations
from dbt_arctic.keyed.operations import Record
from dbt_arctic.maintenance import upkeep
from dbt_arctic.maintenance.claims import Claims, find_claims
from dbt_arctic.maintenance.upkeep import keep_operations
from tests.spark.keyed.conftest import Killed, Session, Shop

DAY_MS = 24 * 3600 * 1000
MOST_FILES = 6
HISTORY_S = 3 * 24 * 3600 - 3600


@pytest.fixture
def session(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(upkeep, "MOST_FILES", MOST_FILES)
    # What other tests have damaged in their schemas of this catalog would hold everything.
    monkeypatch.setattr(upkeep, "find_claims", lambda *of: Claims(find_claims(*of).by_id))
    return shop.main


@pytest.fixture
def wrote(session: Session) -> list[Record]:
    """As many commits as make it time, a day apart; each run records what it did in one."""
    name, now = session.name(operations.OPERATIONS), session.context.now_ms()
    session.query(operations.create_table(name))
    records = [record(now - day * DAY_MS, f"it's run {day}") for day in range(MOST_FILES)]
    for one in records:
        session.query(operations.insert(name, [one]))
    return records


def record(at_ms: int, run: str) -> Record:
    numbers = (2.0, 1.5, 4.25, 1.0, 40, 8, 9000, 8000)
    return Record(at_ms, run, "major", "lake.a.b", "all", "due", "compacted", "3 commits", *numbers)


def recorded(session: Session) -> list[Record]:
    return read_operations(session.catalog, session.name("any"))


def state(session: Session) -> Any:
    found = session.catalog.load_table(session.schema, operations.OPERATIONS)
    assert found is not None
    return found


def test_what_is_written_is_read_without_spark(session: Session, wrote: list[Record]) -> None:
    assert recorded(session) == wrote
    assert read_operations(session.catalog, session.name("any"), "lake.a.c") == []
    assert read_operations(session.catalog, replace(session.name("any"), schema="nowhere")) == []


def test_old_rows_go_and_one_file_is_left(session: Session, wrote: list[Record]) -> None:
    assert keep_operations(session.context, session.name("any"), history_s=HISTORY_S)
    assert recorded(session) == wrote[:3]
    side = side_metrics(state(session))
    assert side is not None
    assert (side.files, side.delete_files) == (1, 0)
    assert session.log_of(lambda: keep_operations(session.context, session.name("any"))) == []
    assert len(state(session).snapshots) > 2, "none of them is a week old"
    later = replace(session.context, now_ms=lambda: session.context.now_ms() + 8 * DAY_MS)
    for number in range(MOST_FILES):
        session.query(
            operations.insert(
                session.name(operations.OPERATIONS), [record(session.context.now_ms(), str(number))]
            )
        )
    keep_operations(later, session.name("any"))
    assert len(state(session).snapshots) == 1
    assert len(recorded(session)) == 3 + MOST_FILES


def test_cut_off_anywhere_or_overtaken_by_a_writer_nothing_is_lost(
    session: Session, wrote: list[Record]
) -> None:
    young = wrote[:3]
    number = 0

    def append(step: str) -> None:
        nonlocal number
        number += 1
        young.append(record(session.context.now_ms() + number, f"meanwhile {step}"))
        session.query(operations.insert(session.name(operations.OPERATIONS), [young[-1]]))

    def kept() -> bool:
        found = {one.run for one in recorded(session)}
        return {one.run for one in young} <= found

    for at in (0, 1):
        session.statements.die(at)
        with pytest.raises(Killed):
            keep_operations(session.context, session.name("any"), history_s=HISTORY_S)
        session.statements.die(10**9)
        assert kept(), at
    for _ in range(MOST_FILES):
        append("afterwards")
    session.statements.before = append
    keep_operations(session.context, session.name("any"), history_s=HISTORY_S)
    session.statements.before = None
    assert kept()
    assert {one.run for one in recorded(session)} == {one.run for one in young}
