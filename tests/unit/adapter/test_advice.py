"""Lines of a compiled query, found again in the model's file."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dbt_arctic.adapter.advice import advice_for, advice_text, model_line
from dbt_arctic.auto import inputs
from dbt_arctic.auto.upstreams import Upstream, View
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed

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
    assert model_line(FILE, COMPILED, 5) is None
    assert model_line(FILE, COMPILED, 99) is None


T, V = Name("lake", "shop", "t"), Name("lake", "shop", "v")
NO_CATALOG = cast(Any, OneCatalog())


@pytest.mark.parametrize(
    ("expression", "view", "place"),
    [
        ("rand()", "select id from t", "line 2 of models/diced.sql"),
        (
            "v.dice",
            "select id,\n\n  rand() as dice\nfrom t",
            "line 3 of the view lake.shop.v, which models/diced.sql reads",
        ),
    ],
)
def test_a_reason_names_the_text_that_contains_it(
    monkeypatch: pytest.MonkeyPatch, expression: str, view: str, place: str
) -> None:
    there = {
        T: Upstream(T, (("id", "int"),), ("id",), Consumed("id", "1"), {}, True),
        V: View(V, (("id", "int"), ("dice", "double"))[: 1 + ("dice" in view)], view, T),
    }
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: there[name])
    model = {
        "name": "diced",
        "compiled_code": f"\nselect v.id,\n  {expression} as dice\nfrom lake.shop.v as v",
        "raw_code": f"select v.id,\n  {expression} as dice\nfrom {{{{ ref('v') }}}} as v",
        "original_file_path": "models/diced.sql",
        "config": {"materialized": "incremental", "incremental_strategy": "auto", "unique_key": "id"},
    }
    (found,) = advice_for(NO_CATALOG, Name("lake", "shop", "diced"), model, None, {}, "")
    assert advice_text(found, model) == (
        "diced can never be refreshed incrementally: rand() gives another value in each run "
        f"(random, {place}). To avoid this: compute it outside the model."
    )
