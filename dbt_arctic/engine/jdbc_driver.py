"""A JDBC driver with which Iceberg's catalog in a database does not repeat a write that got no answer.

``CatalogDriver.java`` explains why; ``python -m tests.packaging.jdbc_driver`` compiles it to the jar. The
catalog uses it by its URI: ``jdbc:arctic:postgresql://..`` instead of ``jdbc:postgresql://..``. SQLite needs
none, because no connection can be lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

TIMEOUTS = {"jdbc.connectTimeout": "10", "jdbc.socketTimeout": "60", "jdbc.tcpKeepAlive": "true"}
"""Properties of a catalog in PostgreSQL, in seconds.

PostgreSQL's driver itself waits for an answer for ever, for example if a firewall has dropped the connection.
The catalog's statements read or change single rows, and none waits for a long transaction.
"""

CLASS_PATH = "spark.driver.extraClassPath"
JAR = Path(__file__).with_name("catalog_driver.jar")
_PREFIX = "jdbc:arctic:"
_URI = re.compile(r"spark\.sql\.catalog\.\w+\.uri")
_POSTGRES = re.compile(r"jdbc:(arctic:)?postgresql:")


def with_catalog_driver(conf: Mapping[str, str]) -> dict[str, str]:
    """The conf of a Spark whose catalogs in databases use the driver, with its jar on the class path.

    Those in PostgreSQL wait for an answer for a limited time, unless the conf has other limits.
    """
    given = {key: uri for key, uri in conf.items() if _URI.fullmatch(key) and uri.startswith("jdbc:")}
    uris = {
        key: f"{_PREFIX}{uri.removeprefix('jdbc:')}"
        for key, uri in given.items()
        if needs_catalog_driver(uri)
    }
    if not uris and not any(uri.startswith(_PREFIX) for uri in given.values()):
        return dict(conf)
    class_path = os.pathsep.join(filter(None, [conf.get(CLASS_PATH), str(JAR)]))
    limits = {
        key.removesuffix("uri") + name: value
        for key, uri in given.items()
        if _POSTGRES.match(uri)
        for name, value in TIMEOUTS.items()
    }
    return {**limits, **conf, **uris, CLASS_PATH: class_path}


def needs_catalog_driver(uri: str) -> bool:
    """Whether the address of a catalog is that of a database on another machine, without the driver.

    >>> needs_catalog_driver("jdbc:postgresql://db/lake"), needs_catalog_driver("jdbc:sqlite:/catalog.db")
    (True, False)
    """
    return uri.startswith("jdbc:") and not uri.startswith(("jdbc:sqlite:", _PREFIX))
