"""Adopting a table as SQL text: what makes an Iceberg table the base of a keyed one, and a plain one again.

No row is written. The table gets properties and another name, so its files stay where they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.create import BASE_DEFAULTS, identity
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.table import KeyedTable

PROPERTY_ADOPTED = "arctic.adopted"
"""On a commit of the base: what is older was written before it became the base."""
PROPERTY_MOVING = "arctic.moving"
"""On a base whose table is just changing its kind: if nothing has its name, the view is to be written."""
_BEFORE = "arctic.before"
"""On an adopted base: what the properties were that adoption has changed."""


def is_adopted(properties: Mapping[str, str]) -> bool:
    return _BEFORE in properties


def view_properties(base_location: str) -> dict[str, str]:
    """What a view says of its folder, whose table was adopted.

    By default that would be the one that is named after the table. Its files are there, and a program that
    removes files which no table names would take the view's metadata for one.
    """
    return {"location": base_location.rstrip("/") + "__view"}


def check_keys(table: Name, snapshot_id: int, key: Sequence[str]) -> str:
    """Two rows: how many keys are there twice, and how many rows have NULL in their key; and one of each."""
    shown = f"min(to_json(struct({quote_all(key)})))"
    null = " OR ".join(f"{quote(column)} IS NULL" for column in key)
    rows = table.at(snapshot_id)
    return f"""\
SELECT 'duplicate', count(*), {shown}
FROM (SELECT {quote_all(key)} FROM {rows} GROUP BY {quote_all(key)} HAVING count(*) > 1)
UNION ALL
SELECT 'null', count(*), {shown} FROM {rows} WHERE {null}"""


def describe(table: KeyedTable, name: Name, created_ms: int, found: Mapping[str, str]) -> str:
    """Let a table say what it is the base of, and be written as one.

    :param found: its properties now.
    """
    # A property that an earlier attempt has changed is not what it was before.
    before = json.loads(found.get(_BEFORE) or "{}") or {
        key: found[key] for key in BASE_DEFAULTS if key in found
    }
    properties = {
        "format-version": "3",
        **BASE_DEFAULTS,
        **identity(table, table.generation.base_id, created_ms),
        **table.side_properties(),
        PROPERTY_MOVING: "true",
        _BEFORE: json.dumps(before, sort_keys=True),
    }
    return f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({_listed(properties)})"


def mark_adopted(name: Name, columns: Sequence[str], properties: Mapping[str, str]) -> str:
    """An empty commit that says from where on the table is a base."""
    summary = ", ".join(
        f"{quote('snapshot-property.' + key)}={literal(value)}"
        for key, value in {PROPERTY_ADOPTED: "true", **properties}.items()
    )
    listed = quote_all(columns)
    return (
        f"INSERT INTO {name.sql} WITH ({summary}) ({listed})\nSELECT {listed}\nFROM {name.sql}\nWHERE false"
    )


def move(base: Name) -> str:
    return f"ALTER TABLE {base.sql} SET TBLPROPERTIES ({literal(PROPERTY_MOVING)} = 'true')"


def settle(base: Name) -> str:
    return f"ALTER TABLE {base.sql} UNSET TBLPROPERTIES ({literal(PROPERTY_MOVING)})"


def forget(name: Name, found: Mapping[str, str]) -> list[str]:
    """Statements that take away what ``describe`` wrote. The format version stays.

    :param found: its properties now.
    """
    before: dict[str, str] = json.loads(found.get(_BEFORE) or "{}")
    # What a user has changed since is the user's.
    ours = [key for key, value in BASE_DEFAULTS.items() if _BEFORE in found and found.get(key) == value]
    back = {key: before[key] for key in ours if key in before}
    gone = [key for key in found if key.startswith("arctic.")] + [key for key in ours if key not in before]
    statements = [f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({_listed(back)})"] if back else []
    return [
        *statements,
        f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({', '.join(map(literal, sorted(gone)))})",
    ]


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(properties.items()))
