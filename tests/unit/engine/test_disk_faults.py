"""A disk that is full, read-only or owned by another user is named as the reason; nothing else is."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import CatalogUnavailable, CommitStateUnknown, DiskError, StatementError

SPARK = Cause("org.apache.spark.SparkException", "Job aborted due to stage failure: Task 0 failed")
SQLITE = Cause("org.apache.iceberg.jdbc.UncheckedSQLException", "Unknown failure")


@pytest.mark.parametrize(
    ("java_class", "message", "why", "fix"),
    [
        ("java.io.IOException", "No space left on device", "is full", "free some space"),
        ("java.io.IOException", "Disk quota exceeded", "quota is exhausted", "free some space"),
        ("java.io.IOException", "File too large", "exceeds the size limit", "ulimit"),
        ("java.io.FileNotFoundException", "/lake/a.parquet (Read-only file system)", "read-only", "mount it"),
        (
            "java.io.FileNotFoundException",
            "/lake/a.parquet (Permission denied)",
            "no permission",
            "write permission",
        ),
        ("java.nio.file.AccessDeniedException", "/lake/a.parquet", "no permission", "write permission"),
        ("java.io.IOException", "Mkdirs failed to create file:/lake/a", "no permission", "write permission"),
        ("org.apache.hadoop.fs.FSError", "java.io.IOException: Input/output error", "damaged", "system log"),
    ],
)
def test_the_error_of_the_disk_is_the_reason(java_class: str, message: str, why: str, fix: str) -> None:
    error = classify([SPARK, Cause(java_class, message)], "INSERT INTO t SELECT 1").error
    assert type(error) is DiskError
    assert error.where == "INSERT INTO t SELECT 1"
    assert why in error.why
    assert message in error.why
    assert fix in error.fix
    assert "spark.local.dir" in error.fix


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("[SQLITE_FULL] Insertion failed because database is full (database or disk is full)", "is full"),
        ("[SQLITE_READONLY] Attempt to write a readonly database", "no permission"),
        ("[SQLITE_READONLY_DIRECTORY] Process does not have permission to create a journal", "no permission"),
        (
            "[SQLITE_IOERR_WRITE] I/O error in the VFS layer while trying to write to a file",
            "full or damaged",
        ),
    ],
)
def test_of_the_catalogs_file_too(message: str, why: str) -> None:
    error = classify([SQLITE, Cause("org.sqlite.SQLiteException", message)], "INSERT").error
    assert type(error) is CatalogUnavailable
    assert why in error.why
    assert "catalog.db" in error.fix


def test_a_commit_that_may_have_landed_is_not_reported_as_lost() -> None:
    told = "[SQLITE_IOERR_DIR_FSYNC] I/O error in the VFS layer while trying to invoke fsync() on a directory"
    error = classify([SQLITE, Cause("org.sqlite.SQLiteException", told)], "INSERT").error
    assert type(error) is CommitStateUnknown


def test_a_statement_that_quotes_such_words_is_no_disk() -> None:
    told = "[PARSE_SYNTAX_ERROR] near 'x'\n== SQL ==\nSELECT 'No space left on device'"
    error = classify([Cause("org.apache.spark.sql.catalyst.parser.ParseException", told)], "").error
    assert type(error) is StatementError
