"""The time at which an earlier generation was restored, stored in the view's properties."""

from __future__ import annotations

from dbt_arctic.catalog.api import ViewState

PROPERTY_RESTORED = "arctic.restored-ms"


def restored_of(view: ViewState) -> int | None:
    """When the current generation was restored; ``None`` if it was not."""
    text = view.properties.get(PROPERTY_RESTORED, "")
    return int(text) if text.isdigit() else None
