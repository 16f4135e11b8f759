"""Macro methods for seeds, and for the fixtures of unit tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.column import ArcticColumn
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.seed_values import fixture_value, seed_text, seed_value
from dbt_arctic.adapter.seeds import column_types, seed_path
from dbt_arctic.adapter.translate import as_dbt_errors


class SeedApi(KeyedApi):
    """The methods of the adapter for seeds and fixtures."""

    @available.parse(lambda *a, **k: None)
    def seed_column_types(self, model: Mapping[str, Any]) -> dict[str, str]:
        """``column_types`` by the column names of the file, and string where dbt misreads a text."""
        with as_dbt_errors():
            path = seed_path(model, self.config)
            settings = model["config"]
            declared = {
                name: ArcticColumn.translate_type(type_)
                for name, type_ in (settings.get("column_types") or {}).items()
            }
            return column_types(model["name"], path, settings.get("delimiter") or ",", declared)

    @available
    def stage_seed(self, staged: ArcticRelation, agate_table: Any) -> None:
        """Create a temporary view over the rows of a seed in this thread's session, with string columns."""
        rows = [[seed_text(value) for value in row] for row in agate_table.rows]
        with as_dbt_errors():
            self._handle().create_temp_view(staged.identifier or "", list(agate_table.column_names), rows)

    @available.parse(lambda *a, **k: "")
    def seed_value(self, model: Mapping[str, Any], column: str, type_: str, values: Any = ()) -> str:
        """SQL of a value of a seed, from its staged text.

        :param values: the values of the column. One that its type would change is an error.
        """
        with as_dbt_errors():
            return seed_value(model["name"], column, type_, values)

    @available.parse(lambda *a, **k: None)
    def fixture_value(
        self, model: Mapping[str, Any], column: str, type_: str, value: Any, field: str
    ) -> str | None:
        """SQL of a value of a fixture; ``None`` if dbt's own cast is as good."""
        is_expected = model["resource_type"] == "unit_test"
        fixture = "the expected rows" if is_expected else f"the rows of {model['name']}"
        with as_dbt_errors():
            return fixture_value(f"{model['original_file_path']}: {fixture}", column, type_, value, field)
