"""dbt's cross-database macros where dbt-spark's own are wrong: dates, parts of a text, casts that fail."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.dbt.keyed.conftest import Shop


def selected(shop: Shop, expressions: dict[str, str], rows: str = "(select 1)") -> dict[str, Any]:
    """The value of each expression, in one query."""
    listed = ",\n".join(f"{expression} as `{name}`" for name, expression in expressions.items())
    table = shop.dbt("show", "--inline", f"select {listed} from {rows}").results[0].agate_table
    return dict(zip(expressions, table.rows[0].values(), strict=True))


def test_dates_are_added_to_as_spark_does(shop: Shop) -> None:
    at = datetime(2024, 1, 31, 23, 59, 58, 250_000)
    whole = {
        "week": timedelta(days=7),
        "day": timedelta(days=1),
        "hour": timedelta(hours=1),
        "minute": timedelta(minutes=1),
        "second": timedelta(seconds=1),
        "millisecond": timedelta(milliseconds=1),
        "microsecond": timedelta(microseconds=1),
    }
    counts = [3, -3, 5_000_000_000]
    expected = {f"{unit} {n}": at + n * size for unit, size in whole.items() for n in counts[:2]}
    expected["microsecond far"] = at + counts[2] * whole["microsecond"]
    expected |= {
        "month": datetime(2024, 2, 29, 23, 59, 58, 250_000),
        "quarter": datetime(2023, 10, 31, 23, 59, 58, 250_000),
        "year": datetime(2026, 1, 31, 23, 59, 58, 250_000),
        "of a date": datetime(2024, 1, 15),
        "of a sum": at + timedelta(days=14),
        "half an hour": at + timedelta(minutes=30),
        "half a second": at + timedelta(milliseconds=500),
    }
    literal = f"\"timestamp'{at}'\""
    calls = {f"{unit} {n}": f"dbt.dateadd('{unit}', {n}, {literal})" for unit in whole for n in counts[:2]}
    calls |= {
        "microsecond far": f"dbt.dateadd('microsecond', {counts[2]}, {literal})",
        "month": f"dbt.dateadd('month', 1, {literal})",
        "quarter": f"dbt.dateadd('quarter', -1, {literal})",
        "year": f"dbt.dateadd('year', 2, {literal})",
        "of a date": "dbt.dateadd('week', 2, \"date'2024-01-01'\")",
        "of a sum": f"dbt.dateadd('week', '1 + 1', {literal})",
        "half an hour": f"dbt.dateadd('hour', 0.5, {literal})",
        "half a second": f"dbt.dateadd('second', '1.0 / 2', {literal})",
    }
    found = selected(shop, {name: f"cast({{{{ {call} }}}} as string)" for name, call in calls.items()})
    assert {name: datetime.fromisoformat(str(value)) for name, value in found.items()} == expected


def test_differences_count_the_boundaries_between(shop: Shop) -> None:
    cases = [
        ("2023-01-01", "2023-04-01", "quarter", 1),
        ("2023-04-01", "2023-07-01", "quarter", 1),
        ("2023-12-31", "2024-01-01", "quarter", 1),
        ("2024-10-01", "2025-01-01", "quarter", 1),
        ("2024-01-31", "2024-02-01", "month", 1),
        ("2024-03-01", "2024-01-31", "month", -2),
        ("2023-12-31", "2024-01-01", "year", 1),
        ("2024-01-06", "2024-01-07", "week", 1),
        ("2024-01-07", "2024-01-13", "week", 0),
        ("2024-01-14", "2024-01-06", "week", -2),
        ("2024-01-01 23:59:59", "2024-01-02 00:00:00", "day", 1),
        ("2024-01-01 10:00:00", "2024-01-01 10:30:00", "hour", 0),
        ("2024-01-01 10:59:59", "2024-01-01 11:00:00", "hour", 1),
        ("2024-01-01 10:00:10", "2024-01-01 10:00:50", "minute", 0),
        ("2024-01-01 10:00:00.9", "2024-01-01 10:00:01.1", "second", 1),
        ("2024-01-01 10:00:00.5", "2024-01-01 10:00:00.75", "millisecond", 250),
        ("2024-01-01", "2024-01-01 00:00:00.000005", "microsecond", 5),
    ]
    names = {" ".join(map(str, case[:3])): case for case in cases}
    found = selected(
        shop,
        {
            name: f"{{{{ dbt.datediff(\"'{first}'\", \"'{second}'\", '{unit}') }}}}"
            for name, (first, second, unit, _) in names.items()
        },
    )
    assert {name: int(value) for name, value in found.items()} == {
        name: case[3] for name, case in names.items()
    }


def test_a_series_of_weeks_has_weeks(shop: Shop) -> None:
    spine = "{{ dbt.date_spine('week', \"date'2024-01-01'\", \"date'2024-02-01'\") }}"
    shop.model("weeks", f"{{{{ config(materialized='table') }}}} {spine}")
    shop.dbt("run")
    first = datetime(2024, 1, 1)
    days = [str(row[0]) for row in shop.sql("SELECT cast(date_week AS date) FROM {s}.weeks ORDER BY 1")]
    assert days == [str((first + timedelta(weeks=number)).date()) for number in range(4)]


def test_a_text_without_the_part_has_an_empty_one(shop: Shop) -> None:
    expressions = {
        "there": "{{ dbt.split_part('t', \"'@'\", 2) }}",
        "not there": "{{ dbt.split_part('t', \"'/'\", 2) }}",
        "letters": "{{ dbt.split_part('t', \"'T'\", 1) }}",
        "two": "{{ dbt.split_part('t', \"'||'\", 2) }}",
        "last": "{{ dbt.split_part('t', \"'|'\", -1) }}",
    }
    found = selected(shop, expressions, "(select 'aT1@b||c' as t)")
    assert found == {"there": "b||c", "not there": "", "letters": "a", "two": "c", "last": "c"}


def test_a_safe_cast_is_null_where_a_cast_would_fail(shop: Shop) -> None:
    found = selected(
        shop,
        {
            "text": "{{ dbt.safe_cast(\"'abc'\", 'int') }}",
            "number": "{{ dbt.safe_cast(\"'7'\", 'int') }}",
            "day": "{{ dbt.safe_cast(\"'2024-02-31'\", 'date') }}",
        },
    )
    assert found == {"text": None, "number": 7, "day": None}
