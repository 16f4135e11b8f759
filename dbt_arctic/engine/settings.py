"""From a profile's values to Spark's conf: pure functions, nothing is started here.

This module must not import pyspark; it asks only for the version of the installed package.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from dbt_arctic import secret
from dbt_arctic.errors import DependencyError, ProfileError

ICEBERG_RUNTIMES: Mapping[str, str] = {
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""Spark's minor version to the Iceberg runtime that was tested with it."""

SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
POSTGRES_DRIVER = "org.postgresql:postgresql:42.7.14"
AWS_BUNDLE = "org.apache.iceberg:iceberg-aws-bundle"
"""Of the runtime's version. It brings S3 and Glue."""
ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SQLITE_BUSY_TIMEOUT_MS = 5_000
"""How long one SQLite call waits for another process's lock; loading a table takes about five calls."""

SESSION_DEFAULTS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Else Spark replaces ${env:NAME} by the environment's value in any statement: in comments, names, data.
    "spark.sql.variable.substitute": "false",
    # Storage-partitioned joins: tables that have the same buckets are joined where they lie.
    "spark.sql.sources.v2.bucketing.enabled": "true",
    # With this, Spark tells the buckets of a join to every scan below it, also to one that is broadcast or
    # shuffled: rows of its other buckets are lost without an error (4.1.4; a part of it is SPARK-55113). So
    # only what has the same buckets anyway is joined in place, and 4 buckets are not joined with 8.
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "false",
    "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "false",
    # Not allowJoinKeysSubsetOfPartitionKeys: it shuffles joins on more columns than the bucket's, which need
    # no shuffle without it (4.1.4).
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Iceberg filters a scan at run time by changing it, and two parts of a plan may share one: from two
    # threads at once that fails, or may read other files than it should (apache/iceberg#18004).
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
}
"""What every session of ours is set to, whichever Spark it is a session of."""

_WITHOUT_UI = {
    # Spark keeps plans and metrics of a thousand statements for its UI, where nobody can look at them: half a
    # gigabyte after a few hundred refreshes. What a refresh has read is told by the newest of them.
    "spark.sql.ui.retainedExecutions": "300",
    # Nor does anybody look at a task before it ends.
    "spark.ui.liveUpdate.period": "-1",
    # Spark writes down each statement's plan for the UI, and again whenever adaptive execution changes it.
    "spark.sql.ui.explainMode": "simple",
}

_RAW_STRINGS = "spark.sql.parser.escapedStringLiterals"

COLLECTOR = "-XX:+UseParallelGC"
"""On few cores Java's default, which works beside the program, takes a sixth of a refresh; nobody waits for
short pauses here."""
FAST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java compiles what runs often once, and not again with all optimizations. Without the second option, there
would be a fifth of the usual room for compiled code."""

_FOR_FEW_ROWS = {
    # Generating and compiling code for a plan takes longer than interpreting it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")

_LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?$")


@dataclass(frozen=True)
class SparkSettings:
    """What a profile says about an embedded Spark and its Iceberg catalog.

    :param catalog: the catalog's name, the first part of every relation's name.
    :param warehouse: where tables live: a folder, or a URI where ``catalog_properties`` name a catalog.
    :param catalog_properties: Iceberg catalog properties. With neither ``type`` nor ``catalog-impl`` the
        catalog is the embedded one: JDBC on the SQLite file ``<warehouse>/catalog.db``.
    :param spark_conf: any Spark conf; wins over everything this module chooses.
    :param packages: Maven coordinates; ``None`` for those that fit the installed pyspark.
    :param repositories: Maven repositories to ask in addition.
    :param java_home: the Java to run; ``None`` to look for one.
    :param small_data: whether tables have so few rows that compiling code costs more than reading them.
    """

    catalog: str
    warehouse: str
    catalog_properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    master: str = "local[*]"
    driver_memory: str = "2g"
    packages: tuple[str, ...] | None = None
    repositories: tuple[str, ...] = ()
    app_name: str = "dbt-arctic"
    java_home: str | None = None
    small_data: bool = False

    def __post_init__(self) -> None:
        secret.remember(self.catalog_properties)
        secret.remember(self.spark_conf)
        secret.remember({"repositories": ",".join(self.repositories)})
        check_catalog_name(self.catalog)
        check_spark_conf(self.spark_conf)
        uri = self.catalog_properties.get("uri", "")
        if uri and is_embedded(self) and not uri.startswith("jdbc:sqlite:"):
            raise ProfileError(
                "catalog_properties has a uri but no type.",
                where="profiles.yml, catalog_properties",
                why="Without a type, the catalog is the embedded one, which is a SQLite file.",
                fix="Add type: rest, hive, glue or jdbc.",
            )

    @property
    def cores(self) -> int | None:
        """The cores of a Spark on this machine; ``None`` where it is somewhere else."""
        return local_cores(self.spark_conf.get("spark.master", self.master))


def check_catalog_name(name: str) -> None:
    """Raises ``ProfileError`` where Spark could not take the name as a part of a conf key."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ProfileError(
            f"The catalog name {name!r} is not valid.",
            where="profile: catalog",
            why="It is part of a Spark conf key, so it may have only letters, digits and underscores.",
            fix="Choose a name such as `lake`.",
        )


def check_spark_conf(conf: Mapping[str, str]) -> None:
    """Raises ``ProfileError`` where Spark would read our statements as something else."""
    if conf.get(_RAW_STRINGS, "false").strip().lower() != "false":
        raise ProfileError(
            f"{_RAW_STRINGS} is {conf[_RAW_STRINGS]}",
            where="profile: spark_conf",
            why="Spark would read backslashes literally, which dbt-arctic uses to escape quotes.",
            fix="Remove it. In a model, write r'...' for a string with backslashes.",
        )


def catalog_prefix(name: str) -> str:
    """The key that makes a name a catalog to Spark; its properties follow below it."""
    return f"spark.sql.catalog.{name}"


def is_embedded(settings: SparkSettings) -> bool:
    """Whether the catalog is ours to set up, because the profile names no other."""
    return not {"type", "catalog-impl"} & set(settings.catalog_properties)


def local_warehouse(settings: SparkSettings) -> Path | None:
    """The warehouse as a folder of this machine, ``None`` where it is somewhere else."""
    location = settings.warehouse
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", location)
    if scheme is None:
        return Path(os.path.abspath(os.path.expanduser(location)))
    if scheme.group(1) == "file":
        return Path(os.path.abspath(re.sub(r"^file:(//)?", "", location)))
    return None


def catalog_conf(settings: SparkSettings) -> dict[str, str]:
    """The catalog's properties, without the ``spark.sql.catalog.<name>.`` in front of each."""
    given = dict(settings.catalog_properties)
    conf = {"cache-enabled": "false"}  # a cached table is an old version of it in another session
    if not is_embedded(settings):
        if settings.warehouse:
            conf["warehouse"] = settings.warehouse
        return conf | given
    folder = local_warehouse(settings)
    if folder is None:
        raise ProfileError(
            "The embedded catalog needs a warehouse in a local folder.",
            where=f"profile: warehouse {settings.warehouse!r}",
            why="Its SQLite file is in the warehouse, and SQLite needs a local disk.",
            fix="Use a folder, or configure a catalog in catalog_properties (type: rest, hive, glue, jdbc).",
        )
    location = PurePosixPath(folder.as_posix())
    return (
        conf
        | {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{location}/catalog.db",
            "warehouse": str(location),
            "jdbc.schema-version": "V1",  # V0 has no views
            "jdbc.busy_timeout": str(SQLITE_BUSY_TIMEOUT_MS),
        }
        | given
    )


def packages(settings: SparkSettings) -> tuple[str, ...]:
    """The Maven coordinates to load. Raises ``DependencyError`` where none fits the installed pyspark."""
    if settings.packages is not None:
        return settings.packages
    version = importlib.metadata.version("pyspark")
    runtime = ICEBERG_RUNTIMES.get(".".join(version.split(".")[:2]))
    if runtime is None:
        raise DependencyError(
            f"No Iceberg runtime is known for pyspark {version}.",
            where="pip package pyspark",
            why=f"dbt-arctic was tested with pyspark {', '.join(sorted(ICEBERG_RUNTIMES))}.",
            fix=f"pip install 'pyspark=={max(ICEBERG_RUNTIMES)}.*', or list `packages` in the profile.",
        )
    return (runtime, *_drivers(catalog_conf(settings), version=runtime.rpartition(":")[2]))


def _drivers(catalog: Mapping[str, str], version: str) -> tuple[str, ...]:
    """The jars beside Iceberg's runtime that a catalog with these properties needs."""
    uri = catalog.get("uri", "")
    found = []
    if uri.startswith("jdbc:sqlite:"):
        found.append(SQLITE_DRIVER)
    if uri.startswith("jdbc:postgresql:"):
        found.append(POSTGRES_DRIVER)
    named = (
        f"{catalog.get('type', '')} {catalog.get('catalog-impl', '')} {catalog.get('io-impl', '')}".lower()
    )
    # A REST catalog chooses the reader of a file by its scheme, so only settings tell that it may be S3's.
    rest_on_s3 = "rest" in named and any(name.startswith("s3.") for name in catalog)
    if "glue" in named or ".aws." in named or rest_on_s3:
        found.append(f"{AWS_BUNDLE}:{version}")
    return tuple(found)


def local_cores(master: str) -> int | None:
    """The cores of a local master, ``None`` for a cluster's."""
    matched = _LOCAL_MASTER.match(master)
    if matched is None:
        return None
    cores = matched.group(1)
    if cores is None:
        return 1
    return os.cpu_count() or 1 if cores == "*" else int(cores)


def chooses_collector(environ: Mapping[str, str]) -> bool:
    """Whether the user tells Java how to collect garbage; two choices are an error of Java's."""
    return any(re.search(r"-XX:\+Use\w+GC\b", environ.get(name, "")) for name in _OPTIONS_OF_JAVA)


def session_conf(settings: SparkSettings) -> dict[str, str]:
    """Every Spark conf of a session: ours, then the catalog's, then the user's, the later one winning."""
    prefix = catalog_prefix(settings.catalog)
    conf = {
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.catalogImplementation": "in-memory",  # Hive's would leave metastore_db behind
        "spark.sql.defaultCatalog": settings.catalog,
        **SESSION_DEFAULTS,
        prefix: ICEBERG_CATALOG,
    }
    jars = packages(settings)
    if jars:
        conf["spark.jars.packages"] = ",".join(jars)
    if settings.repositories:
        conf["spark.jars.repositories"] = ",".join(settings.repositories)
    cores = settings.cores
    if cores is not None:
        # 200 tasks of a shuffle are mostly overhead on one machine; adaptive execution merges the small ones.
        conf["spark.sql.shuffle.partitions"] = str(max(16, 4 * cores))
        # A laptop's host name changes with its network, and may not resolve at all.
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        options = [] if chooses_collector(os.environ) else [COLLECTOR]
        if settings.small_data:
            conf["spark.sql.shuffle.partitions"] = str(cores)
            options.append(FAST_COMPILER)
        if options:
            conf["spark.driver.extraJavaOptions"] = " ".join(options)
    if settings.small_data:
        conf |= _FOR_FEW_ROWS
    conf |= {f"{prefix}.{key}": value for key, value in catalog_conf(settings).items()}
    conf |= dict(settings.spark_conf)
    return conf if conf["spark.ui.enabled"] == "true" else {**_WITHOUT_UI, **conf}
