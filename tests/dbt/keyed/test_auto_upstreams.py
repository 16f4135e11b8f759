"""Automatic models over what dbt itself keeps: snapshots and seeds."""

from __future__ import annotations

from tests.dbt.keyed.conftest import Shop

AUTOMATIC = (
    "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=2) }}"
)
SNAPSHOT = """
{% snapshot seen %}
{{ config(unique_key='id', strategy='check', check_cols='all', hard_deletes='invalidate') }}
select * from {{ source('raw', 'raw_orders') }}
{% endsnapshot %}
"""
VERSIONS = """
select id, count(*) as versions, count(dbt_valid_to) as ended,
       sum(case when dbt_valid_to is null then amount end) as amount
from {{ ref('seen') }} group by id
"""
DECLARED = """
version: 2
sources:
  - name: declared
    schema: "{{ target.schema }}"
    tables:
      - name: raw_moves
        config: {meta: {arctic: {unique_key: [id, at]}}}
"""
LATEST = """
select id, at, place from (
  select *, row_number() over (partition by id order by at desc) as n
  from {{ source('declared', 'raw_moves') }}
) where n = 1
"""


def build(shop: Shop, orders: dict[int, int], names: dict[int, str]) -> None:
    values = ", ".join(f"({key}L, {amount}L)" for key, amount in orders.items())
    shop.source("raw_orders", f"SELECT * FROM VALUES {values} AS t(id, amount)")
    lines = [f"{key},{name}" for key, name in names.items()]
    shop.file("seeds/customers.csv", "\n".join(["id,name", *lines, ""]))
    shop.dbt("build")


def test_a_snapshot_and_a_seed_that_have_changed_are_compared(shop: Shop) -> None:
    """Rows of a snapshot end when others take their place; a seed is replaced as a whole."""
    shop.file("snapshots/seen.sql", SNAPSHOT)
    shop.model("versions", AUTOMATIC + VERSIONS)
    shop.model("named", f"{AUTOMATIC} select id, upper(name) as name from {{{{ ref('customers') }}}}")
    shop.file("models/declared.yml", DECLARED)
    shop.model("latest", AUTOMATIC + LATEST)
    moves = [(key, at, key + at) for key in range(20) for at in (1, 2)]
    listed = ", ".join(map(str, moves))
    shop.source("raw_moves", f"SELECT * FROM VALUES {listed} AS t(id, at, place)")
    orders = {key: key * 10 for key in range(20)}
    names = {key: f"Ann {key}" for key in range(20)}
    build(shop, orders, names)
    before = dict(names)
    names |= {3: "Bea", 20: "Cid", 21: "Dan"}
    del names[4], orders[2]
    shop.sql("INSERT INTO {s}.raw_moves VALUES (3, 3, 8), (21, 1, 9)")
    build(shop, {**orders, 1: 11, 20: 200}, names)
    # Of each order: how many rows it has, how many of these have ended, and what it is now.
    history: dict[int, tuple[int, int, int | None]]
    history = {key: (1, 0, amount) for key, amount in orders.items()}
    history |= {1: (2, 1, 11), 2: (1, 1, None), 20: (1, 0, 200)}
    assert shop.rows("versions") == sorted(((key, *row) for key, row in history.items()), key=repr)
    assert shop.rows("named") == sorted(((key, name.upper()) for key, name in names.items()), key=repr)
    changed = len({key for key, _ in before.items() ^ names.items()})
    latest = {id_: (id_, at, place) for id_, at, place in [*moves, (3, 3, 8), (21, 1, 9)]}
    assert shop.rows("latest") == sorted(latest.values(), key=repr)
    told = ("strategy", "keys", "rows_affected")
    assert [shop.recorded["latest"].get(name) for name in told] == ["incremental", 2, 2]
    assert [shop.recorded["versions"].get(name) for name in told] == ["incremental", None, 3]
    assert [shop.recorded["named"].get(name) for name in told] == ["incremental", changed, changed]
