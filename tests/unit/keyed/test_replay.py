"""Which commits of a retired generation are missing in the one that took its place."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.replay import MissingCommits, find_late, insert_replay, replayed, written_directly
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Consumed, encode_consumed

FROM_A = encode_consumed({"lake.shop.a": Consumed("id", "1")})
FROM_B = encode_consumed({"lake.shop.b": Consumed("id", "1")})


def log(*summaries: dict[str, str]) -> list[Snapshot]:
    """Arguments are oldest first, like commits; the result is newest first."""
    made = [Snapshot(at, at - 1, at, at, "append", summary) for at, summary in enumerate(summaries, 1)]
    return made[::-1]


def blind(txn: int) -> dict[str, str]:
    return {"arctic.txn": str(txn), "arctic.blind": "true"}


def pulled(txn: int, consumed: str) -> dict[str, str]:
    return {"arctic.txn": str(txn), "arctic.consumed": consumed}


def test_blind_writes_are_replayed_once_in_the_order_in_which_they_landed() -> None:
    retired = log(blind(30), {}, blind(10), blind(20))
    assert find_late(retired, log({})) == MissingCommits((30, 10, 20))
    brought = {"arctic.txn": "99", "arctic.replays": "[10, 30]"}
    assert find_late(retired, log({}, brought)) == MissingCommits((20,))
    assert find_late([], log({})) == MissingCommits()


def test_a_pull_is_left_to_the_next_one_where_that_reads_the_same_upstreams() -> None:
    built = log({"arctic.consumed": FROM_A})
    assert find_late(log(pulled(1, FROM_A)), built) == MissingCommits()
    assert find_late(log(pulled(1, FROM_B)), built) == MissingCommits(computed=(1,))
    assert find_late(log(pulled(1, FROM_A)), log({})) == MissingCommits(computed=(1,))


def test_other_computed_writes_cannot_be_replayed() -> None:
    rollback = {**pulled(2, FROM_A), "arctic.rollback": "1.2.3"}
    found = find_late(log({"arctic.txn": "1"}, rollback, blind(3)), log({"arctic.consumed": FROM_A}))
    assert found == MissingCommits((3,), (1, 2))


def test_a_replay_is_replayed_unless_its_rows_came_from_there() -> None:
    replay = {"arctic.txn": "50", "arctic.replays": "[7, 8]"}
    assert find_late(log(replay), log(blind(7), blind(8))) == MissingCommits()
    assert find_late(log(replay), log(blind(7))) == MissingCommits((50,))
    assert replayed(log(replay, blind(1))) == {7, 8}
    assert written_directly(log(replay, blind(1), {})) == {1}


OLD = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(1, "b", "c"),
    key=("id",),
    layout=Layout(8, "id"),
    columns=(Column("ID", "int"), Column("gone", "int")),
)
NEW = replace(OLD, generation=Generation(2, "b", "c"), columns=(Column("id", "int"), Column("a", "int")))


def replay(table: KeyedTable, *newer: int) -> str:
    readable = LogRange((5, 6), (77, 66))
    return insert_replay(OLD, (5, 6), readable, {}, table, LogRange(newer, (99,)), {}, 8, {}, "b")


def test_rows_that_move_to_a_stricter_generation_are_checked_again() -> None:
    assert "raise_error" not in replay(NEW)
    strict = replay(replace(NEW, required=("a",)))
    assert "CASE WHEN (`_action` = 'U') AND (`a` IS NULL) THEN raise_error(" in strict
    ordered = replay(replace(NEW, generation=Generation(2, "b", "c", "a")))
    assert "WHEN `a` IS NULL THEN raise_error(concat('AR-309|" in ordered


def test_the_columns_are_those_of_the_new_generation() -> None:
    sql = replay(NEW)
    assert "l.`ID` AS `id`,\n  CAST(NULL AS int) AS `a`" in sql
    assert "VERSION AS OF 77" in sql
    assert "VERSION AS OF 66" in sql


def test_keys_with_newer_rows_are_left_out_unless_a_sequence_decides() -> None:
    assert "LEFT ANTI JOIN" not in replay(NEW)
    assert "WHERE `_txn` IN (9) AND" in replay(NEW, 9)
    assert "LEFT ANTI JOIN" not in replay(replace(NEW, generation=Generation(2, "b", "c", "a")), 9)
