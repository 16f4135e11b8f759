"""What is computed from the table, and what maintains it, with a catalog that answers twice, late or never.

As in ``test_catalog_trouble.py``, of which this is the second part. In the long form, too, what goes
through the same computed write has the kinds of trouble in turn. What is left out of the short form is had
there by the stories of ``tests/model``, and of erasures by ``test_erase.py``, which cuts them off.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.maintenance.adopt import adopt_table, finish_adoption, plan_adoption
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import make_savepoint
from dbt_arctic.maintenance.versions import list_savepoints, rows_at
from tests.spark.keyed.injected_failures import IN_TURN, ROWS, WAYS, amounts
from tests.spark.keyed.test_adopt import findings
from tests.spark.keyed.test_erase import traces
from tests.spark.keyed.test_modify import modify_orders
from tests.spark.keyed.test_overwrite import replace_by

NOTED = {"id": "bigint", "amount": "int", "note": "string"}


def noted(orders: Any) -> dict[int, tuple[int, str]]:
    found = orders.rows()
    made = {row["id"]: (row["amount"], row["note"]) for row in found}
    assert len(found) == len(made), "a key twice"
    return made


@pytest.fixture
def orders(shop: Any) -> Any:
    """Rows in the base, and rows with a change."""
    made = shop.table(types=NOTED)
    made.build([{"id": number, "amount": number, "note": "a"} for number in range(3)])
    made.upsert([{"id": number, "amount": number, "note": "b"} for number in range(2, 4)])
    return made


@pytest.mark.modelled
@WAYS
def test_updates_deletes_and_merges(orders: Any, troubled: Any, ways: Sequence[str]) -> None:
    model = noted(orders)
    for at, attempt in troubled(*ways):
        key = at % 4
        orders.upsert([{"id": key, "amount": 100 + at, "note": "c"}, {"id": 9, "amount": at, "note": "gone"}])
        model |= {key: (100 + at, "c")}
        sql, changed = [
            (f"UPDATE {{t}} SET note = 'u{at}' WHERE id = {key}", {key: (100 + at, f"u{at}")}),
            (f"DELETE FROM {{t}} WHERE id = {key}", {}),
            (
                f"MERGE INTO {{t}} AS t USING (SELECT {key}L AS id) AS s ON t.id = s.id "
                f"WHEN MATCHED THEN UPDATE SET note = 'm{at}' "
                "WHEN NOT MATCHED BY SOURCE AND t.id = 9 THEN DELETE",
                {key: (100 + at, f"m{at}")},
            ),
        ][at % 3]
        model.pop(key)
        model |= changed
        attempt(lambda session, sql=sql: modify_orders(orders, sql, session))
        modify_orders(orders, sql)
        modify_orders(orders, "DELETE FROM {t} WHERE id = 9")
        attempt.land()
        assert noted(orders) == model
    orders.compact()
    assert noted(orders) == model


@pytest.mark.long
def test_upserts_of_some_columns(orders: Any, troubled: Any) -> None:
    narrow = orders.with_types({"id": "bigint", "amount": "int"}).configured(merge_update_columns=["amount"])
    model = noted(orders)
    for at, attempt in troubled(*IN_TURN):
        batch = [{"id": 1, "amount": 100 + at}]
        attempt(lambda session, batch=batch: narrow.on(session).upsert(batch))
        # Another column changes before the run is repeated, and stays changed.
        orders.upsert([{"id": 1, "amount": 0, "note": f"n{at}"}])
        narrow.upsert(batch)
        attempt.land()
        model[1] = (100 + at, f"n{at}")
        assert noted(orders) == model


@pytest.mark.long
def test_overwrites(orders: Any, troubled: Any) -> None:
    for at, attempt in troubled(*IN_TURN):
        orders.upsert([{"id": 50 + at, "amount": 1, "note": "goes"}])
        batch = [{"id": number, "amount": at, "note": "o"} for number in (1, 2, 20 + at)]
        attempt(lambda session, batch=batch: replace_by(orders, batch, session))
        replace_by(orders, batch)
        attempt.land()
        assert noted(orders) == {row["id"]: (row["amount"], row["note"]) for row in batch}
    orders.compact()
    assert noted(orders) == {row["id"]: (row["amount"], row["note"]) for row in batch}


@pytest.mark.long
def test_rollbacks_to_savepoints(shop: Any, troubled: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    model = amounts(orders)
    context = shop.main.context
    for at, attempt in troubled(*IN_TURN):
        name = f"kept{at}"
        attempt(lambda session, name=name: make_savepoint(session.context, orders.name, name))
        with suppress(ConfigError):  # it is there already
            make_savepoint(context, orders.name, name)
        attempt.land()
        assert name in list_savepoints(shop.main.catalog, orders.table)
    for at, attempt in troubled(*IN_TURN[1:], IN_TURN[0]):
        orders.apply([{"id": 1, "amount": 100 + at}, {"id": 50 + at, "amount": 1}], [{"id": 2}])
        changed = amounts(orders)
        if not attempt(lambda session: roll_back(session.context, orders.name, "kept0")):
            assert amounts(orders) in (changed, model)
            roll_back(context, orders.name, "kept0")
        attempt.land()
        assert amounts(orders) == model
    then = rows_at(shop.main.catalog, orders.name, "kept0", "test")
    assert {row["id"]: row["amount"] for row in shop.main.read(then, ["id", "amount"])} == model


@WAYS
@pytest.mark.long
def test_evolutions(shop: Any, troubled: Any, ways: Sequence[str]) -> None:
    """A column is added and another dropped in one run."""
    orders = shop.table(types={"id": "bigint", "c": "string"}, on_schema_change="sync_all_columns")
    orders.build([{"id": 1, "c": "old"}, {"id": 2, "c": "old"}])
    for at, attempt in troubled(*ways):
        column = f"c{at}"
        evolved = orders.with_types({"id": "bigint", column: "string"})
        batch = [{"id": 1, column: "new"}]
        attempt(lambda session, evolved=evolved, batch=batch: evolved.on(session).upsert(batch))
        if at % 2:
            orders.with_types(dict.fromkeys(orders.table.column_names, "")).compact()
        evolved.upsert(batch)
        attempt.land()
        assert evolved.rows() == [*batch, {"id": 2, column: None}]
    evolved.compact()
    assert evolved.base_rows() == [*batch, {"id": 2, column: None}]


@pytest.mark.long
def test_erasures(shop: Any, schema: str, warehouse: Path, troubled: Any) -> None:
    orders = shop.table()
    orders.build(ROWS)
    copy = shop.consumer("copy", orders)
    copy.run()
    model = amounts(orders)

    def erase_at(session: Any) -> Any:
        return erase_keys(
            session.context, plan_by_values(session.context, orders.name, [("id", "777001")]), force=True
        )

    for at, attempt in troubled(*IN_TURN, every=2):
        orders.upsert([{"id": 777_001, "amount": 1}, {"id": 20 + at, "amount": at}])
        model[20 + at] = at
        if at % 4:
            orders.compact(grace=3600)
        attempt(erase_at)
        orders.upsert([{"id": 20 + at, "amount": at}])
        erase_at(shop.main)
        attempt.land()
        assert amounts(orders) == model
    assert [path for path in traces(warehouse, schema, 777_001) if not path.startswith("copy")] == []
    copy.run()
    assert {row["id"]: row["amount"] for row in copy.rows() if row["id"] != 777_001} == model
    assert findings(shop, schema) == set()


@pytest.mark.modelled
@WAYS
def test_adoptions(shop: Any, schema: str, warehouse: Path, troubled: Any, ways: Sequence[str]) -> None:
    # From the step on that reads the keys: earlier steps change nothing that a reader sees.
    for at, attempt in troubled(*ways, first=5):
        orders = shop.table(f"orders{at}", buckets=None)
        shop.main.query(
            f"CREATE TABLE {orders.name.sql} USING iceberg "
            "AS SELECT id, CAST(id AS INT) AS amount FROM range(4)"
        )

        def adopt_at(session: Any, orders: Any = orders) -> None:
            if finish_adoption(session.context, orders.name) is None:
                adopt_table(session.context, plan_adoption(session.context, orders.name, ["id"]))

        attempt(adopt_at)
        with suppress(ConfigError):  # it has a key already
            adopt_at(shop.main)
        attempt.land()
        orders.upsert([{"id": 1, "amount": 10}])
        if at % 2:
            orders.compact()
        assert amounts(orders) == {0: 0, 1: 10, 2: 2, 3: 3}
    assert findings(shop, schema) == set()
