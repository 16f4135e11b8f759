"""The options of a write to a keyed table: how rows reach its files, and the properties of the commit."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import literal, quote

AS_IT_IS = {"use-table-distribution-and-ordering": "false", "fanout-enabled": "true"}
"""Options of a write whose rows Iceberg neither shuffles nor sorts: a task may write several buckets."""


_ONE_AFTER_THE_OTHER = {"fanout-enabled": "false"}
"""Options of a write to partitions: Spark sorts the rows of a task by partition, and one file is open.

Otherwise a task has an open file for each partition, and thousands of them need gigabytes of memory.
"""


def partition_options(layout: Layout) -> Mapping[str, str]:
    """The options for the partitions of a layout; none without partitions."""
    return _ONE_AFTER_THE_OTHER if layout.partition_by else {}


def write_options(properties: Mapping[str, str], options: Mapping[str, str] | None = None) -> str:
    """The options of a write: snapshot properties and write options."""
    summary = {f"snapshot-property.{name}": value for name, value in properties.items()}
    return ", ".join(
        f"{quote(name)}={literal(value)}" for name, value in {**(options or {}), **summary}.items()
    )


__all__ = ["AS_IT_IS", "partition_options", "write_options"]
