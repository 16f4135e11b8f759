"""A keyed table ``orders``, created from its logs commit by commit, with the totals that Iceberg writes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from dbt_arctic.catalog.api import PlacedFile, Snapshot, TableState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.compaction.status import TableStatus, measure_keyed
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable

MINUTE = 60_000
NOW = 1_800_000_000_000
MB = 1024 * 1024


def txn(minutes_ago: float, number: int = 0) -> int:
    return (NOW - int(minutes_ago * MINUTE) << 20) | number


@dataclass
class Log:
    """One side's commits; rows, files and bytes are summed up as Iceberg does."""

    name: str
    snapshots: list[Snapshot] = field(default_factory=list)
    rows: int = 0
    files: int = 0
    size: int = 0
    hidden: int = 0
    vectors: int = 0
    properties: dict[str, str] = field(default_factory=dict)

    def commit(
        self,
        minutes_ago: float,
        operation: str = "append",
        *,
        rows: int = 0,
        files: int = 0,
        size: int = 0,
        hidden: int = 0,
        vectors: int = 0,
        **summary: str,
    ) -> None:
        self.rows, self.files, self.size = self.rows + rows, self.files + files, self.size + size
        self.hidden, self.vectors = self.hidden + hidden, self.vectors + vectors
        told = {
            "total-records": str(self.rows),
            "total-data-files": str(self.files),
            "total-files-size": str(self.size),
            "total-position-deletes": str(self.hidden),
            "total-delete-files": str(self.vectors),
            **({"added-records": str(rows), "added-files-size": str(size)} if rows > 0 else {}),
            **{f"arctic.{name}": value for name, value in summary.items()},
        }
        count = len(self.snapshots) + 1
        at = NOW - int(minutes_ago * MINUTE)
        self.snapshots.append(Snapshot(count, count - 1 or None, count, at, operation, told))

    def expire(self, count: int) -> None:
        del self.snapshots[:count]

    @property
    def state(self) -> TableState:
        at = self.snapshots[-1].snapshot_id
        log = tuple(self.snapshots)
        return TableState("shop", self.name, "/", self.properties, (), log, at, {"main": at})


class Files(OneCatalog):
    """The used part of the catalog: the files of a side."""

    def __init__(self, **files: list[PlacedFile]) -> None:
        self.files = files

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        return self.files[name]


class Orders:
    def __init__(self, buckets: int = 2) -> None:
        self.table = KeyedTable(
            name=Name("lake", "shop", "orders"),
            generation=Generation(1, "base-1", "change-1"),
            key=("id",),
            layout=Layout(buckets, "id", (), ("id",)),
            columns=(Column("id", "bigint"),),
        )
        self.base, self.change = Log("orders__base_1"), Log("orders__change_1")
        self.files: dict[str, list[PlacedFile]] = {}

    def build(self, rows: int = 1000, size: int = 100 * MB, minutes_ago: float = 9000) -> None:
        buckets = self.table.layout.buckets
        self.base.commit(minutes_ago, rows=rows, files=buckets, size=size, run="build")
        self.change.commit(minutes_ago, rows=buckets, files=buckets, size=1000 * buckets, run="build")

    def upsert(self, minutes_ago: float, rows: int = 10, files: int = 2, size: int = MB) -> int:
        made = txn(minutes_ago, len(self.change.snapshots))
        self.change.commit(minutes_ago, rows=rows, files=files, size=size, txn=str(made))
        return made

    def merge(self, minutes_ago: float, *txns: int, hidden: int = 0) -> None:
        listed = f"[{','.join(map(str, txns))}]"
        self.base.commit(minutes_ago, "overwrite", rows=0, hidden=hidden, vectors=hidden and 2, merged=listed)

    def trim(self, minutes_ago: float, rows: int, files: int = 2, size: int = MB) -> None:
        self.change.commit(minutes_ago, "delete", rows=-rows, files=-files, size=-size)

    @property
    def status(self) -> TableStatus:
        files = Files(**self.files)
        return measure_keyed(files, self.table, self.base.state, self.change.state, NOW)  # type: ignore[arg-type]


@pytest.fixture
def orders() -> Orders:
    made = Orders()
    made.build()
    return made
