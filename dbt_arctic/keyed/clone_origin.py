"""The property of a relation that is or was a clone: the name of its source."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dbt_arctic.keyed.names import Name

PROPERTY_CLONE = "arctic.clone"
"""Property of a view: the name of its source. It is kept when a keyed table takes the place of the view, and
set on a plain table that does."""


def clone_property(source: Name) -> str:
    """The value of ``PROPERTY_CLONE`` for a clone of a table."""
    return json.dumps([source.catalog, source.schema, source.identifier])


def began_as(properties: Mapping[str, str]) -> Name | None:
    """The source of a relation that is or was a clone, from its properties."""
    text = properties.get(PROPERTY_CLONE)
    return Name(*json.loads(text)) if text else None
