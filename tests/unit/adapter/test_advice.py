"""Lines of a compiled query, found again in the model's file."""

from __future__ import annotations

import pytest

from dbt_arctic.adapter.advice import model_line

FILE = """

{{ config(
    materialized='incremental',
    incremental_strategy='auto',
) }}
{% set columns = ['a', 'b'] %}
select
{% for column in columns %}
  {{ column }},
{% endfor %}
  rand() as random
from {{ ref('orders') }} as o
where o.id > (
  select max(id)
  from {{ source('raw', 'customers') }}
)
"""
COMPILED = """

select

  a,

  b,

  rand() as random
from lake.shop.orders as o
where o.id > (
  select max(id)
  from lake.raw.customers
)"""


@pytest.mark.parametrize(
    "compiled",
    ["rand() as random", "from lake.shop.orders as o", "select max(id)", "from lake.raw.customers"],
)
def test_a_line_is_found_again(compiled: str) -> None:
    line = next(n for n, text in enumerate(COMPILED.splitlines(), 1) if text.strip() == compiled)
    wanted = {
        "lake.shop.orders": "{{ ref('orders') }}",
        "lake.raw.customers": "{{ source('raw', 'customers') }}",
    }
    for relation, reference in wanted.items():
        compiled = compiled.replace(relation, reference)
    found = model_line(FILE, COMPILED, line)
    assert FILE.splitlines()[found - 1].strip() == compiled


def test_a_line_of_a_loop_is_not_guessed() -> None:
    assert model_line(FILE, COMPILED, 5) == 0
    assert model_line(FILE, COMPILED, 0) == 0
    assert model_line(FILE, COMPILED, 99) == 0
