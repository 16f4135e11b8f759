"""Checks as SQL: where they are placed, and which rows they exempt."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.checks import Check, checked_select, when_broken
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable

POSITIVE = Check("a|b", "check a > 0 || b", "NOT (a > 0)")
TABLE = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(2, "b", "c"),
    key=("id",),
    layout=Layout(8, "id"),
    columns=(Column("id", "int"), Column("a", "int")),
)


def test_without_checks_a_query_only_has_its_columns_ordered() -> None:
    sql = checked_select("select 1", ["b", "a"], (), (), "", "m")
    assert sql == "SELECT\n  `b`,\n  `a`\nFROM (\nselect 1\n) AS model_subq"


def test_the_parts_of_an_error_stay_apart() -> None:
    (branch,) = when_broken([POSITIVE], ["id"], "m")
    what, where, why, fix = branch.split("AR-307|")[1].replace("'|', '/'", "").split("|", 3)
    assert "constraint a/b: " in what
    assert (where, why.split(";")[0]) == ("m", "every write checks the model\\'s contract")
    assert fix.endswith("check a > 0 || b'))")


def test_a_delete_is_not_checked() -> None:
    batch = Batch("m", "select 1", ("id",), ("id", "a"), ("id", "a"), checks=(POSITIVE,))
    assert "WHEN NOT (a > 0) THEN" in batch.one_row_per_key(7)
    with_deletes = replace(batch, delete_when="gone").one_row_per_key(7)
    assert "WHEN (CASE WHEN (gone) THEN 'D' ELSE 'U' END = 'U') AND (NOT (a > 0)) THEN" in with_deletes
