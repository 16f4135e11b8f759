"""Where the rows and changes lie that all peers read. Names only: ``data.py`` makes the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.peers.workload import Round


@dataclass(frozen=True)
class Files:
    folder: Path
    WARM: ClassVar[Round] = Round(1, 1000, "uniform", 20_000, 20_000)

    def of(self, rows: int) -> Path:
        return self.folder / f"rows-{rows}"

    def initial(self, rows: int) -> Path:
        return self.of(rows) / "initial.parquet"

    def changes(self, one: Round) -> Path:
        return self.of(one.rows) / one.file

    def tpch(self, scale: float) -> Path:
        return self.folder / f"tpch-{scale:g}"

    def tpch_initial(self, scale: float, table: str) -> Path:
        return self.tpch(scale) / f"{table}-initial.parquet"

    def tpch_changes(self, scale: float, table: str, number: int) -> Path:
        return self.tpch(scale) / f"{table}-changes-{number}.parquet"

    def customers(self) -> Path:
        return self.folder / "customers.parquet"
