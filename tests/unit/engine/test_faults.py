"""Which of our errors a Java failure is, and whether the statement may be tried again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.engine.faults import Reaction, classify, clean_message, shortened
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.translate import has_ended
from dbt_arctic.errors import (
    ArcticError,
    CatalogUnavailable,
    CommitConflict,
    CommitStateUnknown,
    DuplicateKey,
    MalformedFile,
    NullKey,
    StatementCancelled,
    StatementError,
)

ICEBERG = "org.apache.iceberg.exceptions."


def chain(*links: tuple[str, str]) -> list[Cause]:
    return [Cause(*link) for link in links]


WRITING = ("org.apache.spark.SparkException", "[WRITING_JOB_FAILED] Writing job aborted.")


@pytest.mark.parametrize(
    ("causes", "kind", "reaction"),
    [
        (
            chain(WRITING, (ICEBERG + "CommitFailedException", "Cannot commit lake.a.t: metadata changed")),
            CommitConflict,
            Reaction.RETRY,
        ),
        (
            chain(
                (
                    ICEBERG + "ValidationException",
                    "Found conflicting files that can contain records matching x",
                )
            ),
            CommitConflict,
            Reaction.RETRY,
        ),
        (
            chain((ICEBERG + "ValidationException", "Found concurrently added DV for a.parquet: b.puffin")),
            CommitConflict,
            Reaction.RETRY,
        ),
        (
            chain((ICEBERG + "ValidationException", "Cannot find source column for partition field")),
            StatementError,
            Reaction.RAISE,
        ),
        (
            chain(
                (
                    ICEBERG + "CommitStateUnknownException",
                    "Cannot determine whether the commit was successful",
                ),
                (ICEBERG + "CommitFailedException", "timed out"),
            ),
            CommitStateUnknown,
            Reaction.RAISE,
        ),
        (
            chain(
                ("org.apache.iceberg.jdbc.UncheckedSQLException", "Unknown failure"),
                (
                    "org.sqlite.SQLiteException",
                    "[SQLITE_BUSY] The database file is locked (database is locked)",
                ),
            ),
            CatalogUnavailable,
            Reaction.RETRY_BRIEFLY,
        ),
        (
            chain(("org.sqlite.SQLiteException", "[SQLITE_NOTADB] file is not a database")),
            CatalogUnavailable,
            Reaction.RAISE,
        ),
        (
            chain((ICEBERG + "RESTException", "Error"), ("java.net.ConnectException", "Connection refused")),
            CatalogUnavailable,
            Reaction.RAISE,
        ),
        (
            chain(
                (ICEBERG + "RESTException", "Error occurred while processing POST request"),
                ("java.net.SocketTimeoutException", "Read timed out"),
            ),
            CommitStateUnknown,
            Reaction.RAISE,
        ),
        (
            chain(
                (ICEBERG + "RESTException", "Error occurred while processing POST request"),
                ("org.apache.hc.client5.http.HttpHostConnectException", "Connect to catalog failed"),
            ),
            CatalogUnavailable,
            Reaction.RAISE,
        ),
        (
            chain(
                (ICEBERG + "RESTException", "Error occurred while processing GET request"),
                ("java.net.SocketTimeoutException", "Read timed out"),
            ),
            CatalogUnavailable,
            Reaction.RAISE,
        ),
        (
            chain(
                ("org.apache.iceberg.jdbc.UncheckedSQLException", "Unknown failure"),
                ("org.postgresql.util.PSQLException", "An I/O error occurred while sending to the backend."),
            ),
            CommitStateUnknown,
            Reaction.RAISE,
        ),
        (
            chain(
                (
                    "org.apache.iceberg.jdbc.UncheckedSQLException",
                    "Failed to execute: DELETE FROM iceberg_tables",
                ),
                (
                    "java.sql.SQLException",
                    "No answer to a write to the catalog's database: An I/O error occurred",
                ),
            ),
            CommitStateUnknown,
            Reaction.RAISE,
        ),
        (
            chain(("org.apache.spark.SparkException", "Job 3 cancelled part of cancelled job group x")),
            StatementCancelled,
            Reaction.RAISE,
        ),
        (
            chain(
                ("java.lang.IllegalArgumentException", "Cannot fast-forward: main is not an ancestor of c")
            ),
            StatementError,
            Reaction.RAISE,
        ),
    ],
)
def test_a_failure_is_known_by_its_chain_of_causes(
    causes: list[Cause], kind: type[ArcticError], reaction: Reaction
) -> None:
    fault = classify(causes, "INSERT INTO t SELECT 1")
    assert (type(fault.error), fault.reaction) == (kind, reaction)


def test_a_query_leaves_no_doubt_about_a_commit() -> None:
    causes = chain((ICEBERG + "RESTException", "Error occurred while processing POST request"))
    assert type(classify(causes, "/* a note */ SELECT 1").error) is CatalogUnavailable
    assert type(classify(causes, "/* a note */ MERGE INTO t").error) is CommitStateUnknown


@pytest.mark.parametrize(
    "message",
    [
        "CSV header does not conform to the schema.\n Header: x",
        "Number of column in CSV header is not equal to number of fields in the schema:\n Header length: 1",
    ],
)
def test_a_csv_file_with_other_columns_is_named(message: str) -> None:
    reading = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/b.csv."
    causes = chain(("x.SparkException", reading), ("java.lang.IllegalArgumentException", message))
    error = classify(causes, "INSERT INTO t SELECT 1").error
    assert isinstance(error, MalformedFile)
    assert error.where == "/a/b.csv"


def test_a_file_that_does_not_fit_is_named_without_its_encoding() -> None:
    reading = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a/b%20c.json."
    record = "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records are detected: [null]."
    record += "\nParse Mode: FAILFAST. To process malformed records as null result, try 'PERMISSIVE'."
    for causes in (
        chain(WRITING, ("org.apache.spark.SparkException", f"{reading} "), ("x.SparkException", record)),
        chain(("x.SparkException", f"{reading} SQLSTATE: KD001"), ("x.SparkException", record)),
    ):
        error = classify(causes, "INSERT INTO t SELECT 1").error
        assert isinstance(error, MalformedFile)
        assert error.where == "/a/b c.json"
        assert error.why.endswith("Malformed records are detected: [null].")
    remote = chain(("x.SparkException", f"{reading.replace('file:///a', 's3a://bucket/a')}"), ("x.E", record))
    assert classify(remote, "SELECT 1").error.where == "s3a://bucket/a/b c.json"
    other = chain(("x.SparkException", reading), ("java.io.IOException", "connection reset"))
    assert type(classify(other, "SELECT 1").error) is not MalformedFile


def test_an_error_raised_in_sql_becomes_the_error_it_names() -> None:
    told = (
        "[USER_RAISED_EXCEPTION] AR-303|A row of orders has NULL in order_id.|lake.ods.orders|"
        "3 rows|Filter them out. SQLSTATE: P0001"
    )
    error = classify(chain(WRITING, ("org.apache.spark.SparkRuntimeException", told)), "INSERT ...").error
    assert isinstance(error, NullKey)
    assert (error.what, error.where, error.why, error.fix) == (
        "A row of orders has NULL in order_id.",
        "lake.ods.orders",
        "3 rows",
        "Filter them out.",
    )


def test_an_error_raised_in_sql_may_say_less() -> None:
    error = classify(
        chain(("X", "[USER_RAISED_EXCEPTION] AR-304 two rows SQLSTATE: P0001\n== SQL ==\nx")), ""
    ).error
    assert isinstance(error, DuplicateKey)
    assert (error.what, error.where, error.fix) == ("two rows", "", "")


def test_a_statement_that_quotes_a_marker_is_not_an_error_of_that_kind() -> None:
    told = "[PARSE_SYNTAX_ERROR] near 'x' (line 1, pos 0)\n== SQL ==\nraise_error('AR-303|null||')"
    assert type(classify(chain(("org.apache.spark.ParseException", told)), "").error) is StatementError


def test_the_position_stays_and_the_stack_and_the_plan_go() -> None:
    told = clean_message(
        "[UNRESOLVED_COLUMN] `nope`. SQLSTATE: 42703; line 3 pos 7;\n'Project ['nope]\n+- Relation t\n"
    )
    assert told == "[UNRESOLVED_COLUMN] `nope`. SQLSTATE: 42703; line 3 pos 7"
    assert clean_message("boom\n\tat a.B$.c(D.scala:1)\n\t... 3 more\nDriver stacktrace:\nx") == "boom"


def test_the_innermost_message_is_reported_because_it_is_the_reason() -> None:
    error = classify(chain(WRITING, ("java.io.IOException", "Stream is closed")), "INSERT").error
    assert "[WRITING_JOB_FAILED]" in error.why
    assert "Stream is closed" in error.why


def test_a_failure_without_any_message_names_its_classes() -> None:
    assert classify(chain(("java.lang.NullPointerException", "")), "").error.why == "NullPointerException"


@pytest.mark.parametrize(
    ("told", "alive", "ended"),
    [
        ("Job 5 cancelled because SparkContext was shut down", True, True),
        ("Cannot call methods on a stopped SparkContext.", True, True),
        ("[DIVIDE_BY_ZERO] Division by zero.", True, False),
        ("[DIVIDE_BY_ZERO] Division by zero.", False, True),
    ],
)
def test_a_spark_that_is_being_stopped_has_ended(told: str, alive: bool, ended: bool) -> None:
    error = classify([Cause("org.apache.spark.SparkException", told)], "SELECT 1").error
    process: Any = SimpleNamespace(is_alive=lambda: alive)
    assert has_ended(error, process) is ended


def test_a_struct_or_map_without_a_type_is_named_with_the_cast_that_it_needs() -> None:
    empty = "x.InvalidSchemaException: Cannot write a schema with an empty group: "
    struct = chain(WRITING, ("x.SparkException", empty + "required group a_x20note = 2 {}"))
    error = classify(struct, "INSERT INTO t SELECT 1").error
    assert isinstance(error, StatementError)
    assert "cannot store a note, because" in error.what
    assert "cast(null as string)" in error.fix
    element = chain(
        WRITING, ("java.lang.IllegalArgumentException", "Cannot convert element Parquet: unknown")
    )
    assert "cast(array() as array<string>)" in classify(element, "INSERT INTO t SELECT 1").error.fix
    key = chain(("x.IllegalArgumentException", "Cannot create required field with unknown type: key"))
    assert "cast(map() as map<string, string>)" in classify(key, "CREATE TABLE t").error.fix


COMMENT = '/* {"app": "dbt", "dbt_version": "1.11.16", "node_id": "model.shop.orders"} */'


def test_an_error_names_the_node_instead_of_the_comment_of_dbt() -> None:
    error = classify(chain(("org.apache.spark.SparkException", "no")), f"{COMMENT}\n  SELECT 1").error
    assert error.where == "model.shop.orders: SELECT 1"
    assert shortened("/* mine */ SELECT 1") == "/* mine */ SELECT 1"


def test_suggestions_have_no_hidden_columns_and_a_missing_name_has_a_fix() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `gone` cannot be resolved. "
        "Did you mean one of the following? [{}]. SQLSTATE: 42703; line 20 pos 53"
    )
    analysis = "org.apache.spark.sql.AnalysisException"
    found = classify(
        chain((analysis, text.format("`_arctic_rows`, `id`, `_arctic_n`, `amount`"))), "INSERT"
    ).error
    assert "[`id`, `amount`]. SQLSTATE" in found.why
    assert "delete_when" in found.fix
    only_ours = classify(chain((analysis, text.format("`_arctic_rows`"))), "INSERT").error
    assert "cannot be resolved. SQLSTATE" in only_ours.why
    missing = "[TABLE_OR_VIEW_NOT_FOUND] The table or view `lake`.`raw`.`orders` cannot be found."
    assert "source" in classify(chain((analysis, missing)), "INSERT").error.fix


def test_a_file_that_is_gone_has_a_fix() -> None:
    lost = "Failed to open input stream for file: /lake/shop/orders/metadata/00001.metadata.json"
    outer = ("java.util.concurrent.CompletionException", f"{ICEBERG}NotFoundException: {lost}")
    for causes in (chain((f"{ICEBERG}NotFoundException", lost)), chain(outer)):
        error = classify(causes, "SELECT * FROM orders").error
        assert error.code == "AR-201"
        assert error.fix.startswith("restore the file from a backup. `dbt-arctic verify`")
    other = chain(("org.apache.spark.sql.AnalysisException", "[X] NotFoundException"))
    assert classify(other, "SELECT 1").error.fix == ""
