"""What ``ingest init`` writes for tables of a database."""

from __future__ import annotations

import itertools

import pytest
import yaml

from dbt_arctic.databases.api import Column, ListedTable, Table
from dbt_arctic.databases.client import parts_of
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.sources.capture_settings import parse_capture
from dbt_arctic.sources.database_scaffold import Deletes, database_model_sql, database_properties
from dbt_arctic.sources.database_settings import parse_database
from dbt_arctic.sources.draft_database_tables import (
    choose_tables,
    draft_database_table,
    draft_names,
    table_setting,
)

ID = Column("id", "bigint", "integer", "BIGINT", False)
UPDATED = Column("Updated At", "timestamptz", "timestamptz", "TIMESTAMP", False)
LISTED = ListedTable("public", "accounts", 12)


def test_each_name_of_a_table_is_found_again_by_its_setting() -> None:
    for schema, name in itertools.product(["public", 'a."b', "x y", "`t"], repeat=2):
        assert parts_of(table_setting(ListedTable(schema, name)), "") == [schema, name]


def test_two_tables_never_share_a_name() -> None:
    tables = [
        *(ListedTable("a", "b_c"), ListedTable("a_b", "c"), ListedTable("d", "c"), ListedTable("d", "C")),
        *(ListedTable("e", "-"), ListedTable("e", "+"), ListedTable("e", "1")),
    ]
    names = draft_names(tables)
    assert len(set(names.values())) == len(tables) == len(names)
    assert all(name.isidentifier() for name in names.values())
    assert names[ListedTable("a", "b_c")] == "b_c"


def test_tables_are_chosen_by_patterns() -> None:
    tables = [ListedTable("public", "orders"), ListedTable("public", "Items"), ListedTable("audit", "orders")]

    def chosen(*patterns: str, excluded: tuple[str, ...] = ()) -> set[str]:
        return {f"{one.schema}.{one.name}" for one in choose_tables(tables, patterns, excluded, "crm")}

    assert chosen() == {"public.orders", "public.Items", "audit.orders"}
    assert chosen("orders") == {"public.orders", "audit.orders"}
    assert chosen("public.*", excluded=("Items",)) == {"public.orders"}
    with pytest.raises(UnknownRelation, match=r"no table matches order\n") as error:
        chosen("order")
    assert "audit.orders" in error.value.fix
    with pytest.raises(UnknownRelation, match="matches nothing"):
        chosen(excluded=("nothing",))
    with pytest.raises(UnknownRelation, match="every table is excluded"):
        chosen(excluded=("*",))
    with pytest.raises(UnknownRelation, match="there is no table to load"):
        choose_tables([], (), (), "crm")


def test_the_metadata_of_a_table_decides_key_cursor_and_columns() -> None:
    made = Column("created_at", "timestamptz", "timestamptz", "TIMESTAMP", False)
    table = Table("1", (ID, made, UPDATED._replace(name="last_update", is_nullable=True)), ("id",))
    draft = draft_database_table("accounts", LISTED, table)
    assert (draft.key, draft.cursor, draft.has_null_cursor, draft.rows) == (("id",), "last_update", True, 12)
    assert draft.left_out == ()


@pytest.mark.parametrize("kind", ["date", "text", "integer"])
def test_only_a_time_is_taken_for_a_cursor(kind: str) -> None:
    column = UPDATED._replace(name="updated_at", family=kind)  # type: ignore[arg-type]
    assert draft_database_table("accounts", LISTED, Table("1", (ID, column), ("id",))).cursor == ""


def test_columns_that_a_source_cannot_have_are_left_out() -> None:
    shape = Column("shape", "geometry", "unreadable", "")
    columns = (ID, shape, ID._replace(name="ID"), ID._replace(name="_action"), UPDATED)
    draft = draft_database_table("accounts", LISTED, Table("1", columns, ("id",)))
    assert (draft.columns, draft.left_out) == (("id", "Updated At"), ("shape", "ID", "_action"))
    assert draft_database_table("accounts", LISTED, Table("1", columns, ("id", "shape"))).key == ()


@pytest.mark.parametrize("deletes", ["ignore", "compare"])
def test_the_declared_source_is_one_that_can_be_read(deletes: Deletes) -> None:
    columns = (ID, UPDATED._replace(name="it's", family="text"), UPDATED._replace(name="changed_at"))
    draft = draft_database_table("accounts", LISTED, Table("1", columns, ("id", "it's")))
    declared = yaml.safe_load(yaml.safe_dump(database_properties("crm", "", [draft], "stg_", deletes)))
    [source], [model] = declared["sources"], declared["models"]
    [table] = source["tables"]
    settings = {**source["config"]["meta"]["arctic"], **table["config"]["meta"]["arctic"]}
    read = parse_database("crm.accounts", settings)
    assert (read.table, read.cursor, read.compares_keys) == (
        "public.accounts",
        "changed_at",
        deletes == "compare",
    )
    assert (read.null_cursor, dict(read.columns)) == ("fail", {})
    assert model["name"] == "stg_accounts"
    assert {one["name"]: one["data_tests"] for one in model["columns"]} == {
        "id": ["not_null"],
        "it's": ["not_null"],
    }
    sql = database_model_sql("crm", draft, deletes)
    assert sql.startswith("{{ config(materialized='incremental', unique_key=['id', 'it\\'s']) }}")
    assert ("_action" in sql) == (deletes == "compare")
    assert "`it's`" in sql


def test_a_generated_column_is_not_one_of_a_source_that_is_captured() -> None:
    table = Table("1", (ID, UPDATED, UPDATED._replace(name="twice", is_generated=True)), ("id",))
    assert "twice" in draft_database_table("accounts", LISTED, table).columns
    draft = draft_database_table("accounts", LISTED, table, is_followed=True)
    assert ("twice" in draft.columns, draft.left_out) == (False, ("twice",))
    [source] = database_properties("crm", "mariadb://host/crm", [draft], "", "from_log")["sources"]
    assert source["config"]["meta"]["arctic"] == {"from": "mariadb", "url": "mariadb://host/crm"}


def test_the_declared_source_may_be_captured_from_the_log() -> None:
    draft = draft_database_table("accounts", LISTED, Table("1", (ID, UPDATED), ("id",)))
    declared = database_properties("crm", "postgresql://host/crm", [draft], "", "from_log", "arctic_dev")
    [source] = declared["sources"]
    [table] = source["tables"]
    settings = {**source["config"]["meta"]["arctic"], **table["config"]["meta"]["arctic"]}
    assert settings["from"] == "postgres"
    read = parse_capture("crm.accounts", settings)
    assert (read.slot, read.table.table) == ("arctic_dev", "public.accounts")
    sql = database_model_sql("crm", draft, "from_log")
    assert "sequence_by='_source_sequence'" in sql
    assert "    _source_sequence,\n    _action\n" in sql
