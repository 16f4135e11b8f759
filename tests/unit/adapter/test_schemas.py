"""Which schemas a command about all tables is about, by the names that dbt makes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.catalog_names import (
    catalog_of,
    is_schema_of,
    refuse_model,
    refuse_reserved_name,
    refuse_upper_case,
)
from dbt_arctic.adapter.other_schema import OtherSchemas
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.errors import ConfigError
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


def session(*existing: str, own: str = "shop", chosen: str | None = None, **models: str | None) -> Any:
    """:param models: schema to the ``schema`` config of a model that the manifest has there."""
    credentials = SimpleNamespace(schema=own, database="lake", catalog_names=["lake", "archive", "cold"])
    archived = {Name("archive", "shop_archived", "m"): {"schema": "archived"}}
    return SimpleNamespace(
        reader=SimpleNamespace(list_schemas=lambda: list(existing)),
        models={Name("lake", schema, "m"): {"schema": config} for schema, config in models.items()}
        | archived,
        _target=Target(Path(), "dev", credentials, Path(), other_catalog=chosen),  # type: ignore[arg-type]
    )


def test_a_schema_in_another_catalog_is_not_one_of_this_catalog() -> None:
    existing = ["shop", "shop_archived", "shop_staging"]
    found = session(*existing, shop=None, shop_staging="staging")
    assert TargetSession.schemas(found) == ["shop", "shop_staging"]
    assert TargetSession.other_schemas(found, ["shop"]) == ["shop_staging"]
    assert TargetSession.other_catalogs(found) == ["archive"]
    there = session(*existing, chosen="archive", shop=None, shop_staging="staging")
    assert TargetSession.schemas(there) == ["shop", "shop_archived"]
    assert TargetSession.other_catalogs(there) == [], "one was chosen"


@pytest.mark.parametrize(
    ("text", "chosen", "name"),
    [
        ("orders", None, "lake.shop.orders"),
        ("more.orders", "archive", "archive.more.orders"),
        ("lake.more.orders", "archive", "lake.more.orders"),
        ("archive.shop.orders", None, "archive.shop.orders"),
    ],
)
def test_a_name_may_have_each_catalog_of_the_profile(text: str, chosen: str | None, name: str) -> None:
    found = session(chosen=chosen)
    assert TargetSession.name(found, text).dotted == name
    assert TargetSession.own_schema.fget(found).dotted == "lake.shop.any"  # type: ignore[attr-defined]
    with pytest.raises(
        ConfigError, match=r"'warm\.shop\.orders' is not in one of the catalogs lake, archive"
    ):
        TargetSession.name(found, "warm.shop.orders")


def test_a_node_of_another_target_is_in_the_own_catalog() -> None:
    names = ["lake", "archive"]
    assert [catalog_of(one, names) for one in ("archive", "Archive", "lake", "prod", None)] == [
        *("archive", "archive", "lake", "lake", "lake"),
    ]


def test_a_catalog_that_is_not_in_the_profile_is_refused() -> None:
    target = session()._target
    assert target.catalog == target.in_catalog(None).catalog == "lake"
    assert target.in_catalog("archive").catalog == "archive"
    with pytest.raises(ConfigError, match="no catalog warm"):
        target.in_catalog("warm")


@pytest.mark.parametrize(
    ("database", "problem"),
    [("warm", "has the catalog warm"), ("Archive", "the profile has archive"), ("LAKE", "profile has lake")],
)
def test_a_model_is_written_to_a_catalog_of_the_profile_only(database: str, problem: str) -> None:
    refuse_model({"name": "m", "database": "archive"}, ["lake", "archive"])
    refuse_model({"name": "m", "database": "lake"}, ["lake"])
    with pytest.raises(ConfigError, match=problem):
        refuse_model({"name": "m", "database": database}, ["lake", "archive"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("orders__base_1", "a side table of the keyed table orders"),
        ("orders__change_12", "a side table of the keyed table orders"),
        ("orders__arctic_keyed", "the record of the keyed table orders"),
        ("orders__arctic_old_1234567890123456789", "what a run of orders builds or renames"),
        ("orders__arctic_new_1234567890123456789", "what a run of orders builds or renames"),
        ("orders__pull_1234567890123456789", "the rows that a run of orders pulls"),
    ],
)
def test_the_names_of_the_parts_of_a_keyed_table_are_reserved(name: str, problem: str) -> None:
    for model in ({"name": name}, {"name": "m", "alias": name}):
        with pytest.raises(ConfigError, match=f"{name} is reserved for {problem}"):
            refuse_reserved_name(model)
    free = ("orders", "orders__base", "orders__arctic_keyed_2", "__arctic_keyed")
    for other in (*free, "orders__arctic_new_x", "orders__arctic_old_2024", "orders__pull_2024"):
        refuse_reserved_name({"name": other})


def test_names_that_hive_would_change_are_refused() -> None:
    for schema, alias, wrong in (("Shop", "orders", "Shop"), ("shop", "Orders", "Orders")):
        model = {"name": "m", "alias": alias, "schema": schema, "database": "warm"}
        with pytest.raises(ConfigError, match=f"{wrong} has upper-case letters, and its catalog is Hive's"):
            refuse_upper_case(model, ["warm"])
        refuse_upper_case({**model, "database": "lake"}, ["warm"])
    refuse_upper_case({"name": "orders", "schema": "shop", "database": "warm"}, ["warm"])


def test_its_own_are_those_that_dbt_makes_and_the_manifest_has() -> None:
    found = session("shop", "shop_staging", "shop_of_others", "staging", shop_staging="staging", staging="x")
    assert TargetSession.schemas(found) == ["shop", "shop_staging"]
    assert TargetSession.other_schemas(found, ["shop", "shop_staging"]) == ["staging"]


def test_a_manifest_of_another_target_has_no_schemas_of_this_one() -> None:
    found = session("shop", "live", "staging", live=None, staging="staging")
    assert TargetSession.other_schemas(found, ["shop"]) == []
    ours = session("shop", "staging", shop=None, staging="staging")
    assert TargetSession.other_schemas(ours, ["shop"]) == ["staging"]
