"""SQL for the erasure of keys from a side table's rows, files, manifests and older snapshots.

A DELETE only hides rows, and older snapshots still contain them. Four more statements follow: they rewrite
the files that may contain a key, rewrite their manifests (which contain column bounds), commit the properties
of the older commits again, and expire these commits together with their files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbt_arctic.keyed.exact_text import text_as_instant
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.table import MARKER_TXN, TXN

PROPERTY_ERASE = "arctic.erase"
"""On the commits of an erasure: ``delete`` if it deleted rows, ``done`` if it carried the log forward."""
HIDDEN, CARRIED = "delete", "done"
BRANCH = "arctic_erase"
"""The branch on which such a commit is staged. Its name is fixed, so the next erasure drops a leftover."""
PROPERTY_SPLIT = "arctic.erase-split"
"""On a side table whose manifests are being split: the previous value of the target manifest size."""

_TARGET_SIZE = "commit.manifest.target-size-bytes"


def key_literal(text: str, type_: str) -> str:
    """SQL of a key value from its text; of a binary from its hexadecimal digits.

    >>> key_literal("42", "bigint"), key_literal("0aff", "binary")
    ("CAST('42' AS bigint)", "unhex('0aff')")
    """
    return f"unhex({literal(text)})" if type_ == "binary" else f"CAST({literal(text)} AS {type_})"


def key_text(column: str, type_: str) -> str:
    """SQL of the text of a stored key value, in the form that ``key_literal`` accepts."""
    if type_ == "binary":
        return f"hex({quote(column)})"
    if type_ == "timestamp":  # a local time is ambiguous during the change from daylight saving time
        return f"date_format({quote(column)}, 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')"
    return f"CAST({quote(column)} AS STRING)"


def any_of(columns: Sequence[str], types: Mapping[str, str], keys: Sequence[Sequence[str]]) -> str:
    """SQL condition that a row has one of these keys, given as texts in the order of the columns."""
    if len(columns) == 1:
        listed = ", ".join(key_literal(key[0], types[columns[0]]) for key in keys)
        return f"{quote(columns[0])} IN ({listed})"
    return " OR ".join(
        "("
        + " AND ".join(
            f"{quote(column)} = {key_literal(text, types[column])}"
            for column, text in zip(columns, key, strict=True)
        )
        + ")"
        for key in keys
    )


class KeyText(NamedTuple):
    """A value of a key column as text, with the column's Spark type."""

    column: str
    type: str
    text: str


def check_literals(texts: Sequence[KeyText]) -> str:
    """SQL that returns one row: for each text, whether it is valid for the type."""
    return f"SELECT {', '.join(f'{_value(literal(one.text), one.type)} IS NOT NULL' for one in texts)}"


def _value(text: str, type_: str) -> str:
    if type_ == "binary":
        return f"unhex({text})"
    return text_as_instant(text) if type_ == "timestamp" else f"try_cast({text} AS {type_})"


def count_rows(side: Name, condition: str, is_change: bool) -> str:
    """SQL that counts the affected rows of a side table."""
    return f"SELECT count(*)\nFROM {side.sql}\nWHERE {_rows(condition, is_change)}"


def mark_commits(kind: str) -> str:
    """The statement that sets a snapshot property, which ``DELETE`` reads only from the session.

    Reset right after.
    """
    return f"SET {_session_property()}={kind}"


def reset_mark() -> str:
    """The statement that resets ``mark_commits``."""
    return f"RESET {_session_property()}"


def hide_rows(side: Name, condition: str, key: str, is_change: bool) -> str:
    """The DELETE that hides the rows from readers.

    Its last condition is always true but unknown to file statistics, because a metadata-only DELETE would
    omit the commit property.
    """
    return (
        f"DELETE FROM {side.sql}\nWHERE {_rows(condition, is_change)}\n"
        f"  AND length(CAST({quote(key)} AS STRING)) >= 0"
    )


def rewrite_files(side: Name, condition: str, is_change: bool) -> str:
    """The statement that rewrites every file that may contain such a row, even a deleted one.

    Rows keep their order.
    """
    where = literal(_rows(condition, is_change))
    return (
        f"CALL {quote(side.catalog)}.system.rewrite_data_files(table => {side.procedure_argument()}, "
        f"where => {where}, options => map('rewrite-all', 'true'))"
    )


def list_manifests(side: Name) -> str:
    """SQL for the partition specs with manifest entries of removed files.

    Columns: id, number of data manifests, and size.
    """
    return (
        "SELECT partition_spec_id, count(*), max(length)\n"
        f"FROM {side.sql}.manifests\nWHERE content = 0\n"
        "GROUP BY partition_spec_id\nHAVING sum(deleted_data_files_count) > 0\nORDER BY partition_spec_id"
    )


def rewrite_manifests(side: Name, spec_id: int) -> str:
    """The statement that rewrites manifests, because they contain the removed files and their column bounds.

    :param spec_id: the partition spec; Iceberg rewrites one at a time.
    """
    return (
        f"CALL {quote(side.catalog)}.system.rewrite_manifests(table => {side.procedure_argument()}, "
        f"use_caching => false, spec_id => {spec_id})"
    )


def split_manifests(side: Name, size: int, properties: Mapping[str, str]) -> str:
    """The statement that temporarily reduces the target size of manifests.

    A single manifest of that size is not rewritten.
    """
    before = properties.get(PROPERTY_SPLIT, properties.get(_TARGET_SIZE, ""))
    return (
        f"ALTER TABLE {side.sql} SET TBLPROPERTIES ("
        f"{literal(_TARGET_SIZE)} = {literal(str(max(1, size // 2)))}, "
        f"{literal(PROPERTY_SPLIT)} = {literal(before)})"
    )


def join_manifests(side: Name, before: str) -> tuple[str, ...]:
    """The statements that restore the target manifest size. The record of the change is removed last.

    :param before: the value of ``PROPERTY_SPLIT``.
    """
    size, split = literal(_TARGET_SIZE), literal(PROPERTY_SPLIT)
    if before:
        return (
            f"ALTER TABLE {side.sql} SET TBLPROPERTIES ({size} = {literal(before)})",
            f"ALTER TABLE {side.sql} UNSET TBLPROPERTIES ({split})",
        )
    return (f"ALTER TABLE {side.sql} UNSET TBLPROPERTIES ({size}, {split})",)


def empty_commit_sql(side: Name, columns: Sequence[str], properties: Mapping[str, str]) -> str:
    """The statement for an empty commit with the properties of earlier commits."""
    summary = ", ".join(
        f"{quote('snapshot-property.' + name)}={literal(value)}"
        for name, value in {PROPERTY_ERASE: CARRIED, **properties}.items()
    )
    listed = quote_all(columns)
    return (
        f"INSERT INTO {side.branch(BRANCH)} WITH ({summary}) ({listed})\n"
        f"SELECT {listed}\nFROM {side.sql}\nWHERE false"
    )


def count_by_transaction(change: Name, snapshot_id: int) -> str:
    """SQL that counts the rows of a change table by transaction."""
    return f"SELECT {quote(TXN)}, count(*)\nFROM {change.at(snapshot_id)}\nGROUP BY {quote(TXN)}"


def list_files(side: Name) -> str:
    """SQL for the files that any snapshot refers to."""
    return f"SELECT DISTINCT file_path\nFROM {side.sql}.all_files"


def expire_before(side: Name, timestamp_ms: int) -> str:
    """Expire every snapshot before a point in time, and the files that only these use."""
    return (
        f"CALL {quote(side.catalog)}.system.expire_snapshots(table => {side.procedure_argument()}, "
        f"older_than => timestamp_millis({timestamp_ms}), retain_last => 1, stream_results => true)"
    )


def _rows(condition: str, is_change: bool) -> str:
    # A marker represents its bucket. Its key value is artificial, even if it equals a real key.
    return f"({condition}) AND {quote(TXN)} <> {MARKER_TXN}" if is_change else f"({condition})"


def _session_property() -> str:
    return quote(f"spark.sql.iceberg.snapshot-property.{PROPERTY_ERASE}")
