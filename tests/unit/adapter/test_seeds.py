"""The types of the columns of a CSV file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dbt_arctic.adapter.seed_values import seed_value
from dbt_arctic.adapter.seeds import column_types, number_type
from dbt_arctic.errors import ConfigError, MalformedFile


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


MISREAD_TIMES = [f"2024-01-01T10:00:00.123456{zone}" for zone in ("7", "789Z", "789+02:00")]


@pytest.mark.parametrize(
    "text",
    [
        *("50%", "$5.00", "-€5", "1,5", "1,2,3", "12,3456", "1_0", "٣", f"0.{'1' * 29}", f"-{'1' * 29}"),
        *(*MISREAD_TIMES, "12T10", "2024-01T10:00", "2024-W01-1T10:00", "2024-001T10", "2024-01-01T10.5"),
    ],
)
def test_what_dbt_would_read_as_another_number_or_time_is_text(tmp_path: Path, text: str) -> None:
    path = write_seed(tmp_path, f'id,n\n1,"{text}"\n2,7\n')
    assert column_types("s", path, ",", {}) == {"n": "string"}


@pytest.mark.parametrize(
    "text",
    [
        *("1,000", "-1,234,567.50", "1e3", ".5", "5.", "+7", " 8 ", "NaN", "a 5%", "", f"1{'0' * 30}"),
        *("2024-01-01T10:00:00.123456000Z", "20240101T1000+02", "2024-01-01T10:00:00,5", "aT5", "10T"),
    ],
)
def test_numbers_and_times_as_dbt_reads_them_keep_their_types(tmp_path: Path, text: str) -> None:
    path = write_seed(tmp_path, f'id,n\n1,"{text}"\n2,7\n')
    assert column_types("s", path, ",", {}) == {}


def test_a_type_for_a_column_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = write_seed(tmp_path, "id;zip\n1;2\n")
    with pytest.raises(ConfigError, match="column_types contains zipp") as told:
        column_types("s", path, ";", {"zipp": "string"})
    assert "id, zip" in told.value.why


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("id,code,Code", "names several columns code and Code"),
        ("id,code, code ", "names several columns"),
        ("id,,code", "has no name for column 2"),
        ("id,code,", "has no name for column 3"),
    ],
)
def test_each_column_of_a_file_needs_a_name(tmp_path: Path, header: str, problem: str) -> None:
    path = write_seed(tmp_path, f"{header}\n1,x,5_0\n")
    with pytest.raises(ConfigError, match=problem) as told:
        column_types("s", path, ",", {})
    assert told.value.where == "s: s.csv"


KEPT = {
    "DECIMAL (10, 2)": ["10.55", "10.550", "1055e-2", "-0.01", "0.000", "1e3", "2530e-1"],
    "decimal": ["10", "10.0"],
    "date": ["2024-01-01", "2024-1-1", " 2024-01-01T00:00:00.000 ", "+10000-01-01"],
    "timestamp_ntz": ["2024-01-01", "2024-01-01 23:59", "2024-01-01T1:2:3.123456000"],
    "timestamp": ["2024-01-01T10:00:00.5+02:00", "2024-01-01 10:00 Europe/Zurich", "2024-01-01 10:00:00Z"],
    "double": ["0.1", "NaN", "-Infinity", "9007199254740992", "1e300", "0e9"],
    "float": ["0.1", "16777216"],
    "string": ["2024-01-01T10:00:00.123456789", "10.555"],
}
CHANGED = {
    "decimal(10,2)": ["10.555", "1055.5e-2", "0.001"],
    "numeric": ["10.5"],
    "date": ["2024-01-01 23:59:00", "2024-01", "2024", "2024-01-01T00:00Z", "2024-01-01 x"],
    "timestamp_ntz": ["2024-01-01T10:00:00+02:00", "2024-01-01 10:00:00.1234567", "2024-01", "10:00:00"],
    "TIMESTAMP": ["2024-01-01 10:00:00.1234567", "2024-01-01T10:00:00.123456789Z", "2024", "T10:00"],
    "double": ["9007199254740993", "1e400", "1e-400", "5f", "0x1p3"],
    "float": ["16777217", "1e39", "1e-60"],
}


def test_a_value_that_its_type_would_change_is_refused_and_no_other() -> None:
    for type_, texts in KEPT.items():
        assert seed_value("s", "c", type_, [None, *texts])
    for type_, texts in CHANGED.items():
        for text in texts:
            with pytest.raises(MalformedFile, match="the column c of the seed is") as told:
                seed_value("s", "c", type_, [None, text])
            assert text in told.value.what, type_


def test_a_value_that_dbt_has_parsed_is_not_parsed_again() -> None:
    assert seed_value("s", "c", "decimal(10,0)", [Decimal("1.0"), True])
