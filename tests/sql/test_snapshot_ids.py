"""The ids of the records that a snapshot adds: none is the id of a stored record."""

from __future__ import annotations

import duckdb
import sqlglot

from dbt_arctic.adapter.snapshots import unique_ids


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
