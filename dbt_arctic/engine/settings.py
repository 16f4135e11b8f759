"""Converts the values of a profile to Spark's conf. Pure functions; nothing is started.

This module must not import pyspark; it only needs the version of the installed package.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from dbt_arctic import secret
from dbt_arctic.engine.catalog_checks import catalog_prefix, check_defined_once, check_uncached
from dbt_arctic.engine.catalog_settings import ACCESS_DELEGATION
from dbt_arctic.engine.cluster import cluster_conf
from dbt_arctic.engine.connectors import AWS_BUNDLE, CONNECTORS, EXCLUDED, POSTGRES_DRIVER, S3
from dbt_arctic.engine.jdbc_driver import with_catalog_driver
from dbt_arctic.engine.object_store import s3a_conf
from dbt_arctic.errors import DependencyError, ProfileError

ICEBERG_RUNTIMES: Mapping[str, str] = {
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""The tested Iceberg runtime for each minor version of Spark."""

SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
FAIR_SCHEDULER = Path(__file__).with_name("fair_scheduler.xml")
"""The pool in which the statements of all threads share the cores, in Spark's format."""
ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
SQLITE_BUSY_TIMEOUT_MS = 5_000
"""How long one SQLite call waits for the lock of another process; loading a table takes about five calls."""

SESSION_DEFAULTS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    # Otherwise Spark replaces ${env:NAME} by the environment's value in any statement: in comments, names,
    # data.
    "spark.sql.variable.substitute": "false",
    # Storage-partitioned joins: tables with the same buckets are joined without a shuffle.
    "spark.sql.sources.v2.bucketing.enabled": "true",
    # If this is enabled, Spark passes the buckets of a join to every scan below it, even to one that is
    # broadcast or shuffled: rows of its other buckets are lost without an error (4.1.4; a part of it is
    # SPARK-55113). So only tables with the same buckets are joined without a shuffle, and 4 buckets are not
    # joined with 8.
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "false",
    "spark.sql.sources.v2.bucketing.allowCompatibleTransforms.enabled": "false",
    # allowJoinKeysSubsetOfPartitionKeys is not set: with it, joins on additional columns are shuffled, which
    # need no shuffle otherwise (4.1.4).
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    # Iceberg filters a scan at run time by changing it, and two parts of a plan may share one. In two
    # concurrent threads that fails, or reads wrong files (apache/iceberg#18004).
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
}
"""The settings of all sessions, whichever Spark they belong to."""

_WITHOUT_UI = {
    # Spark keeps plans and metrics of a thousand statements for its UI, which is disabled: half a gigabyte
    # after a few hundred refreshes. The newest ones are needed to report the traffic of a refresh.
    "spark.sql.ui.retainedExecutions": "300",
    # Running tasks are not displayed either.
    "spark.ui.liveUpdate.period": "-1",
    # Spark records each statement's plan for the UI, and again whenever adaptive execution changes it.
    "spark.sql.ui.explainMode": "simple",
}

_RAW_STRINGS = "spark.sql.parser.escapedStringLiterals"
_TIMESTAMP_TYPE = "spark.sql.timestampType"

COLLECTOR = "-XX:+UseParallelGC"
"""On few cores, Java's default collector, which runs concurrently with the program, takes a sixth of a
refresh. Short pauses are not required here."""
FAST_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java compiles hot code only once, without a second, fully optimized version. The second option keeps
the default size of the code cache, which would otherwise be reduced to a fifth."""

_FOR_FEW_ROWS = {
    # Generating and compiling code for a plan takes longer than interpreting it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Planning the rest of a statement again after each stage takes longer than its stages.
    "spark.sql.adaptive.enabled": "false",
}
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")

_LOCAL_MASTER = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?$")


@dataclass(frozen=True)
class OtherCatalog:
    """A catalog of a profile in addition to the one in which its models are.

    :param warehouse: the location of its tables, as for ``SparkSettings``.
    :param properties: Iceberg catalog properties, as for ``SparkSettings``; ``None`` if another part of the
        configuration, or a server, defines the catalog.
    """

    name: str
    warehouse: str = ""
    properties: Mapping[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        secret.remember(self.properties or {})


@dataclass(frozen=True)
class SparkSettings:
    """The settings of an embedded Spark and its Iceberg catalog in a profile.

    :param catalog: the name of the catalog, the first part of every relation's name.
    :param warehouse: the location of tables: a folder, or a URI if ``catalog_properties`` name a catalog.
    :param catalog_properties: Iceberg catalog properties. With neither ``type`` nor ``catalog-impl``, the
        catalog is the embedded one: JDBC on the SQLite file ``<warehouse>/catalog.db``.
    :param spark_conf: any Spark conf; takes precedence over all settings of this module.
    :param packages: Maven coordinates; ``None`` for those that match the installed pyspark.
    :param repositories: additional Maven repositories.
    :param java_home: the Java to use; ``None`` to search for one.
    :param connectors: names of ``CONNECTORS`` that are read.
    :param small_data: whether tables have so few rows that compiling code costs more than reading them. Has
        no effect on a cluster.
    :param executor_memory: the heap of an executor of a cluster; ``None`` for Spark's own setting, as for
        its cores and the number of executors.
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
    executor_memory: str | None = None
    executor_cores: int | None = None
    max_executors: int | None = None
    connectors: tuple[str, ...] = ()
    others: tuple[OtherCatalog, ...] = ()
    """The other catalogs of the profile."""

    def __post_init__(self) -> None:
        secret.remember(self.catalog_properties)
        secret.remember(self.spark_conf)
        secret.remember({"repositories": ",".join(self.repositories)})
        check_catalog_name(self.catalog)
        check_spark_conf(self.spark_conf)
        defined = {self.catalog: self.catalog_properties}
        defined |= {one.name: one.properties for one in self.others if one.properties is not None}
        check_defined_once(self.spark_conf, defined)
        check_uncached(self.spark_conf)
        for name, properties in defined.items():
            check_uncached({f"{catalog_prefix(name)}.{key}": value for key, value in properties.items()})
        uri = self.catalog_properties.get("uri", "")
        if uri and is_embedded(self) and not uri.startswith("jdbc:sqlite:"):
            raise ProfileError(
                "catalog_properties has a uri but no type.",
                where="profiles.yml, catalog_properties",
                why="Without a type, the catalog is the embedded one, which is a SQLite file.",
                fix="add type: rest, hive, glue or jdbc",
            )

    @property
    def cores(self) -> int | None:
        """The cores of a local Spark; ``None`` for a remote one."""
        return local_cores(self.chosen_master)

    @property
    def chosen_master(self) -> str:
        """Spark's master, which ``spark_conf`` may set as well."""
        return self.spark_conf.get("spark.master", self.master)


def each_catalog(settings: SparkSettings) -> list[SparkSettings]:
    """The settings of each catalog that they define, as if it were the only one; the models' own first."""
    return [
        replace(settings, others=()),
        *(
            replace(
                settings,
                catalog=other.name,
                warehouse=other.warehouse,
                catalog_properties=other.properties,
                others=(),
            )
            for other in settings.others
            if other.properties is not None
        ),
    ]


def check_catalog_name(name: str) -> None:
    """Raise ``ProfileError`` if the name cannot be a part of a conf key."""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ProfileError(
            f"The catalog name {name!r} is not valid.",
            where="profile: catalog",
            why="It is part of a Spark conf key, so it may have only letters, digits and underscores.",
            fix="choose a name such as `lake`",
        )


def check_spark_conf(conf: Mapping[str, str]) -> None:
    """Raise ``ProfileError`` if Spark would parse the statements of dbt-arctic differently."""
    if conf.get(_RAW_STRINGS, "false").strip().lower() != "false":
        raise ProfileError(
            f"{_RAW_STRINGS} is {conf[_RAW_STRINGS]}",
            where="profile: spark_conf",
            why="Spark would read backslashes literally, which dbt-arctic uses to escape quotes.",
            fix="remove it. In a model, write r'...' for a string with backslashes.",
        )
    if conf.get(_TIMESTAMP_TYPE, "TIMESTAMP_LTZ").strip().upper() != "TIMESTAMP_LTZ":
        raise ProfileError(
            f"{_TIMESTAMP_TYPE} is {conf[_TIMESTAMP_TYPE]}",
            where="profile: spark_conf",
            why="Columns of type TIMESTAMP would be created without a time zone, and store local times.",
            fix="remove it. In a model, cast to TIMESTAMP_NTZ where a time has no zone.",
        )


def is_embedded(settings: SparkSettings) -> bool:
    """Whether the catalog is the embedded one, because the profile names no other."""
    return not {"type", "catalog-impl"} & set(settings.catalog_properties)


def local_warehouse(settings: SparkSettings) -> Path | None:
    """The warehouse as a local folder; ``None`` if it is remote."""
    location = settings.warehouse
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", location)
    if scheme is None:
        return Path(os.path.abspath(os.path.expanduser(location)))
    if scheme.group(1) == "file":
        return Path(os.path.abspath(re.sub(r"^file:(//)?", "", location)))
    return None


def catalog_conf(settings: SparkSettings) -> dict[str, str]:
    """The properties of the catalog, without the prefix ``spark.sql.catalog.<name>.``."""
    given = dict(settings.catalog_properties)
    conf = {"cache-enabled": "false"}  # a cached table may be out of date if another session writes
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
            fix="use a folder, or configure a catalog in catalog_properties (type: rest, hive, glue, jdbc)",
        )
    location = PurePosixPath(folder.as_posix())
    return (
        conf
        | {
            "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri": f"jdbc:sqlite:{location}/catalog.db",
            "warehouse": str(location),
            "jdbc.schema-version": "V1",  # V0 does not support views
            "jdbc.busy_timeout": str(SQLITE_BUSY_TIMEOUT_MS),
        }
        | given
    )


def packages(settings: SparkSettings) -> tuple[str, ...]:
    """The Maven coordinates to load. Raises ``DependencyError`` if none matches the installed pyspark."""
    if settings.packages is not None:
        return settings.packages
    version = importlib.metadata.version("pyspark")
    runtime = ICEBERG_RUNTIMES.get(".".join(version.split(".")[:2]))
    if runtime is None:
        raise DependencyError(
            f"No Iceberg runtime is known for pyspark {version}.",
            where="pip package pyspark",
            why=f"dbt-arctic was tested with pyspark {', '.join(sorted(ICEBERG_RUNTIMES))}.",
            fix=f"pip install 'pyspark=={max(ICEBERG_RUNTIMES)}.*', or list `packages` in the profile",
        )
    readers = [jar for connector in settings.connectors for jar in CONNECTORS[connector]]
    version = runtime.rpartition(":")[2]
    drivers = [jar for one in each_catalog(settings) for jar in _drivers(catalog_conf(one), version)]
    return tuple(dict.fromkeys((runtime, *drivers, *readers)))


def _drivers(catalog: Mapping[str, str], version: str) -> tuple[str, ...]:
    """The jars in addition to Iceberg's runtime that a catalog with these properties needs."""
    uri = catalog.get("uri", "")
    found = []
    if uri.startswith("jdbc:sqlite:"):
        found.append(SQLITE_DRIVER)
    if uri.startswith(("jdbc:postgresql:", "jdbc:arctic:postgresql:")):
        found.append(POSTGRES_DRIVER)
    named = (
        f"{catalog.get('type', '')} {catalog.get('catalog-impl', '')} {catalog.get('io-impl', '')}".lower()
    )
    # A REST catalog chooses the reader of a file by its scheme, so only the settings show that it may be on
    # S3.
    rest_on_s3 = "rest" in named and any(
        name.startswith("s3.") or name in ("client.region", ACCESS_DELEGATION) for name in catalog
    )
    if "glue" in named or ".aws." in named or rest_on_s3:
        found.append(f"{AWS_BUNDLE}:{version}")
    return tuple(found)


def local_cores(master: str) -> int | None:
    """The cores of a local master; ``None`` for a cluster."""
    matched = _LOCAL_MASTER.match(master)
    if matched is None:
        return None
    cores = matched.group(1)
    if cores is None:
        return 1
    return os.cpu_count() or 1 if cores == "*" else int(cores)


def chooses_collector(environ: Mapping[str, str]) -> bool:
    """Whether the user configures Java's garbage collector; a second choice would be an error."""
    return any(re.search(r"-XX:\+Use\w+GC\b", environ.get(name, "")) for name in _OPTIONS_OF_JAVA)


def session_conf(settings: SparkSettings, *, with_driver: bool = True) -> dict[str, str]:
    """The complete Spark conf of a session: defaults, then the catalog, then the user's conf.

    Later ones win.

    :param with_driver: whether catalogs in databases use the driver of ``jdbc_driver``, whose jar a Spark
        that another program started may lack.
    """
    catalogs = each_catalog(settings)
    conf = {
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": ICEBERG_EXTENSIONS,
        "spark.sql.catalogImplementation": "in-memory",  # Hive's catalog would create metastore_db
        "spark.sql.defaultCatalog": settings.catalog,
        # By default, the statement that began first gets every core that becomes free.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": FAIR_SCHEDULER.as_uri(),
        # A smaller DataFrame of pandas or Arrow is a part of the plan, whose rows the driver evaluates and
        # hashes while it optimizes a statement. The default is 48 MB.
        "spark.sql.execution.arrow.localRelationThreshold": "1m",
        "spark.redaction.regex": secret.REDACTED_BY_SPARK,
        **SESSION_DEFAULTS,
        **{catalog_prefix(one.catalog): ICEBERG_CATALOG for one in catalogs},
    }
    jars = packages(settings)
    if jars:
        conf["spark.jars.packages"] = ",".join(jars)
    excluded = [jar for connector in settings.connectors for jar in EXCLUDED.get(connector, ())]
    if excluded and settings.packages is None:
        conf["spark.jars.excludes"] = ",".join(excluded)
    if settings.repositories:
        conf["spark.jars.repositories"] = ",".join(settings.repositories)
    cores = settings.cores
    if cores is not None:
        # The default of 200 shuffle tasks is mostly overhead on one machine; adaptive execution merges small
        # ones.
        conf["spark.sql.shuffle.partitions"] = str(max(16, 4 * cores))
        # Each scan and each stage broadcasts a few kilobytes, in a buffer of this size. The default
        # is 4 MB, which Java fills with zeros.
        conf["spark.broadcast.blockSize"] = "256k"
        # A laptop's host name changes with its network, and may not be resolvable at all.
        conf["spark.driver.host"] = "127.0.0.1"
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        options = [] if chooses_collector(os.environ) else [COLLECTOR]
        if settings.small_data:
            conf["spark.sql.shuffle.partitions"] = str(cores)
            conf |= _FOR_FEW_ROWS
            options.append(FAST_COMPILER)
        if options:
            conf["spark.driver.extraJavaOptions"] = " ".join(options)
    else:
        conf |= cluster_conf(
            settings.chosen_master,
            settings.executor_memory,
            settings.executor_cores,
            settings.max_executors,
        )
    for one in catalogs:
        prefix = catalog_prefix(one.catalog)
        conf |= {f"{prefix}.{key}": value for key, value in catalog_conf(one).items()}
    if S3 in settings.connectors:
        conf |= s3a_conf(settings.catalog_properties, os.environ)
    conf |= settings.spark_conf
    if with_driver:
        conf = with_catalog_driver(conf)
    return conf if conf["spark.ui.enabled"] == "true" else {**_WITHOUT_UI, **conf}
