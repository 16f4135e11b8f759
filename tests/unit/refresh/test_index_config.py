"""The setting ``indexes``: what is refused, and the spelling of its columns."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.index_config import check_indexes, parse_indexes

TYPES = {"id": "bigint", "Customer": "int", "price": "double", "tags": "array<string>"}


@pytest.mark.parametrize(
    ("value", "expected"), [(None, ()), ([], ()), ("Customer", ("Customer",)), (["a", "b"], ("a", "b"))]
)
def test_the_setting_is_a_column_or_a_list(value: Any, expected: tuple[str, ...]) -> None:
    assert parse_indexes("m", {"indexes": value}) == expected


@pytest.mark.parametrize("value", [["a", "A"], [""], [{"columns": ["a"], "type": "hash"}], [5]])
def test_a_value_that_is_no_list_of_columns_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"indexes (holds|contains)"):
        parse_indexes("m", {"indexes": value})


def test_columns_have_the_spelling_of_the_table() -> None:
    assert check_indexes("m", ["customer"], TYPES, ["id"]) == ("Customer",)
    # A part of a key is not found by the key alone.
    assert check_indexes("m", ["customer"], TYPES, ["id", "customer"]) == ("Customer",)


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ("custmer", "custmer"),
        ("ID", "indexes contains id, which is the key"),
        ("price", "indexes contains price, which is double"),
        ("tags", r"indexes contains tags, which is array<string>"),
    ],
)
def test_a_column_that_cannot_have_an_index_is_refused(column: str, error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        check_indexes("m", [column], TYPES, ["id"])
