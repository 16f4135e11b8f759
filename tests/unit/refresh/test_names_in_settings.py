"""Settings name columns without regard to case, and what a model no longer sets is unset whatever happens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import plan_layout, require_columns
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.plain_config import check_partitions, parse_plain
from dbt_arctic.refresh.table_properties import apply_properties, declared_properties
from dbt_arctic.store.context import Context


@pytest.mark.parametrize(
    ("wanted", "stored"), [("part", "PART"), ("PART", "part"), ("day(AT)", "days(at)"), ("`Part`", "part")]
)
def test_a_partition_column_in_another_case_is_the_same(wanted: str, stored: str) -> None:
    config = parse_plain("m", "insert_overwrite", {"partition_by": wanted})
    assert check_partitions(config, [stored]) == ""


def test_another_partition_column_is_refused() -> None:
    config = parse_plain("m", "insert_overwrite", {"partition_by": "PART"})
    with pytest.raises(ConfigError, match="partitioned by parts, but partition_by is PART"):
        check_partitions(config, ["parts"])


def test_the_layout_has_the_spelling_of_the_model() -> None:
    layout = plan_layout(where="m", key=("k",), types={"k": "int", "PART": "int"}, partition_by=["PART"])
    assert layout.partition_by == ("PART",)


@pytest.mark.parametrize(("named", "fix"), [("shopp", "did you mean SHOP"), ("xyz", "correct partition_by")])
def test_a_column_that_the_model_lacks_is_named(named: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=f"refers to the column {named}") as error:
        require_columns("m", "partition_by", ["id", named], ["id", "SHOP"])
    assert error.value.fix.startswith(fix)


class _Table:
    """A table whose properties change by the statements that it gets, of which only some arrive."""

    def __init__(self, statements: int, **properties: str) -> None:
        self.properties = properties | declared_properties(properties)
        self.catalog = self
        self._left = statements

    def of(self, name: Name) -> _Table:
        return self

    def load_table(self, schema: str, name: str) -> Any:
        return SimpleNamespace(properties=dict(self.properties))

    def run(self, step: str, sql: str) -> None:
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        listed = sql.partition("TBLPROPERTIES (")[2].removesuffix(")").replace("'", "")
        if step == "unset_properties":
            for name in listed.split(", "):
                del self.properties[name]
        else:
            name, _, value = listed.partition(" = ")
            self.properties[name] = value


def test_a_removed_property_is_unset_by_the_run_after_an_interrupted_one() -> None:
    table = _Table(1, owner="anna", note="anna")
    wanted = {"note": "anna"}
    with pytest.raises(KeyboardInterrupt):
        apply_properties(cast(Context, table), Name("lake", "dev", "t"), wanted, {})
    table._left = 2
    apply_properties(cast(Context, table), Name("lake", "dev", "t"), wanted, {})
    assert table.properties == wanted | declared_properties(wanted)
