"""Each operation while the disk fills up or becomes read-only before one of its statements.

Run by ``test_disk.py`` in a process of its own. The operation ends with an error that names the disk, and
the table reads as before; once the disk is well the same operation succeeds, and rows equal a dict. Where
the trouble begins, and which of its kinds it is, changes from attempt to attempt.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.target_session import size_of
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.errors import ArcticError, CatalogUnavailable, DiskError
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.key_values import ColumnValue
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.verify import verify_schema
from tests.extent import extent
from tests.faults.disks import KINDS, Disk, make_catalog
from tests.spark.keyed.conftest import Orders, Session, Shop, Spark
from tests.spark.keyed.test_erase import traces

Model = dict[int, int]
SCHEMA = "troubled"
MOST = 40
STEP = extent(3, 2)
EVEN, ODD = range(0, MOST, STEP), range(1, MOST, STEP)
"""Every second statement, or every third one; the next operation has those in between."""


@pytest.fixture(scope="module")
def shop(engine: SessionEngine, warehouse: Path) -> Iterator[Shop]:
    make_catalog(warehouse)
    keeper = engine.connect()
    keeper.cursor().execute(f"CREATE SCHEMA lake.{SCHEMA}")
    keeper.close()
    made = Shop(Spark(engine, warehouse), SCHEMA)
    # Libraries that Java unpacks when it first needs them would be missing for good where that failed.
    warm = made.table("warm")
    warm.build([{"id": 1, "amount": 1}])
    warm.rows()
    yield made
    made.close()


@pytest.fixture(scope="module")
def disk(shop: Shop, warehouse: Path) -> Disk:
    return Disk(warehouse, shop.main.connection.process.context._gateway.proc.pid)


@pytest.fixture
def troubled(shop: Shop, disk: Disk) -> Callable[..., None]:
    """``run(session)`` in trouble from one statement on, one later each time, until it has no such statement.

    ``read()`` is what a user sees: as before or, where the trouble came too late to matter, as it is wanted.
    What one attempt left is there when the next begins.
    """

    def repeat(
        run: Callable[[Session], Any],
        read: Callable[[], Any],
        wanted: Any,
        *,
        places: Iterable[int] = range(MOST),
        first: int = 0,
        in_parts: bool = False,
    ) -> None:
        before, failed, kinds = read(), 0, itertools.cycle(KINDS[first:] + KINDS[:first])
        assert before != wanted
        for at in places:
            session, steps, kind = shop.session(), list[str](), next(kinds)

            def spoil(step: str, at: int = at, kind: str = kind, steps: list[str] = steps) -> None:
                if len(steps) == at:
                    disk.spoil(kind)
                steps.append(step)

            session.statements.before = spoil
            error = None
            try:
                run(session)
            except ArcticError as found:
                error = found
            finally:
                disk.mend()
                session.connection.close()
            told = f"{kind} from {steps[at : at + 1]} on, then {steps[at + 1 :]}: {error}"
            shown = read()
            if error is None:
                assert shown == wanted, told
            else:
                failed += 1
                assert isinstance(error, (DiskError, CatalogUnavailable)), told
                assert error.why, told
                assert error.fix, told
                assert shown == before or (in_parts and shown == wanted), told
            before = shown
            if len(steps) <= at or (at and steps[at - 1] == steps[at]):
                break
        assert failed > 0
        run(shop.main)
        assert read() == wanted

    return repeat


def amounts(orders: Orders) -> Model | None:
    if orders.session.catalog.load_view(SCHEMA, orders.name.identifier) is None:
        return None
    found = orders.rows()
    made = {row["id"]: row["amount"] for row in found}
    assert len(found) == len(made), "a key twice"
    return made


def named_files(orders: Orders) -> set[str]:
    """The files that some version names. A write that failed may leave one which none does."""
    sides = (orders.table.base, orders.table.change)
    named = {
        str(row[0])
        for side in sides
        for kind, column in (("all_files", "file_path"), ("all_manifests", "path"))
        for row in orders.session.query(f"SELECT {column} FROM {side.sql}.{kind}")
    }
    assert named
    return named


def findings(shop: Shop, warehouse: Path) -> set[str]:
    catalog = EmbeddedCatalog("lake", warehouse)
    inventory = take_inventory(catalog, "lake", SCHEMA)
    found = verify_schema(catalog, inventory, shop.main.context.now_ms(), size_of, shop.main.query)
    return {f"{finding.kind}: {finding.what}" for finding in found}


def test_what_writes(shop: Shop, troubled: Any, warehouse: Path) -> None:
    orders, rows = shop.table(), [{"id": number, "amount": number} for number in range(4)]
    model = {row["id"]: row["amount"] for row in rows}

    def read() -> Model | None:
        return amounts(orders)

    troubled(lambda session: orders.on(session).build(rows), read, model, places=EVEN)
    rows[0]["amount"] = model[0] = 10
    troubled(lambda session: orders.on(session).build(rows), read, model, places=ODD, first=1)
    batch = [{"id": 1, "amount": 11}, {"id": 9, "amount": 9}]
    model |= {1: 11, 9: 9}
    troubled(lambda session: orders.on(session).upsert(batch), read, model, places=[0] * len(KINDS))
    assert findings(shop, warehouse) == set()


@pytest.mark.long
def test_what_maintains(shop: Shop, troubled: Any, warehouse: Path) -> None:
    orders = shop.table("kept")
    orders.build([{"id": number, "amount": number} for number in range(4)])
    copy = shop.consumer("copy", orders)
    copy.run()
    built = orders.version.token
    orders.apply([{"id": 1, "amount": 10}, {"id": 7, "amount": 7}], [{"id": 2}])
    model = {0: 0, 1: 10, 3: 3, 7: 7}

    def copied() -> Model:
        return {row["id"]: row["amount"] for row in copy.rows()}

    def both() -> tuple[Model | None, Model]:
        return amounts(orders), {row["id"]: row["amount"] for row in orders.base_rows()}

    troubled(lambda session: copy.on(session).run(), copied, model)
    troubled(
        lambda session: orders.on(session).compact(),
        both,
        (model, model),
        places=EVEN,
        first=1,
        in_parts=True,
    )
    then = {number: number for number in range(4)}

    def run(session: Session) -> None:
        roll_back(session.context, orders.name, built)

    troubled(run, lambda: amounts(orders), then, places=(1, 2), first=2)
    assert findings(shop, warehouse) == set()


@pytest.mark.long
def test_an_erasure(shop: Shop, troubled: Any, warehouse: Path) -> None:
    orders = shop.table("erased")
    orders.build([{"id": number, "amount": number} for number in range(4)])
    orders.upsert([{"id": 1, "amount": 10}, {"id": 777_001, "amount": 7}])
    left = {0: 0, 1: 10, 2: 2, 3: 3}

    def run(session: Session) -> None:
        keys = [ColumnValue("id", "777001")]
        erase_keys(session.context, plan_by_values(session.context, orders.name, keys))

    troubled(run, lambda: amounts(orders), left, places=range(0, MOST, 3), in_parts=True)
    named = named_files(orders)
    assert (
        traces(warehouse, SCHEMA, 777_001, among=lambda path: any(one.endswith(path) for one in named)) == []
    )
    assert findings(shop, warehouse) == set()
