"""The tables that the shop's source systems send, and the columns that make each one a change feed."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class FeedTable:
    """One table of the source systems."""

    name: str
    key: tuple[str, ...]


TABLES: tuple[FeedTable, ...] = (
    FeedTable("customer", ("c_custkey",)),
    FeedTable("supplier", ("s_suppkey",)),
    FeedTable("part", ("p_partkey",)),
    FeedTable("partsupp", ("ps_partkey", "ps_suppkey")),
    FeedTable("orders", ("o_orderkey",)),
    FeedTable("lineitem", ("l_orderkey", "l_linenumber")),
)

CHANGE_COLUMNS: tuple[pa.Field, ...] = (
    pa.field("change_op", pa.string()),
    pa.field("change_round", pa.int32()),
    pa.field("change_seq", pa.int64()),
    pa.field("changed_at", pa.timestamp("us", tz="UTC")),
)
"""``change_op`` is I, U or D (a D row has the key only); ``change_seq`` orders a table's changes for good."""


def source_schema(generated: pa.Schema) -> pa.Schema:
    """A generated table's schema in types that every Iceberg writer takes, all columns nullable."""
    return pa.schema(
        pa.field(field.name, pa.string() if field.type == pa.string_view() else field.type)
        for field in generated
    )


def feed_schema(source: pa.Schema) -> pa.Schema:
    """The schema of a table's change feed: its own columns and those of the change."""
    return pa.schema([*source, *CHANGE_COLUMNS])
