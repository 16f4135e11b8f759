"""A commit of a part of the rows of a pull: what it records and checks, and whether it is published."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PART, Consumed, decode_consumed, encode_consumed
from dbt_arctic.store.branches import changes_rows
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context

DAILY = Name("lake", "shop", "daily")
ORDERS = {"lake.shop.orders": Consumed("id", "1.0.1")}
MARK = {PART: Consumed("", "")}


def table(summary: dict[str, str]) -> TableState:
    """A table whose branch has one commit after main."""
    first = {"arctic.consumed": encode_consumed(ORDERS), "added-data-files": "1"}
    commits = (Snapshot(1, None, 1, 1, "append", first), Snapshot(2, 1, 2, 2, "overwrite", summary))
    return TableState("shop", "daily", "", {}, (), commits, 1, {"main": 1, "b": 2})


def test_a_part_is_recorded_without_versions_and_over_any_state() -> None:
    part, whole = Consumption({}, MARK), Consumption({}, ORDERS)
    assert (part.is_part, part.pulls) == (True, False)
    assert (whole.is_part, whole.pulls) == (False, True)
    assert (Consumption().is_part, Consumption().pulls) == (False, False)
    assert decode_consumed(part.properties()["arctic.consumed"]) == MARK
    part.check(table({}), "daily", DAILY)
    with pytest.raises(ConcurrentRun):
        whole.check(table({}), "daily", DAILY)


@pytest.mark.parametrize(
    ("summary", "changed"),
    [
        ({"added-data-files": "1"}, True),
        ({"deleted-data-files": "2"}, True),
        ({"added-delete-files": "1"}, True),
        ({"added-data-files": "0"}, False),
        ({"total-records": "7"}, False),
    ],
)
def test_a_branch_without_changed_files_has_nothing_to_publish(
    summary: dict[str, str], changed: bool
) -> None:
    class Catalog(OneCatalog):
        def load_table(self, schema: str, identifier: str) -> Any:
            return table(summary)

    context = Context(Catalog(), lambda step, sql, table=None: None, list, list)  # type: ignore[arg-type,abstract]
    assert changes_rows(context, DAILY, "b", 1) == changed
    assert changes_rows(context, DAILY, "dropped", 1)
