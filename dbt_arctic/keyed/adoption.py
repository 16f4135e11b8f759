"""SQL for the adoption of an Iceberg table as the base of a keyed table, and for its release.

No rows are written. The table gets properties and a new name; its files stay in place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.checks import shown_row
from dbt_arctic.keyed.create import BASE_DEFAULTS, PARTITIONED_DEFAULTS, base_defaults, identity
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.table import KeyedTable

PROPERTY_ADOPTED = "arctic.adopted"
"""On a commit of the base: older commits were made before the table became a base."""
PROPERTY_MOVING = "arctic.moving"
"""On a base during its adoption: if nothing has the table's name, the view must still be created."""
_BEFORE = "arctic.before"
"""On an adopted base: the original values of the properties that the adoption has changed."""


def is_adopted(properties: Mapping[str, str]) -> bool:
    """Whether a base table was adopted."""
    return _BEFORE in properties


def view_properties(base_location: str) -> dict[str, str]:
    """The location property for the view of an adopted table.

    The default location is the table's folder. A program that removes orphan files from it would also remove
    the view's metadata.
    """
    return {"location": base_location.rstrip("/") + "__view"}


def check_keys(table: Name, snapshot_id: int, key: Sequence[str]) -> str:
    """SQL that counts duplicate keys, and rows with a NULL key.

    Returns one row for each, with an example.
    """
    shown = f"min({shown_row(key)})"
    null = " OR ".join(f"{quote(column)} IS NULL" for column in key)
    rows = table.at(snapshot_id)
    return f"""\
SELECT 'duplicate', count(*), {shown}
FROM (SELECT {quote_all(key)} FROM {rows} GROUP BY {quote_all(key)} HAVING count(*) > 1)
UNION ALL
SELECT 'null', count(*), {shown} FROM {rows} WHERE {null}"""


def describe(table: KeyedTable, name: Name, created_ms: int, found: Mapping[str, str]) -> str:
    """Statements that set the properties of a base.

    :param found: the table's current properties.
    """
    # If an earlier attempt has changed a property, its current value is not the original one.
    before = json.loads(found.get(_BEFORE) or "{}") or {
        key: found[key] for key in BASE_DEFAULTS if key in found
    }
    properties = {
        "format-version": "3",
        **base_defaults(table.layout),
        **identity(table, table.generation.base_id, created_ms),
        **table.side_properties(),
        PROPERTY_MOVING: "true",
        _BEFORE: json.dumps(before, sort_keys=True),
    }
    return f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({_listed(properties)})"


def mark_adopted(name: Name, columns: Sequence[str], properties: Mapping[str, str]) -> str:
    """An empty commit that marks where the table becomes a base."""
    return carry_records(name, columns, {PROPERTY_ADOPTED: "true", **properties})


def carry_records(name: Name, columns: Sequence[str], properties: Mapping[str, str]) -> str:
    """An empty commit with properties: before a table becomes plain, those of its change table."""
    summary = ", ".join(
        f"{quote('snapshot-property.' + key)}={literal(value)}" for key, value in properties.items()
    )
    listed = quote_all(columns)
    return (
        f"INSERT INTO {name.sql} WITH ({summary}) ({listed})\nSELECT {listed}\nFROM {name.sql}\nWHERE false"
    )


def mark_as_moving(base: Name) -> str:
    """The statement that marks a base as being adopted."""
    return f"ALTER TABLE {base.sql} SET TBLPROPERTIES ({literal(PROPERTY_MOVING)} = 'true')"


def unmark_as_moving(base: Name) -> str:
    """The statement that removes the mark of ``mark_as_moving``."""
    return f"ALTER TABLE {base.sql} UNSET TBLPROPERTIES ({literal(PROPERTY_MOVING)})"


def undo_description(name: Name, found: Mapping[str, str]) -> list[str]:
    """Statements that undo ``describe``. The format version is not downgraded.

    :param found: the table's current properties.
    """
    before: dict[str, str] = json.loads(found.get(_BEFORE) or "{}")
    # Properties that the user has changed since then keep the user's value.
    ours = [
        key
        for key, value in BASE_DEFAULTS.items()
        if _BEFORE in found and found.get(key) in (value, PARTITIONED_DEFAULTS[key])
    ]
    back = {key: before[key] for key in ours if key in before}
    gone = [key for key in found if key.startswith("arctic.")] + [key for key in ours if key not in before]
    statements = [f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({_listed(back)})"] if back else []
    return [
        *statements,
        f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({', '.join(map(literal, sorted(gone)))})",
    ]


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(properties.items()))
