"""The time at which an earlier generation was restored, stored in the view's properties."""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader, ViewState
from dbt_arctic.keyed.table import KeyedTable

PROPERTY_RESTORED = "arctic.restored-ms"


def restored_of(view: ViewState) -> int | None:
    """When the current generation was restored; ``None`` if it was not."""
    text = view.properties.get(PROPERTY_RESTORED, "")
    return int(text) if text.isdigit() else None


def restored_ms(catalog: CatalogReader, table: KeyedTable) -> int | None:
    """When the current generation of a table was restored; ``None`` if it was not."""
    view = catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
    return None if view is None else restored_of(view)
