"""What ``compact_due`` looks at: the project's tables in each catalog of the profile."""

from __future__ import annotations

from dbt_arctic.adapter.compaction_api import _settings
from dbt_arctic.keyed.names import Name


def test_a_model_s_settings_are_those_of_its_table_in_its_catalog() -> None:
    models = [
        {"database": "lake", "schema": "shop", "identifier": "orders", "buckets": 4},
        {"database": "archive", "schema": "shop", "identifier": "orders", "buckets": 8},
        {"database": "cold", "schema": "shop", "identifier": "refused"},
    ]
    found = _settings(["lake", "archive"], models)
    assert {name: one.buckets for name, one in found.items()} == {
        Name("lake", "shop", "orders"): 4,
        Name("archive", "shop", "orders"): 8,
    }
