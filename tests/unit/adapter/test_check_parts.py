"""What a check knows of a project before it runs anything: tests, models to switch, schemas of copies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources.v1.config import NodeConfig

from dbt_arctic.adapter.check_invocations import failures
from dbt_arctic.adapter.check_report import CheckReport
from dbt_arctic.adapter.checking import copy_schemas
from dbt_arctic.adapter.declared_tests import Declared, Reference, declared_tests
from dbt_arctic.adapter.strategy_override import make_automatic
from dbt_arctic.keyed.names import Name


def data_test(name: str, *of: str, attached: str | None = None, **kwargs: Any) -> Any:
    metadata = SimpleNamespace(name=name, kwargs=kwargs)
    reads = SimpleNamespace(nodes=list(of))
    return SimpleNamespace(
        test_metadata=metadata, depends_on=reads, attached_node=attached, resource_type="test"
    )


def model(name: str, *reads: str, language: str = "sql", **config: Any) -> Any:
    return SimpleNamespace(
        unique_id=f"model.shop.{name}",
        name=name,
        resource_type="model",
        language=language,
        config=NodeConfig.from_dict({"materialized": "table", **config}),
        depends_on=SimpleNamespace(nodes=list(reads)),
        constraints=[],
        columns={},
    )


def test_tests_of_sources_seeds_and_staging_models_determine_what_changes_must_preserve() -> None:
    orders, customers, kinds = "source.shop.raw.orders", "source.shop.raw.customers", "seed.shop.kinds"
    staged, joined, people = "model.shop.staged", "model.shop.joined", "model.shop.people"
    nodes = {
        staged: model("staged", orders),
        people: model("people", customers),
        joined: model("joined", staged, kinds),
        "1": data_test("unique", orders, column_name="`ID`"),
        "2": data_test("unique_combination_of_columns", kinds, combination_of_columns=["x", "Y"]),
        "3": data_test("not_null", staged, column_name="name"),
        "4": data_test("accepted_values", staged, column_name="status", values=["a"]),
        "5": data_test(
            "relationships", people, staged, column_name="customer", to="ref('people')", field="ID"
        ),
        "6": data_test(
            "relationships", orders, kinds, column_name="kind", to="ref('shop', 'kinds')", field="x"
        ),
        "7": data_test(
            "relationships",
            kinds,
            customers,
            column_name="owner",
            to="source('raw', 'customers')",
            field="id",
        ),
        "8": data_test(
            "relationships", orders, column_name="before", to="source('raw', 'orders')", field="id"
        ),
        # If a model reads several tables, the table of the column is unknown.
        "9": data_test("unique", joined, column_name="id"),
        "10": data_test("expression_is_true", orders, expression="id > 0"),
    }
    found = declared_tests(nodes)
    assert found.pop(orders) == Declared(
        keys=[("id",)],
        required={"name"},
        listed={"status"},
        references=[
            Reference("customer", customers, "id"),
            Reference("kind", kinds, "x"),
            Reference("before", orders, "id"),
        ],
    )
    assert found.pop(kinds) == Declared(keys=[("x", "y")], references=[Reference("owner", customers, "id")])
    assert found == {}


def test_models_become_automatic_whatever_their_files_say() -> None:
    unique = data_test("unique", "model.shop.tested", attached="model.shop.tested", column_name="id")
    pair = data_test(
        "unique_combination_of_columns", attached="model.shop.pair", combination_of_columns=["a", "b"]
    )
    nodes = {
        node.unique_id: node
        for node in (
            model("tested"),
            model("pair", materialized="view"),
            model(
                "merged",
                materialized="incremental",
                unique_key="k",
                delete_when="x",
                incremental_predicates=["y"],
            ),
            model("bare"),
            model("python", language="python", unique_key="k"),
            model("other", unique_key="k"),
        )
    }
    chosen = [name for name in nodes if name != "model.shop.other"]
    stay = make_automatic({**nodes, "test.1": unique, "test.2": pair}, chosen)
    assert stay == {
        "bare": "it has no unique_key, and no test says which of its columns are unique",
        "python": "its rows come from Python, and not from a query",
    }
    configs = {name.split(".")[2]: node.config.to_dict() for name, node in nodes.items()}
    for name, key in (("tested", "id"), ("pair", ["a", "b"]), ("merged", "k")):
        config = configs[name]
        assert (config["materialized"], config["incremental_strategy"]) == ("incremental", "auto")
        assert config["unique_key"] == key
        assert not {"delete_when", "incremental_predicates"} & set(config)
    assert [configs[name]["materialized"] for name in ("bare", "python", "other")] == ["table"] * 3


def test_a_copy_has_its_sources_name_in_a_schema_of_the_check() -> None:
    sources = [
        Name("lake", schema, name)
        for schema, name in (("dev", "a"), ("dev", "b"), ("dev_raw", "a"), ("raw", "a"), ("developers", "a"))
    ]
    written = [{"schema": "dev_check_1", "alias": "B"}]
    assert list(copy_schemas(sources, "dev", "dev_check_1", written).values()) == [
        "dev_check_1",
        "dev_check_1_source_dev",  # a model is written to this name
        "dev_check_1_raw",
        "dev_check_1_source_raw",
        "dev_check_1_source_developers",
    ]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (CheckReport(models={"a"}), 0),
        (CheckReport(), 2),
        (CheckReport(looked_at={"a"}), 2),
        (CheckReport(models={"a"}, failures={"b": (1, "why")}), 2),
        (CheckReport(models={"a"}, failures={"b": (1, "why")}, differences={("a", 1): 3}), 1),
    ],
)
def test_the_exit_code_shows_differences_first_and_then_what_was_not_compared(
    found: CheckReport, code: int
) -> None:
    assert found.exit_code == code


def test_a_version_of_a_model_that_fails_is_not_taken_for_another_one() -> None:
    def result(version: int, status: str) -> Any:
        node = SimpleNamespace(name="dim", version=version)
        return SimpleNamespace(node=node, status=SimpleNamespace(value=status), message=status)

    assert failures([result(1, "error"), result(2, "success")]) == {"dim.v1": "error"}
