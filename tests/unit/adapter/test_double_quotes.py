"""Words in double quotes: those that are meant as names are found, those that are strings are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt_arctic.adapter.double_quotes import names_in_double_quotes

COLUMNS = {"id", "name", "month", "status"}


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ('select t."anything" from t', ["anything"]),
        ('select id as "Key" from t', ["Key"]),
        ('select distinct "NAME", id, "status" as s from t', ["NAME", "status"]),
        ('select id from t order by "x" desc, "y"', ["x", "y"]),
        ('select count(*) from t group by "x", id', ["x"]),
        ('select row_number() over (partition by "id" order by "at") as n from t', ["id", "at"]),
        (
            'select sum("id"), cast("name" as string), count(distinct "status") from t',
            ["id", "name", "status"],
        ),
        ('select 1 from t where "status" = \'x\' and "name" is not null', ["status", "name"]),
        ('select 1 from a join b on "id" = b.other', ["id"]),
        ('with a as (select "id" from t) select * from a -- "name"', ["id"]),
        ('select "id" as k, (select max(id) from t) as m from (select id from t)', []),
        ('select "id" as k, name from (select id from t)', ["id"]),
        ('with a as (select id, name from t) select "id" as k, "name" as n from a', ["id", "name"]),
        ('select id, "name" from t where name > 1', ["name"]),
    ],
)
def test_what_is_meant_as_a_name_is_found(sql: str, names: list[str]) -> None:
    assert names_in_double_quotes(sql, COLUMNS) == names


@pytest.mark.parametrize(
    "sql",
    [
        'select "EU" as region, id from t',
        'select id from t where status = "name" or status in ("id", "name")',
        'select date_trunc("month", at), get_json_object(x, "name"), concat("id", id) from t',
        'select case when id > 1 then "name" else "status" end as kind from t',
        "select 'name', \"id\" || '-' || id from t",
        'select * from values ("id", "name") as v(a, b)',
        'select \'"id"\', `"name"` from t -- "status"',
        'select id from t where at between "name" and "status"',
        'select named_struct("id", id, "name", name) as s, map("month", 1) as m from t',
        'select id from t union all select id from u where x like "name"',
        'select "name" as field, name as value from t union all select "status" kind, `status` from t',
        'select "status" as measure, count(distinct status) as n, (select max(id) from t) as m from t',
    ],
)
def test_what_is_a_string_is_left_alone(sql: str) -> None:
    assert names_in_double_quotes(sql, COLUMNS) == []


def test_the_example_project_has_none() -> None:
    models = Path(__file__).parents[3] / "example_project" / "models"
    texts = [path.read_text(encoding="utf-8") for path in models.rglob("*.sql")]
    assert texts
    assert [names for text in texts if (names := names_in_double_quotes(text, COLUMNS))] == []
