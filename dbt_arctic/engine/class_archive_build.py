"""Creates a class-data archive.

Runs typical statements on a Spark, which writes the classes that it has loaded.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from dbt_arctic.engine import class_archive, jvm
from dbt_arctic.engine.jars import cached_jars, missing_jars
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.launch import JAVA_OPTIONS
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import COLLECTOR, SparkSettings, session_conf
from dbt_arctic.errors import ClassArchiveError

_CATALOG = "lake"
_WRITE_TIMEOUT_S = 600

STATEMENTS = (
    "CREATE SCHEMA lake.warm",
    "CREATE TABLE lake.warm.base (id BIGINT, name STRING, price DECIMAL(12, 2), at TIMESTAMP, day DATE, "
    "tags ARRAY<STRING>, place STRUCT<city: STRING, zip: STRING>) USING iceberg "
    "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('format-version'='3')",
    "ALTER TABLE lake.warm.base WRITE ORDERED BY id",
    "INSERT INTO lake.warm.base WITH (`snapshot-property.arctic.txn`='1') "
    "SELECT id, concat('n', id), CAST(id * 1.5 AS DECIMAL(12, 2)), timestamp'2024-01-01 00:00:00', "
    "date'2024-01-01', array('a', 'b'), named_struct('city', 'c', 'zip', 'z') FROM range(100)",
    "CREATE TABLE lake.warm.change USING iceberg PARTITIONED BY (bucket(4, id)) "
    "TBLPROPERTIES ('format-version'='3') AS SELECT *, 'U' AS _action, id AS _offset FROM lake.warm.base "
    "WHERE id % 10 = 0",
    "CREATE OR REPLACE VIEW lake.warm.merged COMMENT 'merged' TBLPROPERTIES ('a'='b') AS "
    "SELECT b.id, b.name, b.price, b.at, b.day FROM lake.warm.base b "
    "LEFT ANTI JOIN lake.warm.change c ON b.id = c.id UNION ALL "
    "SELECT id, name, price, at, day FROM (SELECT *, row_number() OVER (PARTITION BY id "
    "ORDER BY _last_updated_sequence_number DESC, _offset DESC) AS newest FROM lake.warm.change) "
    "WHERE newest = 1 AND _action <> 'D'",
    "SELECT count(*), sum(price), min(name), max(at), avg(id) FROM lake.warm.merged",
    "SELECT l.day, count(DISTINCT r.name) FROM lake.warm.merged l JOIN lake.warm.merged r ON l.id = r.id "
    "WHERE l.name LIKE 'n%' GROUP BY l.day ORDER BY 1",
    "SELECT coalesce(l.id, r.id) FROM lake.warm.base l FULL JOIN lake.warm.change r ON l.id = r.id + 1",
    "ALTER TABLE lake.warm.base CREATE BRANCH staged",
    "MERGE INTO lake.warm.base.branch_staged t USING (SELECT 1L AS id, 'x' AS name) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = s.name",
    "CALL lake.system.fast_forward(table => 'warm.base', branch => 'main', to => 'staged')",
    "MERGE INTO lake.warm.base t USING (SELECT * FROM lake.warm.change) s ON t.id = s.id "
    "WHEN MATCHED AND s._action = 'D' THEN DELETE WHEN MATCHED THEN UPDATE SET name = s.name "
    "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
    "DELETE FROM lake.warm.change WHERE _offset >= 0",
    "UPDATE lake.warm.base SET name = 'y' WHERE id = 3",
    "ALTER TABLE lake.warm.base ADD COLUMNS (extra INT COMMENT 'more')",
    "INSERT OVERWRITE lake.warm.base SELECT * FROM lake.warm.base WHERE id < 50",
    "SELECT * FROM lake.warm.base.snapshots",
    "SELECT content, count(*) FROM lake.warm.base.files GROUP BY content",
    "SHOW TABLES IN lake.warm",
    "SHOW VIEWS IN lake.warm",
    "DESCRIBE TABLE EXTENDED lake.warm.base",
    "SELECT to_json(struct(*)), explode(tags) FROM lake.warm.base",
    "CALL lake.system.rewrite_data_files(table => 'warm.base', options => map('rewrite-all', 'true'))",
    "DROP VIEW lake.warm.merged",
    "DROP TABLE lake.warm.change",
    "DROP TABLE lake.warm.base PURGE",
    "DROP SCHEMA lake.warm",
)
"""Statements that load the classes that models need: one of each kind that dbt-arctic sends."""


def create(java_home: str | None = None) -> Path:
    """Create or replace the archive for a Java and the installed pyspark.

    Runs a Spark in a subprocess, with a temporary warehouse, and waits until it has ended.

    :param java_home: the Java to use; ``None`` to search for one, as for a profile without ``java_home``.
    :returns: the archive, of about 200 MB.
    :raises ClassArchiveError: Java wrote no archive. Errors of starting a Spark are raised, too.
    """
    java = find_java(java_home)
    with tempfile.TemporaryDirectory(prefix="dbt-arctic-") as warehouse:
        settings = SparkSettings(
            catalog=_CATALOG, warehouse=warehouse, master="local[2]", driver_memory="1g", java_home=java.home
        )
        if missing_jars(session_conf(settings)):
            _run(
                settings, ()
            )  # downloads them: the archive only contains classes of jars that exist at the start
        jars = cached_jars(session_conf(settings))
        if jars is None:
            raise ClassArchiveError(
                "The jars of Spark's packages are not in Ivy's cache.",
                where=", ".join(missing_jars(session_conf(settings))) or "the cache holds damaged jars",
                why="An archive is valid only for the jars that Spark starts with.",
                fix="run `dbt debug` once, which downloads them, and try again",
            )
        archive = class_archive.path(java, jars)
        archive.parent.mkdir(parents=True, exist_ok=True)
        draft = archive.with_name(f"{archive.name}.{os.getpid()}")
        options = f'{COLLECTOR} "{class_archive.WRITE}{draft}"'
        log = _run(replace(settings, spark_conf={JAVA_OPTIONS: options}), STATEMENTS)
        if not draft.exists():
            raise ClassArchiveError(
                "Java wrote no class archive.",
                where=f"Java {java.version} at {java.home}",
                why=log,
                fix="A Java without an archive of its own classes cannot add to it. Run "
                f"`{Path(java.home, 'bin', 'java')} -Xshare:dump` once, then try again.",
            )
        draft.replace(archive)
    return archive


def remove() -> list[Path]:
    """Remove all archives of the cache folder, and return their paths."""
    found = class_archive.existing()
    for archive in found:
        archive.unlink()
    return found


def _run(settings: SparkSettings, statements: tuple[str, ...]) -> str:
    """Start a Spark, run statements, and wait until its process has ended. Returns the end of its log.

    The JVM must exit normally: a killed one writes no archive.
    """
    process = jvm.started_spark(settings)
    try:
        with contextlib.closing(SessionEngine(settings).connect()) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
                cursor.fetchall()
    finally:
        jvm.stop(wait_s=_WRITE_TIMEOUT_S)
    return process.log_tail()
