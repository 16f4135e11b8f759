"""Applies changes of a model's ``tblproperties`` to an existing table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.float_statistics import METRICS_OF
from dbt_arctic.keyed.history import PROPERTY_SETTINGS
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.store.context import Context

PROPERTY_GIVEN = "arctic.given-properties"
"""JSON list of the names that the ``tblproperties`` of a model have set. A name removed there is unset
here.
"""

FORMAT = "format-version"
"""Iceberg upgrades a table to the value of this property, and never downgrades one."""

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
    changed = {name: value for name, value in target.items() if stored.get(name) != value}
    if is_older_format(changed, stored):
        del changed[FORMAT]
    removed = [name for name in gone if name not in defaults and name in stored and name != FORMAT]
    if set(before) != set(wanted):
        if wanted:
            changed |= declared_properties(wanted)
        else:
            removed.append(PROPERTY_GIVEN)
    return PropertyChanges(changed, tuple(removed))


def is_older_format(wanted: Mapping[str, str], stored: Mapping[str, str]) -> bool:
    """Whether properties contain an older format version than that of a table.

    >>> is_older_format({FORMAT: "2"}, {FORMAT: "3"}), is_older_format({}, {FORMAT: "3"})
    (True, False)
    """
    version, there = wanted.get(FORMAT, ""), stored.get(FORMAT, "")
    return version.isdigit() and there.isdigit() and int(version) < int(there)


def refuse_older_format(model: str, wanted: Mapping[str, str], stored: Mapping[str, str], kind: str) -> None:
    """Refuse a format version to which the table of a model cannot be changed in place.

    :param kind: dbt's type of the node. A snapshot is never rebuilt.
    :raises ConfigError: it is older than that of the table.
    """
    if is_older_format(wanted, stored):
        rebuild = f"rebuild the table: dbt run --full-refresh --select {model}"
        raise ConfigError(
            f"tblproperties sets {FORMAT} to {wanted[FORMAT]}, and the table has {stored[FORMAT]}",
            where=model,
            why="Iceberg cannot downgrade a table",
            fix=f"set {FORMAT} to {stored[FORMAT]}" + ("" if kind == "snapshot" else f", or {rebuild}"),
        )


def require_keyed_format(model: str, properties: Mapping[str, object]) -> None:
    """Refuse a format version that the base table of a keyed table cannot have.

    :raises ConfigError: it is set to another version.
    """
    version = str(properties.get(FORMAT, TABLE_DEFAULTS[FORMAT]))
    if version != TABLE_DEFAULTS[FORMAT]:
        raise ConfigError(
            f"tblproperties sets {FORMAT} to {version}",
            where=model,
            why=f"a keyed table has format version {TABLE_DEFAULTS[FORMAT]}",
            fix="remove it, or use a plain table",
        )


def unset_statistics_of_missing(context: Context, name: Name, columns: Collection[str]) -> None:
    """Before a table is replaced: unset the statistics settings of the columns that it will not have.

    A replaced table keeps its properties, and Iceberg refuses every later change of one while another names a
    column that does not exist.

    :param columns: the names of its new columns.
    """
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        return
    kept = {METRICS_OF + column for column in columns}
    kept |= set(json.loads(state.properties.get(PROPERTY_GIVEN, "[]")))
    gone = [one for one in state.properties if one.startswith(METRICS_OF) and one not in kept]
    if gone:
        listed = ", ".join(map(literal, gone))
        context.run("unset_properties", f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({listed})")


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
