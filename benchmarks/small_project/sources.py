"""The source tables, and changes of one per cent of them: four of five are updates, one is an insert."""

from __future__ import annotations

from collections.abc import Callable

SCHEMA = "raw"
ROWS = {"customers": 1_000, "products": 2_000, "orders": 20_000, "lines": 100_000, "events": 50_000}

_COLUMNS = {
    "customers": "CONCAT('customer ', id, ' ', {n}) AS name, "
    "CONCAT('region ', PMOD(XXHASH64(id, {n}), 5)) AS region",
    "products": "CONCAT('product ', id) AS title, CONCAT('category ', PMOD(XXHASH64(id), 20)) AS category, "
    "CAST(PMOD(XXHASH64(id, {n}), 100) + 1 AS INT) AS price",
    "orders": "PMOD(XXHASH64(id), 1000) AS customer_id, "
    "ELEMENT_AT(ARRAY('open', 'paid', 'sent', 'back'), CAST(PMOD(XXHASH64(id, {n}), 4) + 1 AS INT)) "
    "AS status, "
    "DATE_ADD(DATE '2026-01-01', CAST(PMOD(XXHASH64(id), 300) AS INT)) AS ordered_on",
    "lines": "PMOD(XXHASH64(id), 20000) AS order_id, PMOD(XXHASH64(id, 7), 2000) AS product_id, "
    "CAST(PMOD(XXHASH64(id, {n}), 9) + 1 AS INT) AS quantity, PMOD(XXHASH64(id, {n}, 1), 10000) AS amount",
    "events": "PMOD(XXHASH64(id), 1000) AS customer_id, "
    "ELEMENT_AT(ARRAY('view', 'click'), CAST(PMOD(XXHASH64(id, {n}), 2) + 1 AS INT)) AS kind, "
    "DATE_ADD(DATE '2026-01-01', CAST(PMOD(XXHASH64(id), 300) AS INT)) AS happened_on",
}


def create(run: Callable[[str], object], scale: float) -> None:
    """Create the source tables.

    :param scale: 1 for the numbers of rows above.
    """
    run(f"CREATE SCHEMA IF NOT EXISTS lake.{SCHEMA}")
    for name, rows in ROWS.items():
        select = _rows(name, 0, f"SELECT id FROM RANGE({round(rows * scale)})")
        run(f"CREATE TABLE lake.{SCHEMA}.{name} USING iceberg AS {select}")


def change(run: Callable[[str], object], scale: float, number: int) -> None:
    """Change one per cent of the rows of each table.

    :param number: of the round, from 1 on.
    """
    for name, unscaled in ROWS.items():
        rows = round(unscaled * scale)
        updates, inserts = max(1, rows * 8 // 1000), max(1, rows * 2 // 1000)
        first = rows + (number - 1) * inserts
        ids = (
            f"SELECT PMOD(XXHASH64(id, {number}), {rows}) AS id FROM RANGE({updates}) "
            f"UNION SELECT id FROM RANGE({first}, {first + inserts})"
        )
        run(
            f"MERGE INTO lake.{SCHEMA}.{name} AS t USING ({_rows(name, number, ids)}) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


def _rows(name: str, number: int, ids: str) -> str:
    at = f"TIMESTAMP '2026-01-01' + MAKE_INTERVAL(0, 0, 0, {number}) AS updated_at"
    return f"SELECT id, {_COLUMNS[name].format(n=number)}, {at} FROM ({ids})"
