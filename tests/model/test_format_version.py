"""A catalog that stores tables in an older format version than requested has no keyed tables."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.maintenance.adopt import adopt_table, plan_adoption
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import parse_config
from tests.model import plain  # noqa: F401  # the statements of users
from tests.model.lake import Lake, Table
from tests.model.world import MemoryWorld

ROWS = "SELECT 1L AS id, 2 AS amount"


@pytest.fixture
def world(memory_world: MemoryWorld, monkeypatch: pytest.MonkeyPatch) -> MemoryWorld:
    """A lake whose server knows format version 2 only."""
    create = Lake.create_table

    def create_older(*arguments: Any, **more: Any) -> Table:
        table = create(*arguments, **more)
        table.properties["format-version"] = "2"
        return table

    monkeypatch.setattr(Lake, "create_table", create_older)
    return memory_world


def test_a_build_is_refused_before_its_rows_are_written_and_leaves_nothing(world: MemoryWorld) -> None:
    process = world.process("build")
    config = parse_config("model.shop.orders", {"unique_key": "id"})
    with pytest.raises(ConfigError, match="stores tables in format version 2") as caught:
        build_generation(process.context, world.name("orders"), config, ROWS, {}, owner="model.shop.orders")
    assert "dbt debug" in caught.value.fix
    assert process.ran == ["create_base", "drop_side_table", "drop_side_table"]
    assert list(world.catalog.list_names(world.schema)) == []


def test_a_table_is_not_adopted(world: MemoryWorld) -> None:
    name = world.name("orders")
    world.execute(f"CREATE TABLE {name.sql} USING iceberg TBLPROPERTIES ('format-version'='2')\nAS {ROWS}")
    context = world.process("adoption").context
    adoption = plan_adoption(context, name, key=("id",))
    with pytest.raises(ConfigError, match="stores tables in format version 2"):
        adopt_table(context, adoption)
    assert [entry.name for entry in world.catalog.list_names(world.schema)] == ["orders"]
