"""Applies changes of a model's ``tblproperties`` to an existing table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dbt_arctic.keyed.history import PROPERTY_SETTINGS
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.store.context import Context

PROPERTY_GIVEN = "arctic.given-properties"
"""JSON list of the names that the ``tblproperties`` of a model have set. A name removed there is unset
here.
"""

_NOT_STORED = frozenset({"format-version"})
"""Properties that Iceberg does not store as such."""


TABLE_DEFAULTS = {
    "format-version": "3",
    # Updates write deletion vectors instead of rewriting the affected files.
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    # With it, each task has an open writer for each partition, and thousands of partitions need gigabytes.
    # Without it, Spark sorts the rows of a task by partition.
    "write.spark.fanout.enabled": "false",
}
"""The default properties of plain tables."""


@dataclass(frozen=True)
class PropertyChanges:
    """The property changes of a table.

    :param changed: name to new value.
    :param removed: names to unset.
    """

    changed: Mapping[str, str]
    removed: tuple[str, ...]


def declared_properties(names: Iterable[str]) -> dict[str, str]:
    """The property that records the names that a model sets; empty if it sets none."""
    listed = sorted(name for name in names if name != PROPERTY_SETTINGS)
    return {PROPERTY_GIVEN: json.dumps(listed)} if listed else {}


def property_changes(
    stored: Mapping[str, str], wanted: Mapping[str, str], defaults: Mapping[str, str]
) -> PropertyChanges:
    """The differences between the properties of a table and those of its model.

    :param defaults: the values that a property gets again if the model no longer sets it.
    """
    before = json.loads(stored.get(PROPERTY_GIVEN, "[]"))
    gone = [name for name in before if name not in wanted]
    target = {**{name: defaults[name] for name in gone if name in defaults}, **wanted}
    changed = {
        name: value for name, value in target.items() if name not in _NOT_STORED and stored.get(name) != value
    }
    removed = [name for name in gone if name not in defaults and name in stored]
    if set(before) != set(wanted):
        if wanted:
            changed |= declared_properties(wanted)
        else:
            removed.append(PROPERTY_GIVEN)
    return PropertyChanges(changed, tuple(removed))


def apply_properties(
    context: Context, name: Name, wanted: Mapping[str, str], defaults: Mapping[str, str]
) -> None:
    """Apply the properties of a model to its table. Most runs only read metadata and run no statement.

    What is gone is unset before its name leaves the record, so a run that ends in between is completed by the
    next one.
    """
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        return
    changes = property_changes(state.properties, wanted, defaults)
    if changes.removed:
        listed = ", ".join(map(literal, changes.removed))
        context.run("unset_properties", f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({listed})")
    if changes.changed:
        listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in changes.changed.items())
        context.run("set_properties", f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({listed})")
