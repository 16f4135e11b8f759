"""A key that was erased is in no file any more; every other key, and every consumer, is as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
from pyiceberg.avro.file import AvroFile

from dbt_arctic.adapter.operator import size_of
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.manifests import _BytesInput
from dbt_arctic.maintenance.erase import Erased, erase
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.verify import verify_schema

Row = dict[str, Any]
KEY = 777_001
"""No bucket's marker has it, and nothing else in a manifest looks like it."""
ROWS = [{"id": number, "amount": number} for number in (*range(4), KEY)]


def erase_key(orders: Any, *keys: int, force: bool = False, at: Any = None) -> Erased:
    edge = (at or orders.session).edge
    plan = plan_by_values(edge, orders.name, [("id", str(key)) for key in keys or (KEY,)])
    return erase(edge, plan, force, lambda path: size_of(path) is not None)


def traces(warehouse: Path, schema: str, key: int = KEY, column: str = "id") -> list[str]:
    """Files of a schema, whatever names them, that hold the key: rows, and bounds in manifests."""
    found = []
    for path in sorted((warehouse / schema).rglob("*.parquet")):
        if key in parquet.ParquetFile(path).read([column])[column].to_pylist():
            found.append(path.name)
    for path in sorted((warehouse / schema).rglob("*.avro")):
        if key in _bounds(path):
            found.append(path.name)
    return found


def _bounds(path: Path) -> set[int]:
    def numbers(value: Any) -> Iterator[int]:
        if isinstance(value, bytes) and len(value) == 8:
            yield int.from_bytes(value, "little", signed=True)
        elif isinstance(value, dict):
            for inner in value.values():
                yield from numbers(inner)
        elif hasattr(value, "_data") or isinstance(value, (list, tuple)):
            for inner in getattr(value, "_data", value):
                yield from numbers(inner)

    with AvroFile[Any](_BytesInput(str(path), path.read_bytes())) as entries:
        return {number for entry in entries for number in numbers(entry)}


def findings(shop: Any, schema: str, warehouse: Path) -> list[str]:
    catalog = EmbeddedCatalog("lake", warehouse)
    inventory = take_inventory(catalog, "lake", schema)
    found = verify_schema(catalog, inventory, shop.main.edge.now_ms(), size_of, shop.main.query)
    return [f"{finding.kind}: {finding.what}" for finding in found]


def test_a_key_goes_from_every_version_and_file_and_nothing_else_does(
    shop: Any, schema: str, warehouse: Path
) -> None:
    orders = shop.table()
    orders.build(ROWS)
    orders.build(ROWS)  # the generation before holds it too
    orders.apply([{"id": KEY, "amount": 1}, {"id": 1, "amount": 10}], [{"id": 2}])
    orders.compact(grace=3600)  # merged, and still pending
    orders.upsert([{"id": KEY, "amount": 2}])
    orders.compact()  # hidden in both by deletion vectors, but there
    orders.upsert([{"id": 3, "amount": 30}, {"id": KEY, "amount": 3}])
    assert traces(warehouse, schema)
    expected = [row for row in orders.rows() if row["id"] != KEY]

    done = erase_key(orders)
    assert orders.rows() == expected
    assert traces(warehouse, schema) == []
    assert done.left == () and done.removed == ()
    assert [(side.name.identifier, side.rows) for side in done.sides] == [
        ("orders__base_2", 1),
        ("orders__change_2", 1),
        ("orders__base_1", 1),
        ("orders__change_1", 0),
    ]
    assert all(side.versions > 0 for side in done.sides)
    assert findings(shop, schema, warehouse) == []
    assert erase_key(orders).plan.sides[0].rows == 0, "there is nothing left to do, and it does no harm"

    orders.upsert([{"id": 9, "amount": 9}])
    orders.compact()
    assert orders.rows() == sorted([*expected, {"id": 9, "amount": 9}], key=lambda row: row["id"])
    assert orders.base_rows() == orders.rows()
    assert findings(shop, schema, warehouse) == []
