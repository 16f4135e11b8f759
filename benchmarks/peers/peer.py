"""The interface of a peer in the benchmark. A peer runs in a separate process, on the Spark that it needs.

Peers import the standard library and pyspark only, because each has its own environment; ours imports
dbt_arctic too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.table import Table
from benchmarks.peers.workload import DELETED


class NotOffered(Exception):
    """A peer has no such thing; the message says what it lacks. It is reported, and no failure."""


@dataclass(frozen=True)
class Machine:
    """The same for every peer."""

    cores: int = 2
    memory: str = "3g"
    conf: Mapping[str, str] = field(default_factory=dict)
    """More settings of Spark, for all."""

    def spark_conf(self) -> dict[str, str]:
        return {
            "spark.master": f"local[{self.cores}]",
            "spark.driver.memory": self.memory,
            # dbt-arctic's own choice on one machine; the others are not to pay for another.
            "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": str(8 * self.cores),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.parquet.compression.codec": "zstd",
            **self.conf,
        }


class Peer(ABC):
    """Tables of one product. A method does one thing and returns when it is done."""

    title: ClassVar[str]
    pyspark: ClassVar[str] = ""
    """The version that it needs; empty: that of this project."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Maven coordinates."""
    settings: ClassVar[tuple[str, ...]] = ()
    """How it is set up, each with the reason or the page of its documentation that says so."""
    layering: ClassVar[str] = "anew"
    """How its users would keep layers of tables: ``models``, ``feed``, ``watermark``, ``anew``."""
    feed: ClassVar[str] = ""
    """How its changes are read."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        self.folder = folder
        self.machine = machine
        self.spark: Any = None
        self.schema = "bench"
        self.note: Callable[[str], None] = lambda text: None

    @abstractmethod
    def conf(self) -> dict[str, str]:
        """What its Spark is started with, beyond what all have."""

    def open(self) -> None:
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        settings = {**self.machine.spark_conf(), **self.conf()}
        if self.packages:
            settings["spark.jars.packages"] = ",".join(self.packages)
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    @property
    def pid(self) -> int:
        return int(self.spark._jvm.java.lang.ProcessHandle.current().pid())

    def run(self, sql: str) -> None:
        """Run a statement to its end."""
        self.spark.sql(sql).collect()

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(sql).collect()]

    def source(self, name: str, file: Path) -> str:
        """A Parquet file as a relation."""
        self.spark.read.parquet(str(file)).createOrReplaceTempView(name)
        return name

    def view(self, name: str, sql: str) -> str:
        """A query as a relation."""
        self.spark.sql(sql).createOrReplaceTempView(name)
        return name

    def staged(self, name: str, sql: str) -> str:
        """Changes that were read, to be written elsewhere: as a view, where a write can read them so."""
        return self.view(name, sql)

    @abstractmethod
    def relation(self, table: Table) -> str:
        """What is read."""

    @abstractmethod
    def load(self, table: Table, rows: str) -> None:
        """Make the table of the rows of a relation."""

    @abstractmethod
    def write(self, table: Table, changes: str) -> None:
        """Apply a relation of changes: the table's columns and ``deleted``, each key once."""

    @abstractmethod
    def compact(self, table: Table) -> None:
        """Bring the table back to what reads best, as its users would."""

    def maintain(self, table: Table, number: int) -> bool:
        """What its users run after each of many small rounds; whether anything was run."""
        if number % 10:
            return False
        self.compact(table)
        return True

    @abstractmethod
    def mark(self, table: Table) -> str:
        """Where the table is now, for ``changes``."""

    @abstractmethod
    def changes(self, table: Table, since: str) -> str:
        """A relation of what changed: the table's columns and ``deleted``.

        :raises NotOffered: there is no such read.
        """

    def signed(self, table: Table, since: str) -> str:
        """A relation of what changed: the table's columns and ``sign``, -1 for rows as they were, else 1.

        :raises NotOffered: there is no such read.
        """
        raise NotOffered("what changed is not told with what it replaced")

    def replace(self, table: Table, sql: str) -> None:
        """Replace the table by the result of a query."""
        raise NotOffered("no way to replace a table was needed")

    def load_sums(self, table: Table, rows: str, sums: Mapping[str, str]) -> None:
        """Make a table of sums by its key; the last one counts rows.

        :param sums: the types of its sums.
        """
        self.load(table, rows)

    def add_up(self, table: Table, changes: str, sums: Mapping[str, str]) -> None:
        """Add signed sums to those of a table; what counts no row any more goes."""
        count = list(sums)[-1]
        added = ", ".join(f"{name} = CAST(t.{name} + s.{name} AS {kind})" for name, kind in sums.items())
        columns = ", ".join(table.columns)
        values = ", ".join(f"s.{column}" for column in table.columns)
        self.run(
            f"MERGE INTO {self.relation(table)} AS t USING {changes} AS s ON {table.same_key('t', 's')} "
            f"WHEN MATCHED AND t.{count} + s.{count} = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET {added} "
            f"WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"
        )

    def sums(self, table: Table) -> str:
        """A table of sums as it is read."""
        return self.relation(table)

    def plain(self, table: Table) -> str | None:
        """A relation without pending changes, if there is one in addition to the table."""
        return None

    def close(self) -> None:
        self.spark.stop()

    def with_deletes(self, condition: str, relation: str, columns: Sequence[str]) -> str:
        return f"(SELECT {', '.join(columns)}, {condition} AS {DELETED} FROM {relation})"


def merge_statement(target: str, changes: str, table: Table) -> str:
    """The statement of dbt-spark's `merge` strategy, with the delete clause that a user would add."""
    key = table.same_key("DBT_INTERNAL_SOURCE", "DBT_INTERNAL_DEST")
    columns = ", ".join(table.columns)
    values = ", ".join(f"DBT_INTERNAL_SOURCE.{column}" for column in table.columns)
    sets = ", ".join(f"{column} = DBT_INTERNAL_SOURCE.{column}" for column in table.columns)
    return f"""MERGE INTO {target} AS DBT_INTERNAL_DEST USING {changes} AS DBT_INTERNAL_SOURCE
ON {key}
WHEN MATCHED AND DBT_INTERNAL_SOURCE.{DELETED} THEN DELETE
WHEN MATCHED THEN UPDATE SET {sets}
WHEN NOT MATCHED AND NOT DBT_INTERNAL_SOURCE.{DELETED} THEN INSERT ({columns}) VALUES ({values})"""
