"""When a refresh is verified, what is recorded, and when a difference counts as repaired."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dbt_arctic.auto.timings import note
from dbt_arctic.auto.verification_log import PROPERTY_VERIFIED, Verified, record_sql, recorded, unrepaired
from dbt_arctic.auto.verified_sample import Compared, differing_values
from dbt_arctic.auto.verify_refresh import is_waiting
from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.refresh.auto_config import MOST_KEYS, Sampling, parse_auto

TABLE = KeyedTable(
    Name("lake", "shop", "m"),
    Generation(1, "base-1", "change-1"),
    ("id",),
    Layout(1, "id", (), ("id",)),
    (Column("id", "bigint"),),
)
EQUAL = Verified(3, 3_000, "equal", 40, 0, 1.5)


def commit(number: int, strategy: str = "incremental", seconds: float = 1.0, reason: str = "") -> Snapshot:
    at = number * 100_000
    assert strategy in ("incremental", "full")
    summary = note(strategy, at - round(1000 * seconds), 1, reason)  # type: ignore[arg-type]
    return Snapshot(number, number - 1 or None, number, at, "append", summary)


def history(*commits: Snapshot) -> list[Snapshot]:
    return sorted(commits, key=lambda one: -one.snapshot_id)


BUILD = commit(1, "full")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1%", Sampling(share=0.001)),
        (" 5 % every 3", Sampling(share=0.05, every=3)),
        (50, Sampling(keys=50)),
        ("50", Sampling(keys=50)),
        ("2 keys every 10", Sampling(keys=2, every=10)),
        ("100%", Sampling(share=1.0)),
        (None, None),
        (False, None),
    ],
)
def test_a_sample_is_a_share_or_a_number_of_keys(value: object, expected: Sampling | None) -> None:
    assert parse_auto("m", {"verify": value}).verify == expected


@pytest.mark.parametrize(
    "value", [True, 0, 1, MOST_KEYS + 1, 0.5, "0%", "101%", "often", "5% every 0", ["5%"], ""]
)
def test_another_value_is_an_error(value: object) -> None:
    with pytest.raises(ConfigError, match="verify is"):
        parse_auto("m", {"verify": value})


def test_a_sample_has_a_bounded_number_of_keys() -> None:
    share = Sampling(share=0.1)
    assert [share.size(rows) for rows in (None, 0, 5, 500, 10**9)] == [MOST_KEYS, 2, 2, 50, MOST_KEYS]
    assert Sampling(keys=7).size(10**9) == 7


def test_every_nth_incremental_refresh_is_due() -> None:
    sampling = Sampling(keys=2, every=2)
    one, two = commit(2), commit(3)
    assert is_waiting(sampling, history(BUILD, one, two), []) is None
    waiting = is_waiting(sampling, history(BUILD, one), [])
    assert waiting is not None
    assert (waiting.result, waiting.why) == (
        "not due",
        "1 of 2 incremental refreshes since the last verification",
    )
    # Full refreshes do not count, but those that read all rows of a small auxiliary view do.
    assert is_waiting(sampling, history(BUILD, one, commit(3, "full", reason="guard")), []) is not None
    assert is_waiting(sampling, history(BUILD, one, commit(3, "full", reason="small")), []) is None
    assert is_waiting(sampling, history(BUILD, one, two, commit(4)), [EQUAL]) is not None
    assert is_waiting(sampling, history(BUILD, one, two, commit(4), commit(5)), [EQUAL]) is None
    # Commits have expired: their number is unknown.
    assert is_waiting(sampling, [commit(9)], [EQUAL]) is None


def test_verifications_take_no_longer_than_the_refreshes() -> None:
    slow = replace(EQUAL, seconds=60.0)
    commits = history(BUILD, commit(2), commit(3), commit(4, seconds=35.0))
    waiting = is_waiting(Sampling(keys=2), commits, [slow])
    assert waiting is not None
    assert waiting.result == "postponed"
    assert "60 s" in waiting.why
    assert "35 s" in waiting.why
    assert is_waiting(Sampling(keys=2), [commit(5, seconds=35.0), *commits], [slow]) is None
    assert is_waiting(Sampling(keys=2), commits, [replace(EQUAL, seconds=4.0)]) is None
    assert is_waiting(Sampling(keys=2), history(BUILD, commit(4)), [replace(slow, snapshot=1)]) is not None


def test_a_record_is_read_as_it_was_written_and_old_ones_are_dropped() -> None:
    known: list[Verified] = []
    for number in range(30):
        new = replace(EQUAL, snapshot=9 * 10**18 + number, why='it\'s `odd`, \\n "so"')
        sql = record_sql(TABLE, known, new)
        found = re.fullmatch(r"ALTER TABLE .* SET TBLPROPERTIES \('arctic.verified' = '(.*)'\)", sql)
        assert found is not None
        text = found[1].replace("\\'", "'").replace("\\\\", "\\")
        known = recorded({PROPERTY_VERIFIED: text})
        assert known[0] == new
    assert len(known) == 20
    assert recorded({}) == []


def test_a_difference_counts_until_a_newer_full_refresh() -> None:
    differs = Verified(3, commit(3).timestamp_ms, "different", 40, 2)
    later = replace(EQUAL, snapshot=4)
    properties = dict([re.findall(r"'(.*?)'", record_sql(TABLE, [differs], later))[:2]])
    wrong = history(commit(1, "full"), commit(2), commit(3))
    assert unrepaired(properties, wrong) == differs
    assert unrepaired(properties, [commit(4), *wrong]) == differs, "an incremental refresh repairs nothing"
    assert unrepaired(properties, [commit(5), commit(4, "full", reason="differed"), *wrong]) is None
    assert unrepaired({}, wrong) is None


def test_a_null_differs_from_a_number_in_a_column_that_is_compared_with_a_tolerance() -> None:
    """A comparison with NULL is neither true nor false, and would hide the row."""
    compared = Compared((Column("id", "bigint"),), (Column("f", "double"),))
    sql = differing_values("SELECT 1", "SELECT 1", ("id",), compared)
    assert sql.count("coalesce((n.`f` <=> o.`f` OR") == 2
