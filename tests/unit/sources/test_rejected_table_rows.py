"""How rows of a database's table are recognized, and what is refused if they cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.databases.api import Column, Table
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.cursor import Progress
from dbt_arctic.sources.database_columns import read_columns
from dbt_arctic.sources.database_plan import ReadPlan, Writes
from dbt_arctic.sources.database_rows import TableRows, is_bad, require_keys, rows_of, table_rows
from dbt_arctic.sources.database_settings import DatabaseSource, parse_database

COLUMNS = (
    Column("Id", "integer", "integer", "INT"),
    Column("mail", "text", "text", "STRING"),
    Column("v", "numeric", "decimal", "DECIMAL(38,18)"),
)
KEYED = Writes(("MAIL",), is_keyed=True)


def resolved(
    writes: Writes, key: tuple[str, ...] = ("Id",), columns: Any = None, **settings: Any
) -> TableRows:
    given = {"on_bad_row": "quarantine", **settings, **({"columns": columns} if columns else {})}
    source = parse_database("crm.t", {"from": "jdbc", **given})
    table = Table("postgresql/crm/1", COLUMNS, key)
    plan = ReadPlan(read_columns(source, table, "m"), None, Progress("", None, "", "", ""), True)
    return table_rows(source, table, plan, writes, "m")


@pytest.mark.parametrize(
    ("writes", "key", "columns", "keys"),
    [
        (KEYED, ("Id",), None, (("Id",), ("mail",))),
        (Writes(("id",)), ("Id",), None, (("Id",),)),
        (Writes(("id", "MAIL")), ("mail", "Id"), None, (("Id", "mail"),)),
        (Writes(("hash_of_mail",)), ("Id",), None, (("Id",),)),
        (KEYED, (), None, (("mail",),)),
        (KEYED, ("Id",), ["mail", "v"], (("mail",),)),
        (Writes((), appends=True), ("Id",), None, ()),
        (Writes(("Id",), appends=True), ("Id",), None, ()),
    ],
)
def test_a_row_is_recognized_by_the_primary_key_and_by_that_of_the_model(
    writes: Writes, key: tuple[str, ...], columns: list[str] | None, keys: Any
) -> None:
    found = resolved(writes, key, columns)
    assert (found.keys, found.reads_again) == (keys, not writes.appends)


def test_rows_that_could_not_be_recognized_are_refused() -> None:
    for policy in ("quarantine", "drop"):
        with pytest.raises(ConfigError, match="cannot be recognized") as error:
            resolved(Writes(("hash_of_mail",)), (), on_bad_row=policy)
        assert error.value.where == "m"
        assert "add the primary key to columns" in error.value.fix
    strict = resolved(Writes(("hash_of_mail",)), (), on_bad_row="fail")
    assert not strict.keys
    # Such a model may have rejected rows of another time.
    with pytest.raises(ConfigError, match="cannot be recognized"):
        require_keys(strict, "m")


def test_required_columns_are_those_of_the_table() -> None:
    assert resolved(KEYED, required="ID").required == ("Id",)
    with pytest.raises(ConfigError, match="requires other") as error:
        resolved(KEYED, required=["v", "other"])
    assert error.value.fix == "use some of Id, mail, v"
    for wrong in ({"id": 1}, [1], 5):
        with pytest.raises(ConfigError, match="has required"):
            parse_database("crm.t", {"from": "jdbc", "required": wrong})
    with pytest.raises(ConfigError, match="use one of fail, quarantine, drop"):
        parse_database("crm.t", {"from": "jdbc", "on_bad_row": "skip"})


def test_a_source_without_a_policy_reads_as_before() -> None:
    columns = tuple(read_columns(DatabaseSource("crm.t", "t"), Table("t", COLUMNS), "m"))
    strict = rows_of(TableRows(DatabaseSource("crm.t", "t"), columns), "view")
    assert "WHERE" not in strict
    assert "AR-311" in strict
    tolerant = TableRows(DatabaseSource("crm.t", "t", on_bad_row="drop"), columns)
    assert "AR-311" not in rows_of(tolerant, "view")
    assert rows_of(tolerant, "view").endswith(f"WHERE NOT ({is_bad(tolerant)})")
