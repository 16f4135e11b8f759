"""Patterns of names as ILIKE reads them, and whose macros a package's dispatch finds first."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dbt_arctic.adapter.packages import like, serve_packages
from dbt_arctic.adapter.relation import ArcticRelation


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders_old", False),
        ("ORDERS_%", "orders_old", True),
        ("orders_", "orders1", True),
        ("orders_", "orders12", False),
        (r"orders\_%", "orders1", False),
        (r"100\%", "100%", True),
        ("a.b(c", "a.b(c", True),
        ("a.b", "axb", False),
        ("a\\b", "a\\b", True),
        ("", "orders", False),
    ],
)
def test_a_pattern_is_read_as_ilike_reads_it(pattern: str, name: str, matches: bool) -> None:
    assert (like(pattern).fullmatch(name) is not None) is matches


def test_the_adapter_comes_after_the_project_and_before_the_package() -> None:
    config = SimpleNamespace(project_name="shop", dispatch=[])
    serve_packages(config)
    serve_packages(config)
    assert config.dispatch == [{"macro_namespace": "dbt_utils", "search_order": ["shop", "dbt", "dbt_utils"]}]


def test_what_a_project_says_about_dispatch_stays() -> None:
    theirs = [{"macro_namespace": "dbt_utils", "search_order": ["spark_utils", "dbt_utils"]}]
    config = SimpleNamespace(project_name="shop", dispatch=list(theirs))
    serve_packages(config)
    assert config.dispatch == theirs


def test_a_profile_without_a_project_has_nothing_to_dispatch() -> None:
    serve_packages(SimpleNamespace(profile_name="shop"))


def test_a_relation_without_a_schema_is_a_temporary_view_without_a_catalog() -> None:
    orders = ArcticRelation.create(database="lake", schema="dev", identifier="or`ders")
    assert orders.render() == "`lake`.`dev`.`or``ders`"
    scratch = orders.incorporate(path={"schema": None})
    assert (scratch.render(), str(scratch)) == ("`or``ders`", "`or``ders`")
    assert orders.include(identifier=False).render() == "`lake`.`dev`"
