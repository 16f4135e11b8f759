"""Which schemas a command about all tables is about, by the names that dbt makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.databases import is_schema_of
from dbt_arctic.adapter.operator import Operator
from dbt_arctic.adapter.other_schema import OtherSchemas
from dbt_arctic.keyed.names import Name


@pytest.mark.parametrize(
    ("schema", "of_it"),
    [
        ("shop", True),
        ("shop_staging", True),
        ("shopping", False),
        ("staging_shop", False),
        ("staging", False),
    ],
)
def test_what_dbt_makes_of_a_schema(schema: str, of_it: bool) -> None:
    assert is_schema_of(schema, "shop") == of_it


def test_a_check_copies_sources_of_its_own_catalog_only() -> None:
    place = OtherSchemas("checked", {("shop", "orders"): "checked_shop"}, "lake")
    assert place.schema_of("Lake", "Shop", "Orders") == "checked_shop"
    assert place.schema_of(None, "shop", "orders") == "checked_shop"
    assert place.schema_of("archive", "shop", "orders") == "shop"


def operator(*existing: str, own: str = "shop", **models: str | None) -> Any:
    """:param models: schema to the ``schema`` config of a model that the manifest has there."""
    return SimpleNamespace(
        reader=SimpleNamespace(list_schemas=lambda: list(existing)),
        models={Name("lake", schema, "m"): {"schema": config} for schema, config in models.items()},
        _target=SimpleNamespace(credentials=SimpleNamespace(schema=own, database="lake")),
    )


def test_its_own_are_those_that_dbt_makes_and_the_manifest_has() -> None:
    found = operator("shop", "shop_staging", "shop_of_others", "staging", shop_staging="staging", staging="x")
    assert Operator.schemas(found) == ["shop", "shop_staging"]
    assert Operator.other_schemas(found, ["shop", "shop_staging"]) == ["staging"]


def test_a_manifest_of_another_target_has_no_schemas_of_this_one() -> None:
    found = operator("shop", "live", "staging", live=None, staging="staging")
    assert Operator.other_schemas(found, ["shop"]) == []
    ours = operator("shop", "staging", shop=None, staging="staging")
    assert Operator.other_schemas(ours, ["shop"]) == ["staging"]
