"""The types of the columns of a CSV file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dbt_arctic.adapter.seeds import column_types, number_type
from dbt_arctic.errors import ConfigError


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2"], "bigint"),
        (["10.00", "1E+3"], "bigint"),
        (["0.1", "10.75"], "double"),
        (["1", "NaN", "Infinity"], "double"),
        (["999999999999999999"], "bigint"),
        (["12345678901234567890", "1"], "decimal(20,0)"),
        (["0.1234567890123456789"], "decimal(20,19)"),
        (["1e3", "2e-3"], "double"),
        ([], "bigint"),
    ],
)
def test_the_type_of_a_column_holds_each_of_its_numbers(values: list[str], expected: str) -> None:
    assert number_type("s", "c", [*map(Decimal, values), None]) == expected


@pytest.mark.parametrize("values", [["1" * 39], ["1" * 20, "0." + "1" * 20], ["NaN", "1" * 16]])
def test_numbers_without_such_a_type_are_an_error_that_says_what_to_do(values: list[str]) -> None:
    with pytest.raises(ConfigError, match="column c") as told:
        number_type("seeds/s.csv", "c", map(Decimal, values))
    assert told.value.fix == "use a string: column_types: {c: string}"


def write_seed(folder: Path, text: str) -> Path:
    (folder / "s.csv").write_text(text, encoding="utf-8")
    return folder / "s.csv"


def test_types_are_found_in_whatever_case_and_numbers_with_underscores_are_text(tmp_path: Path) -> None:
    path = write_seed(tmp_path, "\ufeffid,Zip,code,text\n1,00501,29051_00040,a_1\n2,01234,7,b\n")
    assert column_types("s", path, ",", {"zip": "string"}) == {"Zip": "string", "code": "string"}
    assert column_types("s", path, ",", {"CODE": "bigint"}) == {"code": "bigint"}


@pytest.mark.parametrize("text", ["50%", "$5.00", "-€5", "1,5", "1,2,3", "12,3456", "1_0", "٣"])
def test_what_dbt_would_read_as_another_number_is_text(tmp_path: Path, text: str) -> None:
    path = write_seed(tmp_path, f'id,n\n1,"{text}"\n2,7\n')
    assert column_types("s", path, ",", {}) == {"n": "string"}


@pytest.mark.parametrize(
    "text", ["1,000", "-1,234,567.50", "1e3", ".5", "5.", "+7", " 8 ", "NaN", "a 5%", ""]
)
def test_numbers_as_dbt_reads_them_stay_numbers(tmp_path: Path, text: str) -> None:
    path = write_seed(tmp_path, f'id,n\n1,"{text}"\n2,7\n')
    assert column_types("s", path, ",", {}) == {}


def test_a_type_for_a_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = write_seed(tmp_path, "id;zip\n1;2\n")
    with pytest.raises(ConfigError, match="column_types contains zipp") as told:
        column_types("s", path, ";", {"zipp": "string"})
    assert "id, zip" in told.value.why
