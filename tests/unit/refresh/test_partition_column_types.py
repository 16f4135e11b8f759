"""A table is replaced in place if the columns of its partition fields keep their types or get wider ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.catalog.partition_names import with_default_name
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.partition_column_types import gets_other_partition_values

KEPT = [
    ("days(at)", "at timestamp", "at timestamp_ntz"),
    ("at", "at timestamp_ntz", "at timestamp"),
    ("id", "id int", "id bigint"),
    ("truncate(2, id)", "id decimal(9,2)", "id decimal(12,2)"),
    ("id", "id int", "id smallint"),
    ("id", "id string", "id string collate UTF8_LCASE"),
    ("at", "at string", "AT int"),
    ("at", "at string", "other int"),
    ("#7", "at string", "at int"),
    ("days(r.at)", "r struct<at:date,n:int>", "r struct<n:string,at:date>"),
    ("days(r.at)", "r struct<at:date>", "r struct<AT:string>"),
    ("days(r.at)", "r struct<at:date>", "r string"),
    ("r.at", "r struct<at:date>; r.at int", "r struct<at:string>; r.at int"),
]
OTHER = [
    ("days(at)", "at timestamp", "at date"),
    ("months(at)", "at date", "at timestamp_ntz"),
    ("hours(at)", "at timestamp", "at string"),
    ("id", "id bigint", "id int"),
    ("id", "id string", "id int"),
    ("id", "id decimal(12,2)", "id decimal(9,2)"),
    ("id", "id decimal(9,2)", "id decimal(12,3)"),
    ("bucket(2, id)", "id string", "id boolean"),
    ("id", "id string", "id struct<a:string>"),
    ("days(r.at)", "r struct<at:date>", "r struct<at:string>"),
    ("days(r.s.at)", "r struct<s:struct<at:date>>", "r struct<s:struct<at:timestamp>>"),
]
"""A partition field, and the columns of the table before and after."""


def columns(text: str) -> list[Column]:
    return [Column(*one.split(" ", 1)) for one in text.split("; ")]


@pytest.mark.parametrize(
    ("field", "before", "after", "is_other"),
    [*((*one, False) for one in KEPT), *((*one, True) for one in OTHER)],
)
def test_values_of_another_type_are_found(field: str, before: str, after: str, is_other: bool) -> None:
    state = SimpleNamespace(
        columns=[CatalogColumn(one.name, one.type) for one in columns(before)],
        partition_fields=(with_default_name("same"), with_default_name(field)),
    )
    assert gets_other_partition_values(cast(Any, state), columns(after)) is is_other
