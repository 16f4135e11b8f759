"""Writers, compactions, builds and readers at once: nothing lost, nothing doubled, nothing half."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.version import Version
from tests.extent import extent

ROWS = [{"id": number, "amount": 0} for number in range(20)]


def all_at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run in threads that start together; an error of any is raised here."""
    barrier = threading.Barrier(len(actions))

    def start(action: Callable[[], Any]) -> Any:
        barrier.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return [future.result() for future in [pool.submit(start, action) for action in actions]]


def test_six_writers_while_compactions_run_lose_and_double_nothing(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    rounds = extent(2, 3)
    writing = threading.Semaphore(0)

    def writer(number: int) -> Callable[[], None]:
        mine = orders.on(shop.session())

        def write() -> None:
            try:
                for turn in range(rounds):
                    own = {"id": 100 + number * 10 + turn, "amount": number}
                    mine.upsert([own, {"id": 5, "amount": 1000 + number * 10 + turn}])
            finally:
                writing.release()

        return write

    def compactor() -> None:
        mine = orders.on(shop.session())
        done = 0
        while done < 6:
            mine.compact(grace=0)
            while writing.acquire(blocking=False):
                done += 1

    all_at_once(*[writer(number) for number in range(6)], compactor)
    own = {100 + number * 10 + turn: number for number in range(6) for turn in range(rounds)}
    found = orders.rows()
    assert len({row["id"] for row in found}) == len(found)
    amounts = {row["id"]: row["amount"] for row in found}
    winner = amounts.pop(5)
    assert amounts == {**{number: 0 for number in range(20) if number != 5}, **own}
    assert winner == latest_of(orders, 5)
    orders.compact()
    assert orders.base_rows() == found


def latest_of(orders: Any, key: int) -> int:
    """What the newest commit wrote for a key that every commit writes: found by the commit's place."""
    change = orders.table.change
    state = orders.session.catalog.load_table(change.schema, change.identifier)
    newest = next(one for one in state.history() if PROPERTY_TXN in one.summary)
    rows = orders.session.query(
        f"SELECT amount FROM {change.at(newest.snapshot_id)} "
        f"WHERE id = {key} AND _txn = {newest.summary[PROPERTY_TXN]}"
    )
    return int(rows[0][0])


def test_of_two_compactions_at_once_both_end_well_and_one_merges(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for turn in range(extent(1, 3)):
        orders.upsert([{"id": 1, "amount": 10 + turn}, {"id": 30 + turn, "amount": 1}])
        before = orders.rows()
        results = all_at_once(*[orders.on(shop.session()).compact for _ in range(2)])
        assert {result.outcome for result in results} <= {
            "compacted",
            "nothing to do",
            "another compaction was faster",
        }
        assert sum(result.merged for result in results) == 1
        assert orders.rows() == before
        orders.compact()
        assert orders.base_rows() == before


@pytest.mark.modelled
def test_a_compaction_that_is_overtaken_merges_nothing_old_over_new(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    for amount, step in ((10, "create_branch"), (20, "merge"), (30, "fast_forward")):
        orders.upsert([{"id": 1, "amount": amount}])
        session, newer = shop.session(), {"id": 1, "amount": amount + 1}

        def overtake(at: str, step: str = step, session: Any = session, newer: Any = newer) -> None:
            if at == step:
                session.statements.before = None
                orders.upsert([newer])
                orders.compact()

        session.statements.before = overtake
        assert orders.on(session).compact().outcome == "another compaction was faster", step
        assert orders.rows()[1] == newer
        assert orders.base_rows()[1] == newer
        assert shop.main.log_of(orders.compact) == []


@pytest.mark.modelled
def test_what_is_written_during_a_compaction_stays_pending(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    session = shop.session()

    def write(step: str) -> None:
        if step in ("create_branch", "merge", "fast_forward", "trim"):
            orders.upsert([{"id": 1, "amount": 20}, {"id": len(step), "amount": 7}])

    session.statements.before = write
    result = orders.on(session).compact()
    assert (result.merged, result.trimmed) == (1, 1)
    assert orders.base_rows()[1]["amount"] == 10
    amounts = {row["id"]: row["amount"] for row in orders.rows()}
    assert [amounts[key] for key in (1, 13, 5, 12, 4)] == [20, 7, 7, 7, 7]
    before = orders.rows()
    orders.compact()
    assert orders.base_rows() == before


@pytest.mark.modelled
def test_a_reader_with_the_base_of_before_a_merge_needs_the_grace(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    old_base = orders.version.base_snapshot
    orders.upsert([{"id": 1, "amount": 10}])
    right = orders.rows()

    def stale_reader() -> list[Any]:
        now = orders.version
        return orders.rows_at(Version(now.generation, now.change_snapshot, old_base))

    orders.compact(grace=3600)
    assert stale_reader() == right
    orders.compact(grace=0)
    assert stale_reader() != right, "this is what the grace is for"
    assert orders.rows() == right


@pytest.mark.parametrize("side", ["base", "change"])
@pytest.mark.modelled
def test_a_version_is_a_pair_that_belongs_together_whatever_happens_while_it_is_taken(
    shop: Any, side: str
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    session = shop.session()
    states = [orders.rows()]
    interrupted = getattr(orders.table, side).identifier
    load = session.catalog.load_table

    def load_table(schema: str, name: str) -> Any:
        found = load(schema, name)
        if name == interrupted and len(states) == 1:
            for batch in ([{"id": 1, "amount": 20}, {"id": 2, "amount": 2}], [{"id": 1, "amount": 30}]):
                orders.upsert(batch)
                orders.compact(grace=0)
                states.append(orders.rows())
        return found

    session.catalog.load_table = load_table
    version = orders.on(session).version
    assert len(states) == 3
    assert orders.rows_at(version) in states


def test_readers_never_see_a_half_while_writers_and_compactions_work(shop: Any) -> None:
    # Every commit keeps the sum of the amounts at zero, and every key exists all the time.
    orders = shop.table()
    orders.build(ROWS)
    stop = threading.Event()

    def write() -> None:
        mine = orders.on(shop.session())
        try:
            for turn in range(5):
                mine.upsert([{"id": turn, "amount": turn + 1}, {"id": 10 + turn, "amount": -turn - 1}])
        finally:
            stop.set()

    def compact() -> None:
        mine = orders.on(shop.session())
        while not stop.is_set():
            mine.compact(grace=60)

    def read() -> list[Any]:
        session = shop.session()
        seen = []
        while not stop.is_set():
            seen += session.query(f"SELECT count(*), count(DISTINCT id), sum(amount) FROM {orders.name.sql}")
        return seen

    _, _, seen = all_at_once(write, compact, read)
    assert set(seen) == {(20, 20, 0)}


@pytest.mark.modelled
def test_a_writer_to_a_generation_that_is_retired_meanwhile_writes_again_to_the_new_one(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    session = shop.session()

    def refresh(step: str) -> None:
        if step == "upsert":
            session.statements.before = None
            orders.build([{"id": 1, "amount": 1}, {"id": 2, "amount": 2}])

    session.statements.before = refresh
    orders.on(session).apply([{"id": 1, "amount": 10}], [{"id": 2}])
    assert session.statements.steps == ["upsert", "create_branch", "replay", "fast_forward", "drop_branch"]
    assert orders.rows() == [{"id": 1, "amount": 10}]
    orders.compact()
    assert orders.base_rows() == [{"id": 1, "amount": 10}]


@pytest.mark.modelled
def test_a_pulling_writer_to_a_retired_generation_says_so(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    orders.upsert([{"id": 1, "amount": 10}])
    session = shop.session()

    def refresh(step: str) -> None:
        if step == "fast_forward":
            session.statements.before = None
            copy.run(rebuild=True)

    session.statements.before = refresh
    with pytest.raises(ConcurrentRun, match="full refresh"):
        copy.on(session).run()
    assert [row["amount"] for row in copy.rows()][1] == 10
    assert copy.run() == "skipped"


def test_of_two_builds_at_once_one_generation_is_published_whole(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)

    def build(amount: int) -> Callable[[], str]:
        mine = orders.on(shop.session())

        def run() -> str:
            try:
                mine.build([{"id": 1, "amount": amount}, {"id": 2, "amount": amount}])
            except ConcurrentRun:
                return "refused"
            return "built"

        return run

    outcomes = all_at_once(build(1), build(2))
    assert "built" in outcomes
    assert orders.rows() in [[{"id": 1, "amount": n}, {"id": 2, "amount": n}] for n in (1, 2)]
    orders.upsert([{"id": 1, "amount": 5}])
    assert orders.rows()[0] == {"id": 1, "amount": 5}


def test_the_view_reads_as_its_pinned_form(shop: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.apply([{"id": 1, "amount": 10}], [{"id": 2}])
    pinned = merge_on_read(orders.table, orders.version)
    assert sorted(shop.main.query(pinned)) == sorted(shop.main.query(f"SELECT * FROM {orders.name.sql}"))
