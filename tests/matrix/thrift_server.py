"""Spark's Thrift server, from pyspark's own jars, with the settings of an embedded Spark."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.launch import launch_conf
from dbt_arctic.engine.private_file import write_properties
from dbt_arctic.engine.settings import session_conf
from dbt_arctic.engine.warehouse import prepare_warehouses
from tests.matrix.components import Component, free_port, listens, process

_MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


@contextlib.contextmanager
def thrift_server(
    folder: Path,
    target: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Component]:
    """A server on loopback.

    :param target: the target of a profile with ``method: session``, whose Spark it is.
    :param environ: variables that it gets in addition.
    :param conf: settings of Hive's server.
    """
    from pyspark.find_spark_home import _find_spark_home

    given = {key: value for key, value in target.items() if key not in ("type", "threads")}
    settings = ArcticCredentials(**ArcticCredentials.translate_aliases(given)).spark_settings(str(folder))
    prepare_warehouses(settings)
    java, port = find_java(None), free_port()
    home = folder / "thrift"
    home.mkdir()
    of_hive = {
        "hive.server2.thrift.port": str(port),
        "hive.server2.thrift.bind.host": "127.0.0.1",
        **(conf or {}),
    }
    properties = session_conf(settings) | {"spark.sql.warehouse.dir": str(home / "spark-warehouse")}
    write_properties(home / "conf", launch_conf(properties, settings, java))
    command: list[str | Path] = [
        Path(_find_spark_home(), "bin", "spark-submit"),  # type: ignore[no-untyped-call] # pyspark's
        *("--properties-file", home / "conf", "--class", _MAIN, "spark-internal"),
        *(part for name, value in of_hive.items() for part in ("--hiveconf", f"{name}={value}")),
    ]
    variables = {**os.environ, "JAVA_HOME": java.home, **(environ or {})}
    with process("thrift", command, folder, lambda: listens(port), cwd=home, env=variables) as started:
        version = importlib.metadata.version("pyspark")
        yield Component(f"Thrift server of Spark {version}", f"127.0.0.1:{port}", started.pid)
