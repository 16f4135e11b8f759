"""The keys that a project declares for its tables, by ``meta`` and by tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.project_keys import project_keys
from dbt_arctic.auto.key_selection import ProjectKey
from dbt_arctic.errors import ConfigError


def table(unique_id: str, meta: Any = None) -> Any:
    name = unique_id.rpartition(".")[2]
    place = {"database": "lake", "schema": "Raw", "original_file_path": "models/raw.yml"}
    return SimpleNamespace(
        name=name, identifier=name, config=SimpleNamespace(meta=meta or {}), meta={}, **place
    )


def a_test(unique_id: str, name: str, column: str = "", **config: Any) -> Any:
    settings = {"where": None, "severity": "ERROR", "error_if": "!= 0", **config}
    kwargs: dict[str, Any] = {"column_name": column, "model": "{{ get_where_subquery(..) }}"}
    if name == "unique_combination_of_columns":
        kwargs = {"combination_of_columns": column.split()}
    return SimpleNamespace(
        test_metadata=SimpleNamespace(name=name, kwargs=kwargs),
        depends_on=SimpleNamespace(nodes=[unique_id]),
        config=SimpleNamespace(**settings),
    )


def keys(*tests: Any, meta: Any = None) -> list[ProjectKey]:
    source = table("source.shop.raw.events", meta)
    nodes = {f"test.shop.{number}": test for number, test in enumerate(tests)}
    found = project_keys(SimpleNamespace(nodes=nodes, sources={"source.shop.raw.events": source}))
    assert set(found) <= {"lake.raw.events"}
    return list(found.get("lake.raw.events", ()))


EVENTS = "source.shop.raw.events"


def test_meta_declares_a_key() -> None:
    assert keys(meta={"arctic": {"unique_key": ["Device", "`at`"]}}) == [
        ProjectKey(("device", "at"), "models/raw.yml")
    ]
    assert keys(meta={"arctic": {"unique_key": "id"}}) == [ProjectKey(("id",), "models/raw.yml")]
    assert keys(meta={"arctic": {"from": "files", "unique_key": "id"}}) == []
    assert keys(meta={"owner": "us"}) == []
    assert project_keys(None) == {}


@pytest.mark.parametrize("given", [7, [], ["id", 7], {"id": 1}])
def test_a_key_is_a_name_or_a_list_of_names(given: Any) -> None:
    with pytest.raises(ConfigError, match="unique_key is") as error:
        keys(meta={"arctic": {"unique_key": given}})
    assert error.value.where == "events, models/raw.yml"


def test_tests_declare_keys_only_where_no_column_is_null() -> None:
    unique, required = a_test(EVENTS, "unique", "id"), a_test(EVENTS, "not_null", "id")
    assert keys(unique, required) == [ProjectKey(("id",))]
    assert keys(unique) == keys(required) == []
    both = a_test(EVENTS, "unique_combination_of_columns", "tid AT")
    assert keys(both, a_test(EVENTS, "not_null", "tid")) == []
    nulls = [a_test(EVENTS, "not_null", name) for name in ("at", "tid")]
    assert keys(both, unique, required, *nulls) == [ProjectKey(("id",)), ProjectKey(("tid", "at"))]


@pytest.mark.parametrize("config", [{"where": "at > 3"}, {"severity": "warn"}, {"error_if": "> 10"}])
def test_a_test_of_some_rows_or_without_an_error_declares_nothing(config: Any) -> None:
    required = a_test(EVENTS, "not_null", "id")
    assert keys(a_test(EVENTS, "unique", "id", **config), required) == []
    assert keys(a_test(EVENTS, "unique", "id"), a_test(EVENTS, "not_null", "id", **config)) == []


def test_a_test_of_another_node_declares_nothing_here() -> None:
    others = [a_test("model.shop.stg", name, "id") for name in ("unique", "not_null")]
    assert keys(*others) == []
