"""The cells of the matrix: which profile a project gets, and which components have to run for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.matrix.cluster import CORES_OF_A_WORKER, standalone
from tests.matrix.components import PASSWORD, Component, hdfs, hive, moto, postgres, rest
from tests.matrix.thrift_server import thrift_server

CATALOGS = ("sqlite", "postgres", "rest", "hive", "glue")
ENGINES = ("embedded", "connect", "thrift", "standalone")
STORES = ("file", "s3")
IMPOSSIBLE: Mapping[tuple[str, str], str] = {
    ("sqlite", "s3"): "the embedded catalog keeps its tables in a folder of this machine",
    ("glue", "file"): "Glue keeps its tables in S3",
}
"""By catalog and store, why there is no such cell."""

AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
"""Credentials for Glue's client, which does not take them from the profile."""

_SPARK_CONF = {
    # A handful of rows: what costs is to plan and to compile.
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Cell:
    catalog: str
    engine: str
    store: str

    @property
    def name(self) -> str:
        return f"{self.catalog}-{self.engine}-{self.store}"

    @property
    def impossible(self) -> str:
        """Why it cannot exist; empty if it can."""
        return IMPOSSIBLE.get((self.catalog, self.store), "")


_IN_HDFS = (
    Cell("postgres", "embedded", "hdfs"),
    Cell("rest", "embedded", "hdfs"),
    Cell("hive", "standalone", "hdfs"),
    Cell("hive", "thrift", "hdfs"),
)
"""In HDFS, Spark reads the metadata, so the catalog and the engine matter less."""
ALL = (*(Cell(*parts) for parts in itertools.product(CATALOGS, ENGINES, STORES)), *_IN_HDFS)


@contextmanager
def running(cell: Cell, folder: Path, tools: Path) -> Iterator[tuple[dict[str, Any], list[Component]]]:
    """The target of ``profiles.yml`` for a cell, while its components run.

    :param folder: an empty folder for everything that the cell writes.
    :param tools: where fetched components are kept.
    :raises NotRun: a component cannot be started.
    """
    with ExitStack() as stack:
        target: dict[str, Any] = {
            "type": "arctic",
            "schema": "matrix",
            "threads": 2,
            "driver_memory": "1g",
            "master": "local[2]",
            "small_data": True,
            "spark_conf": dict(_SPARK_CONF),
        }
        components: list[Component] = []
        definition: dict[str, Any] = {"type": cell.catalog, "warehouse": str(folder / "lake")}
        store: Component | None = None
        if cell.store == "s3":
            store = stack.enter_context(moto(folder, tools))
            components.append(store)
            definition["warehouse"] = "s3://lake/warehouse"
            definition["s3"] = {
                "endpoint": store.address,
                "region": "us-east-1",
                "path_style": True,
                "access_key_id": "test",
                "secret_access_key": "test",
            }
        elif cell.store == "hdfs":
            store = stack.enter_context(hdfs(folder, tools))
            components.append(store)
            definition["warehouse"] = f"{store.address}/warehouse"
        if cell.catalog == "postgres":
            server = stack.enter_context(postgres(folder))
            definition |= {"uri": server.address, "user": "dbt", "password": PASSWORD}
            components.append(server)
        elif cell.catalog == "rest":
            server = stack.enter_context(
                rest(
                    folder,
                    tools,
                    definition.pop("warehouse"),
                    store.address if store and cell.store == "s3" else None,
                )
            )
            definition["uri"] = server.address
            components.append(server)
        elif cell.catalog == "hive":
            server = stack.enter_context(hive(folder, s3=cell.store == "s3"))
            definition["uri"] = server.address
            target["spark_conf"]["spark.hadoop.iceberg.engine.hive.lock-enabled"] = False
            components.append(server)
        elif cell.catalog == "glue":
            assert store is not None
            definition |= {"region": "us-east-1", "endpoint": store.address}
            # Glue's own client takes credentials from AWS's default chain only.
            for key in ("access_key_id", "secret_access_key"):
                del definition["s3"][key]
        if cell.engine == "standalone":
            cluster = stack.enter_context(standalone(folder, AWS if cell.catalog == "glue" else {}))
            components.append(cluster.component)
            del target["small_data"]
            target |= {
                "master": cluster.component.address,
                "executor_memory": "512m",
                "executor_cores": CORES_OF_A_WORKER,
            }
        target["catalog"] = definition
        if cell.engine == "thrift":
            server = stack.enter_context(
                thrift_server(folder, target, AWS if cell.catalog == "glue" else None)
            )
            components.append(server)
            host, _, port = server.address.partition(":")
            # The server defines the catalog. The definition in the profile is for reading metadata.
            own = {"catalog": "lake"} if cell.catalog == "sqlite" else {}
            target = {
                **{key: target[key] for key in ("type", "schema", "threads", "catalog")},
                **{"method": "thrift", "host": host, "port": int(port), "user": "matrix", **own},
            }
        yield target, components
