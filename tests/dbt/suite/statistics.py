"""The statistics that the catalog of ``dbt docs generate`` has for a table."""

from __future__ import annotations

from typing import Any

from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.util import AnyString

from dbt_arctic.adapter.docs_catalog import STATISTICS


class Count:
    """Any number that is not negative, and no truth value."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and not isinstance(other, bool) and other >= 0

    __hash__ = None  # type: ignore[assignment]


def of_table(*, is_keyed: bool = False) -> dict[str, Any]:
    found = {
        name: {
            "id": name,
            "label": one.label,
            "value": AnyString() if name == "last_commit" else Count(),
            "description": one.description,
            "include": True,
        }
        for name, one in STATISTICS.items()
        if is_keyed or name != "pending_rows"
    }
    has = expected_catalog.no_stats()["has_stats"]
    return {**found, "has_stats": {**has, "value": True}}
