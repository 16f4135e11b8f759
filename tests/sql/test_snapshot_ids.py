"""The ids of the records that a snapshot adds, and the ends of those that it replaces."""

from __future__ import annotations

import duckdb
import sqlglot

from dbt_arctic.adapter.snapshots import ended_rows, unique_ids


def test_only_a_new_record_with_the_id_of_a_stored_one_gets_another_id() -> None:
    connection = duckdb.connect()
    # An earlier version could store an id twice. Each change still stays one row.
    connection.execute("CREATE TABLE stored AS FROM (VALUES ('a'), ('a'), ('b')) AS t(dbt_scd_id)")
    connection.execute(
        "CREATE TABLE changes AS FROM (VALUES ('insert', 1, 'a'), ('insert', 2, 'c'), ('update', 3, 'b'), "
        "('delete', 4, 'a')) AS t(dbt_change_type, id, dbt_scd_id)"
    )
    sql = unique_ids("SELECT * FROM changes", "stored", "dbt_scd_id", "concat(dbt_scd_id, '|now')")
    (translated,) = sqlglot.transpile(sql, read="databricks", write="duckdb")
    found = connection.sql(f"SELECT dbt_change_type, id, dbt_scd_id FROM ({translated}) ORDER BY id")
    assert found.fetchall() == [
        ("insert", 1, "a|now"),
        ("insert", 2, "c"),
        ("update", 3, "b"),
        ("delete", 4, "a"),
    ]


def test_a_record_ends_at_the_run_if_the_row_that_replaces_it_has_no_time() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE changes AS FROM (VALUES ('insert', 1, NULL), ('update', 2, NULL), ('update', 3, 30), "
        "('delete', 4, 40)) AS t(dbt_change_type, id, dbt_valid_to)"
    )
    sql = ended_rows("SELECT * FROM changes", "dbt_valid_to", "99")
    (translated,) = sqlglot.transpile(sql, read="databricks", write="duckdb")
    found = connection.sql(f"SELECT id, dbt_valid_to FROM ({translated}) ORDER BY id").fetchall()
    assert found == [(1, None), (2, 99), (3, 30), (4, 40)]
