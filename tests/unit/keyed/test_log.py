"""The change log: what is to be read after a version, what was merged, what was consumed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.log import (
    PROPERTY_LOG,
    LogRange,
    consumed_versions,
    encode_log,
    encode_merged,
    find_transaction,
    has_rows,
    is_single,
    log_range,
    merged_transactions,
    versions_to_carry,
)
from dbt_arctic.keyed.version import FINGERPRINT, PART, Consumed, Version, decode_consumed, encode_consumed


@dataclass(frozen=True)
class Commit:
    snapshot_id: int
    parent_id: int | None
    operation: str = "append"
    summary: dict[str, str] = field(default_factory=dict)
    timestamp_ms: int = 0


def history(*commits: str) -> list[Commit]:
    """Newest first. ``a7`` appends the transaction 7, ``d`` trims, ``r`` rewrites files, ``e`` is empty."""
    made = []
    for number, text in enumerate(commits, 1):
        operation = {"a": "append", "d": "delete", "r": "replace", "e": "append"}[text[0]]
        summary = {"arctic.txn": text[1:]} if text[1:] else {}
        made.append(Commit(number, number - 1 or None, operation, summary))
    return made[::-1]


def test_a_range_has_its_transactions_oldest_first_and_where_to_read_them() -> None:
    log = history("e", "a1", "a9", "a5")
    assert log_range(log, 1) == LogRange((1, 9, 5), (4,))
    assert log_range(log, 3) == LogRange((5,), (4,))
    assert log_range(log, 4) == LogRange((), (4,))


def test_what_was_trimmed_since_is_read_from_just_before_the_trim() -> None:
    log = history("e", "a1", "a2", "d", "a3", "r", "d", "a4")
    assert log_range(log, 1) == LogRange((1, 2, 3, 4), (8, 6, 3))
    assert log_range(log, 3) == LogRange((3, 4), (8, 6)), "nothing of the range was there before the trim"


def test_commits_of_empty_batches_have_no_rows() -> None:
    def rows(commits: list[Commit], *added: str) -> bool:
        pairs = zip(commits, reversed(("0", *added)), strict=True)
        log = [replace(one, summary={**one.summary, "added-records": count}) for one, count in pairs]
        found = log_range(log, 1)
        assert found is not None
        return has_rows(found, log)

    assert rows(history("e", "a1", "a2"), "1", "0")
    assert not rows(history("e", "a1", "a2"), "0", "0")
    assert not rows(history("e"))
    assert rows(history("e", "a1", "a1"), "0", "3"), "a statement that arrived twice, once with rows"
    assert has_rows(LogRange((1,), (2,)), []), "nothing is known of an expired commit"


def test_a_range_is_single_if_its_rows_have_landed_once() -> None:
    def single(log: list[Commit], after: int) -> bool:
        found = log_range(log, after)
        assert found is not None
        return is_single(found, log)

    assert single(history("e", "a1", "a2"), 2)
    assert single(history("e", "a1", "d", "a2", "r"), 3)
    assert not single(history("e", "a1", "a2"), 1)
    assert not single(history("e", "a1", "d"), 1), "it is read at two snapshots"
    assert not single(history("e", "a1", "a1"), 2), "a statement that arrived again, after it was consumed"
    old = replace(history("a2")[0], summary={"arctic.txn": "2", PROPERTY_LOG: encode_log([(7, 2)])})
    assert not is_single(LogRange((2,), (1,)), [old]), "its first commit has expired"


def test_a_version_that_is_not_in_the_history_has_no_range() -> None:
    assert log_range(history("e", "a1"), 99) is None
    assert log_range([], 1) is None


@given(st.lists(st.sampled_from(["a", "d", "r", "e"]), min_size=1, max_size=12), st.data())
def test_every_row_of_a_range_is_readable_at_one_of_its_snapshots(kinds: list[str], data: Any) -> None:
    # A trim removes every transaction that was there, the worst that it can do.
    texts = [f"a{100 - number}" if kind == "a" else kind for number, kind in enumerate(kinds)]
    live: set[int] = set()
    rows: dict[int, set[int]] = {}
    for number, text in enumerate(texts, 1):
        live = {*live, int(text[1:])} if text[1:] else (set() if text == "d" else live)
        rows[number] = set(live)
    start = data.draw(st.integers(1, len(texts)))
    log = log_range(history(*texts), start)
    assert log is not None
    assert list(log.transactions) == [int(text[1:]) for text in texts[start:] if text[1:]]
    assert set(log.transactions) <= set().union(*(rows[at] for at in log.readable_at))


def test_merged_transactions_are_those_of_all_commits_or_of_settled_ones() -> None:
    base = [
        Commit(3, 2, "overwrite", {"arctic.merged": encode_merged([8, 7])}, timestamp_ms=300),
        Commit(2, 1, "overwrite", {"arctic.merged": "[5]"}, timestamp_ms=200),
        Commit(1, None, "append", {}, timestamp_ms=100),
    ]
    assert merged_transactions(base) == {5, 7, 8}
    assert merged_transactions(base, before_ms=299) == {5}
    assert merged_transactions(base, before_ms=300) == {5, 7, 8}
    assert merged_transactions(base, before_ms=150) == frozenset()


def test_the_newest_commit_with_consumed_versions_determines_them() -> None:
    old, new = {"l.s.a": Consumed("t", "1.2.3")}, {"l.s.a": Consumed("t", "1.5.3")}
    log = [
        Commit(4, 3, "delete", {}),
        Commit(3, 2, "append", {"arctic.consumed": encode_consumed(new)}),
        Commit(2, 1, "append", {"arctic.consumed": encode_consumed(old)}),
    ]
    assert consumed_versions(log) == new
    assert consumed_versions(log[2:]) == old
    assert consumed_versions([]) == {}


def test_a_transaction_is_found_by_its_number_alone() -> None:
    log = history("e", "a71", "a7")
    assert find_transaction(log, 7) is log[0]
    assert find_transaction(log, 1) is None


names = st.text(max_size=20)


@given(st.dictionaries(names, st.builds(Consumed, names, names), max_size=4))
def test_consumed_versions_survive_a_snapshots_summary(consumed: dict[str, Consumed]) -> None:
    assert decode_consumed(encode_consumed(consumed)) == consumed


def test_a_version_is_a_token_and_nothing_else_is() -> None:
    version = Version(3, 17, 5)
    assert Version.parse(f" {version} ") == version
    for text in ("", "1.2", "1.2.3.4", "a.b.c", "-1.2.3", "1.2.3;"):
        with pytest.raises(ConfigError, match="table_version"):
            Version.parse(text, "orders")


def test_what_is_carried_on_after_other_writes_says_of_a_part_that_it_is_one() -> None:
    recorded = {name: Consumed("id", "1") for name in ("lake.shop.orders", FINGERPRINT, PART)}
    refresh = Commit(1, None, summary={"arctic.txn": "1", "arctic.consumed": encode_consumed(recorded)})
    other = Commit(2, 1, summary={"arctic.txn": "2"})
    assert versions_to_carry([refresh]) == recorded
    assert set(versions_to_carry([other, refresh])) == {"lake.shop.orders", PART}
