"""What an automatic model reads changes by whatever wrote it, and is followed without a full refresh."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.store.consumption import Consumption
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders, Row

TYPES = {"id": "bigint", "day": "date", "amount": "int"}


def row(key: int, day: int, amount: int) -> Row:
    return {"id": key, "day": f"2020-01-{day:02}", "amount": amount}


class Following:
    """Two models over one table: its rows, and their sums by day."""

    def __init__(self, orders: Orders) -> None:
        self.by_key = Model(orders, "id", f"SELECT id, day, amount * 2 AS twice FROM {orders.name.sql}")
        self.sums = Model(
            orders,
            "day",
            f"SELECT day, sum(amount) AS amount, count(*) AS n FROM {orders.name.sql} GROUP BY day",
        )
        self.sums.name = orders.name.sibling("sums")
        self.refresh()

    def refresh(self) -> list[str]:
        """The message of each refresh, after its rows are checked. Records the statements."""
        statements = self.by_key.session.statements
        before = len(statements.ran)
        told = [model.refresh() for model in (self.by_key, self.sums)]
        for model in (self.by_key, self.sums):
            assert model.rows() == model.rows(model.sql)
        self.ran = [one.sql for one in statements.ran[before:]]
        return told


def differing(before: list[Row], after: list[Row]) -> int:
    """How many keys have another row, or none, or had none."""
    old, new = ({one["id"]: one for one in rows} for rows in (before, after))
    return sum(old.get(key) != new.get(key) for key in old.keys() | new.keys())


@pytest.mark.modelled
def test_a_batch_that_replaces_rows_is_followed_by_the_keys_that_it_changed(shop: Any) -> None:
    """Of the strategy ``insert_overwrite``, then of ``microbatch``."""
    orders = shop.table(types=TYPES, partition_by="day")
    context = shop.main.context
    orders.build([row(1, 1, 1), row(2, 1, 2), row(3, 2, 3), row(4, 2, 4), row(5, 3, 5), row(6, 3, 6)])
    models = Following(orders)

    def followed(write: Any) -> None:
        before = orders.rows()
        write()
        changed = differing(before, orders.rows())
        assert changed == 4
        assert models.refresh() == [f"INCREMENTAL ({changed} keys)", "INCREMENTAL (sums)"]

    # Of the second day 3 stays as it is, 4 is gone, 1 moves into it, 7 and 8 are new.
    replaced = orders.model([row(3, 2, 3), row(1, 2, 10), row(7, 2, 7), row(8, 2, 8)])
    config = parse_config("orders", {**orders.config, "incremental_strategy": "insert_overwrite"})
    followed(lambda: overwrite(context, orders.name, config, replaced, Consumption()))
    # 1, 3 and 7 are gone, 8 is another, and 5 is not of the day.
    batch, day = orders.model([row(8, 2, 80)]), Interval.of("day", "2020-01-02", "2020-01-03")
    config = parse_config("orders", {**orders.config, "incremental_strategy": "microbatch"})
    followed(lambda: replace_keys(context, orders.name, config, batch, day))


@pytest.mark.modelled
def test_a_keyed_table_that_was_built_anew_is_compared_with_what_it_was(shop: Any) -> None:
    """As long as that is there: the one generation before."""
    orders = shop.table(types=TYPES)
    days = [row(key, key % 3 + 1, key) for key in range(12)]
    orders.build(days)
    orders.upsert([row(12, 1, 12)])  # pending when it was read last
    models = Following(orders)
    before, retired = orders.rows(), orders.table.base
    orders.build([row(0, 1, 50), *days[2:], row(20, 3, 20)])
    orders.upsert([row(7, 1, 7)])
    changed = differing(before, orders.rows())
    assert models.refresh() == [f"INCREMENTAL ({changed} keys)", "INCREMENTAL (sums)"]
    assert changed == 5
    compared = [sql for sql in models.ran if "EXCEPT ALL" in sql]
    assert any(retired.identifier in sql for sql in compared)
    # The next change is read from the log again.
    orders.upsert([row(3, 2, 33)])
    assert models.refresh() == ["INCREMENTAL (1 key)", "INCREMENTAL (sums)"]
    assert not any("EXCEPT ALL" in sql for sql in models.ran)
    for amount in (1, 2):
        orders.build([row(0, 1, amount)])
    assert models.refresh() == ["FULL (history-gone)"] * 2


def test_rows_that_were_only_added_to_a_plain_table_are_told_by_their_numbers(shop: Any) -> None:
    """Its old state is neither read nor compared. A table with updates is compared."""
    plain = Orders(shop.main, shop.main.name("plain"), TYPES, {})
    query = shop.main.query
    query(
        f"CREATE TABLE {plain.name.sql} (id BIGINT, day DATE, amount INT) USING iceberg "
        "TBLPROPERTIES ('format-version' = '3')"
    )

    def add(*keys: int) -> None:
        query(f"INSERT INTO {plain.name.sql} {plain.model([row(key, key % 3 + 1, key) for key in keys])}")

    def snapshot() -> str:
        state = shop.main.catalog.load_table(plain.name.schema, plain.name.identifier)
        return str(state.current_snapshot_id)

    def reads(snapshot: str) -> bool:
        return any(snapshot in sql for sql in models.ran)

    add(1, 2, 3)
    models = Following(plain)
    before = snapshot()
    add(4, 5)
    rewritten = f"table => '{plain.name.schema}.plain', options => map('rewrite-all', 'true')"
    query(f"CALL lake.system.rewrite_data_files({rewritten})")
    add(6)
    now = snapshot()
    assert models.refresh() == ["INCREMENTAL (3 keys)", "INCREMENTAL (sums)"]
    assert reads(now)
    assert not reads(before)
    assert not any("EXCEPT ALL" in sql for sql in models.ran)
    query(f"UPDATE {plain.name.sql} SET amount = 50 WHERE id = 2")
    assert models.refresh() == ["INCREMENTAL (1 key)", "INCREMENTAL (sums)"]
    assert reads(now)
    assert any("EXCEPT ALL" in sql for sql in models.ran)
