"""From dbt's form of a contract to what a write makes sure of."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.adapter.column import ArcticColumn
from dbt_arctic.adapter.constraints import Contract, contract_mismatch, contracted_select, read_contract
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import Check


def model(columns: dict[str, list[dict[str, Any]]], *constraints: dict[str, Any], **config: Any) -> Any:
    return {
        "name": "orders",
        "config": {"contract": {"enforced": True}, **config},
        "columns": {name: {"name": name, "constraints": listed} for name, listed in columns.items()},
        "constraints": list(constraints),
    }


def read(described: Any, key: tuple[str, ...] = ()) -> Contract:
    contract = read_contract(described, key)
    assert contract is not None
    return contract


def test_a_model_without_an_enforced_contract_has_none() -> None:
    assert read_contract({**model({"id": [{"type": "not_null"}]}), "config": {}}) is None


def test_constraints_stand_under_a_column_or_under_the_model() -> None:
    under_column = read(model({"id": [{"type": "not_null"}], "b": []}))
    under_model = read(model({"id": [], "b": []}, {"type": "not_null", "columns": ["ID"]}))
    assert under_column == under_model
    assert under_column.required == ("id",)
    assert under_column.checks == (Check("not_null on id", "not_null on id", "`id` IS NULL"),)


def test_a_key_is_enforced_by_the_keyed_table() -> None:
    described = model({"Id": [{"type": "primary_key"}, {"type": "not_null"}], "b": [{"type": "unique"}]})
    plain, keyed = read(described), read(described, ("id",))
    assert [constraint.type for constraint in plain.ignored] == ["primary_key", "unique"]
    assert [constraint.type for constraint in keyed.ignored] == ["unique"]
    assert keyed.checks == ()
    assert keyed.required == ("Id",)


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ({"type": "check"}, "has no expression"),
        ({"type": "not_null", "columns": ["gone"]}, "refers to gone"),
        ({"type": "not_null"}, "refers to no column"),
        ({"type": "not_null", "columns": ["id"], "expression": "deferrable"}, "has an expression"),
        ({"type": "primary_key", "columns": ["b"]}, "the primary key of the contract is b"),
    ],
)
def test_a_constraint_that_says_nothing_is_an_error(constraint: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_contract(model({"id": [], "b": []}, constraint), ("id",))


def test_the_checks_are_part_of_a_column_that_is_stored_and_that_nothing_joins_on() -> None:
    described = model(
        {"id": [{"type": "not_null"}], "day": [], "amount": [], "new": []},
        unique_key="ID",
        partition_by=["months(day)"],
    )
    sql = contracted_select(read(described), described, "select 1", ["id", "day", "amount"])
    assert sql.startswith("SELECT\n  `id`,\n  `day`,\n  CASE\n    WHEN `id` IS NULL THEN raise_error(")
    assert "ELSE `amount`\n  END AS `amount`,\n  `new`\nFROM (\nselect 1\n) AS model_subq" in sql
    only_layout = contracted_select(read(described), described, "select 1", ["id", "day"])
    assert "END AS `day`" in only_layout


def test_a_contract_agrees_with_a_query_of_another_order_and_case() -> None:
    declared = [("id", "int"), ("name", "string")]
    assert contract_mismatch(declared, [("NAME", "string"), ("id", "int")], keyed=False) is None
    with_action = [*declared, ("_action", "string")]
    assert contract_mismatch(declared, with_action, keyed=True) is None
    assert contract_mismatch(with_action, with_action, keyed=True) is None
    mismatch = contract_mismatch(declared, with_action, keyed=False)
    assert mismatch is not None
    assert [column["name"] for column in mismatch[1]] == ["id", "name", "_action"]
    assert contract_mismatch(declared, [("id", "bigint"), ("name", "string")], keyed=False) is not None


def test_an_error_shows_what_fits_on_a_line() -> None:
    described = model({"items": [], "id": []})
    described["columns"]["items"]["data_type"] = "array<string>"
    assert read(described).shown == ("id",)
    del described["columns"]["id"]
    assert read(described).shown == ("items",)


def test_fields_do_not_mind_case_and_keep_their_order() -> None:
    declared = [("a", "array<struct<City:string,Zip:int>>")]
    assert contract_mismatch(declared, [("A", "array<struct<city:string,zip:int>>")], keyed=False) is None
    for other in ("array<struct<zip:int,city:string>>", "array<struct<city:string,zip:bigint>>"):
        assert contract_mismatch(declared, [("a", other)], keyed=False) is not None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("TEXT", "string"),
        ("varchar", "string"),
        ("varchar(10)", "varchar(10)"),
        ("numeric(10,2)", "numeric(10,2)"),
        ("map<text, integer>", "map<string, int>"),
        ("struct<text text, integer: array<text>>", "struct<text string, integer: array<string>>"),
        (
            "struct<`a,text`: text not null comment 'text, text'>",
            "struct<`a,text`: string not null comment 'text, text'>",
        ),
    ],
)
def test_types_of_other_databases_are_understood_at_every_depth(written: str, meant: str) -> None:
    assert ArcticColumn.translate_type(written) == meant
