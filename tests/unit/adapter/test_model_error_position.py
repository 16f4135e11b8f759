"""Errors of a model's statements name its file and line, or its setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dbt_arctic.adapter.model_error_position import in_model, locate_in
from dbt_arctic.errors import StatementError

COMMENT = '/* {"app": "dbt", "node_id": "model.shop.orders"} */'
RAW = """{{ config(materialized='table') }}
select id,
  {% for name in ['a', 'b'] %}
  amout as {{ name }},
  {% endfor %}
  {{ wrong() }}
from {{ ref('x') }}"""
COMPILED = """
select id,

  amout as a,

  amout as b,

  no_such(id)
from lake.dev.x"""
WRAPPED = f"{COMMENT}\ncreate table t\nas\n{COMPILED}"


@pytest.fixture
def orders() -> Iterator[dict[str, Any]]:
    model = {
        "name": "orders",
        "unique_id": "model.shop.orders",
        "original_file_path": "models/orders.sql",
        "raw_code": RAW,
        "compiled_code": COMPILED,
        "config": {"delete_when": "gone = 'x'", "deduplicate_by": ["a", "nope + 1"]},
    }
    locate_in(model)
    yield model
    locate_in({})


def failed(statement: str, text: str) -> StatementError:
    """An error at the first line of a statement with a text."""
    line = next(number for number, one in enumerate(statement.split("\n"), 1) if text in one)
    return StatementError("no", where=f"line {line}", why="why", fix="fix", statement=statement, line=line)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("select id,", "models/orders.sql, line 2: select id,"),
        ("amout as b", "the compiled SQL of models/orders.sql, line 6: amout as b,"),
        ("no_such", "the compiled SQL of models/orders.sql, line 8: no_such(id)"),
    ],
)
def test_a_line_of_the_model(orders: dict[str, Any], text: str, where: str) -> None:
    error = in_model(failed(WRAPPED, text))
    assert error.where == where
    assert (error.why, error.fix) == ("why", "fix")


def test_a_line_that_occurs_twice_is_found_by_its_position(orders: dict[str, Any]) -> None:
    orders["compiled_code"] = COMPILED.replace("amout as b", "amout as a")
    statement = WRAPPED.replace("amout as b", "amout as a")
    assert in_model(failed(statement, "amout as a")).where.startswith(
        "the compiled SQL of models/orders.sql, line 4: "
    )


def test_a_setting(orders: dict[str, Any]) -> None:
    statement = f"{COMMENT}\ninsert into t select *,\n case when gone = 'x' then 'D' end\nfrom ({COMPILED})"
    assert in_model(failed(statement, "case when")).where == "models/orders.sql, delete_when: gone = 'x'"
    ordered = f"{COMMENT}\nselect *,\n max_by(b, nope + 1)\nfrom ({COMPILED})"
    assert in_model(failed(ordered, "max_by")).where == "models/orders.sql, deduplicate_by: nope + 1"


def test_statements_of_others_stay_as_they_are(orders: dict[str, Any]) -> None:
    other = failed(WRAPPED.replace("model.shop.orders", "test.shop.ids"), "select id,")
    assert in_model(other) is other
    without_comment = failed("select 1,\n  nope\nfrom t", "nope")
    assert in_model(without_comment) is without_comment
    analysed = failed(COMPILED, "select id,")
    assert in_model(analysed).where == "models/orders.sql, line 2: select id,"
    unknown = StatementError("no", why="[DIVIDE_BY_ZERO]", statement=WRAPPED)
    assert in_model(unknown) is unknown
    outside = failed(WRAPPED, "create table t")
    assert in_model(outside) is outside


def test_without_a_model_nothing_is_changed() -> None:
    locate_in({})
    error = failed("select 1,\n  nope\nfrom t", "nope")
    assert in_model(error) is error
