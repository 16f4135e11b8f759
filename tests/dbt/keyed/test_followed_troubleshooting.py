"""The page on troubleshooting: each symptom is produced, and the remedy of its row ends it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.dbt.keyed.conftest import Shop, Terminal
from tests.pages import HOW_TO, table

pytestmark = pytest.mark.long

PAGE = HOW_TO / "troubleshooting.md"
KEYED = "{{ config(materialized='incremental', unique_key='id'MORE) }}\n"
FILES = """
sources:
  - name: landing
    tables:
      - name: clicks
        config: {meta: {arctic: {from: files, path: landing, format: csv, columns: {id: bigint}MORE}}}
"""


def remedies() -> dict[str, str]:
    """The row of each code that the page explains."""
    rows = table(PAGE, "symptom", "It fails").rows
    return {match[0]: row[1] for row in rows if (match := re.search(r"AR-\d{3}", row[1]))}


def keyed(shop: Shop, sql: str, more: str = "") -> None:
    shop.model("keyed", KEYED.replace("MORE", more) + sql)


def null_key(shop: Shop) -> Callable[[], None]:
    sql = "select id from values (1), (null) as t(id)"
    keyed(shop, sql)
    return lambda: keyed(shop, f"{sql} where id is not null")


def doubled_key(shop: Shop) -> Callable[[], None]:
    sql = "select id, at from values (1, 1), (1, 2) as t(id, at)"
    keyed(shop, sql)
    return lambda: keyed(shop, sql, ", deduplicate_by='at'")


def changed_file(shop: Shop) -> Callable[[], None]:
    shop.file("models/sources.yml", FILES.replace("MORE", ""))
    shop.file("landing/a.csv", "id\n1\n")
    keyed(shop, "select id from {{ incremental_pull(source('landing', 'clicks')) }}")
    shop.dbt("run")
    shop.file("landing/a.csv", "id\n1\n22\n")
    return lambda: shop.file("models/sources.yml", FILES.replace("MORE", ", changed_files: reread"))


@pytest.mark.parametrize(
    ("code", "produce"), [("AR-303", null_key), ("AR-304", doubled_key), ("AR-310", changed_file)]
)
def test_an_error_ends_with_the_remedy_of_its_row(
    shop: Shop, code: str, produce: Callable[[Shop], Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.folder)
    remedy = produce(shop)
    told = shop.fail("run")
    assert code in told
    settings = re.findall(r"`(\w+_\w+)`", remedies()[code])
    assert not settings or any(one in told for one in settings), "the error names a setting of the page"
    remedy()
    shop.dbt("run")
    assert shop.rows("keyed", "id")[0] == (1,)


def test_an_expired_version_is_refused_and_a_savepoint_keeps_one(
    shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "AR-403" in remedies()
    monkeypatch.setattr("dbt_arctic.cli.expire.MIN_AGE_MS", 0)
    for day in range(3):
        keyed(shop, f"select id, {day} as day from range(2)")
        shop.dbt("run")
        if day == 0:
            type_in("savepoint", "keyed", "first")
    middle = type_in.json("history", "keyed")[1]["version"]
    type_in("expire", "keyed", "--older-than", "0s", "--yes")
    read = "select day from {{ at_version(ref('keyed'), '%s') }}"
    shop.model("reader", read % middle)
    assert "AR-403" in shop.fail("run", "--select", "reader")
    shop.model("reader", read % "first")
    shop.dbt("run", "--select", "reader")
    assert {day for (day,) in shop.rows("reader")} == {0}


def test_a_deleted_row_stays_downstream_without_its_action(shop: Shop) -> None:
    (row,) = (
        one for one in table(PAGE, "symptom", "The rows are not what I expect").rows if "deleted" in one[0]
    )
    assert "`_action`" in row[1]
    shop.source("raw_orders", "select id, false as gone from range(2)")
    shop.model(
        "orders",
        KEYED.replace("MORE", ", delete_when='gone'") + "select * from {{ source('raw', 'raw_orders') }}",
    )
    for name, column in (("without", ""), ("within", ", _action")):
        shop.model(
            name,
            KEYED.replace("MORE", "") + f"select id{column} from {{{{ incremental_pull(ref('orders')) }}}}",
        )
    shop.dbt("run")
    shop.source("raw_orders", "select 1L as id, true as gone")
    shop.dbt("run")
    assert (shop.rows("without"), shop.rows("within")) == ([(0,), (1,)], [(0,)])


def test_the_commands_for_slow_reads_and_full_disks_do_what_the_page_says(
    shop: Shop, type_in: Terminal
) -> None:
    keyed(shop, "select id, id as n from range(2000)")
    for _ in range(3):
        shop.dbt("run")
    (before,) = type_in.json("status", "keyed")
    type_in("compact", "keyed", "--kind", "full")
    (after,) = type_in.json("status", "keyed")
    assert after["read_amplification"] < before["read_amplification"]
    type_in("expire", "keyed", "--older-than", "1h", "--yes")
    type_in("clean", "--files", "--dry-run")
    assert type_in.json("verify")["findings"] == []
