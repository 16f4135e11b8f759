"""The layout of a keyed table: partitions, buckets and the sort order inside files."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dbt_arctic.data_type import kind_of
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import quote, quote_all

DEFAULT_BUCKETS = 8
MAX_BUCKETS = 65536

_BUCKETABLE = frozenset(
    (
        *("tinyint", "smallint", "int", "integer", "bigint", "long", "decimal", "string", "varchar", "char"),
        *("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "binary"),
    )
)
_TRANSFORM = re.compile(
    r"(years?|months?|days?|hours?)\((.+)\)|(truncate|bucket)\((\d+),(.+)\)", re.IGNORECASE | re.DOTALL
)

_TRANSFORMS = {
    "year": "year(at)",
    "month": "month(at)",
    "day": "day(at)",
    "hour": "hour(at)",
    "truncate": "truncate(4, sku)",
    "bucket": "bucket(16, id)",
}
"""Iceberg's transforms, each with an example."""
_CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
_BUCKETS = re.compile(r"bucket\((\d+), (.+)\)")


@dataclass(frozen=True)
class Layout:
    """The layout of a generation, shared by its base and change table.

    ``partition_by`` holds columns or Iceberg transforms of a column as the user wrote them, followed by
    buckets. An adopted table may have none: ``buckets`` is then 0.
    """

    buckets: int
    bucket_by: str
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()

    def partition_clause(self) -> str:
        """The fields of the PARTITIONED BY clause."""
        fields = [partition_field(text) for text in self.partition_by]
        if self.buckets:
            fields.append(f"bucket({self.buckets}, {quote(self.bucket_by)})")
        return ", ".join(fields)

    @property
    def fields(self) -> tuple[str, ...]:
        """The partitioning that the catalog reports for this layout."""
        buckets = (f"bucket({self.buckets}, {self.bucket_by})",) if self.buckets else ()
        return (*same_fields(self.partition_by), *buckets)

    def bucket_expression(self, catalog: str, value: str = "") -> str:
        """SQL of the bucket number of a row. The layout must have buckets.

        :param value: SQL of the column value if it is not the column itself.
        """
        return f"{quote(catalog)}.system.bucket({self.buckets}, {value or quote(self.bucket_by)})"

    def order_clause(self) -> str:
        """The columns of the sort order."""
        return quote_all(self.sort_by)

    def having(self, buckets: int) -> Layout:
        """The layout with a different number of buckets."""
        return replace(self, buckets=buckets)

    def to_json(self) -> str:
        """The JSON form that is stored as a property."""
        return json.dumps(
            {
                "buckets": self.buckets,
                "bucket_by": self.bucket_by,
                "partition_by": list(self.partition_by),
                "sort_by": list(self.sort_by),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """Parse the JSON form."""
        value = json.loads(text)
        return cls(
            buckets=int(value["buckets"]),
            bucket_by=str(value["bucket_by"]),
            partition_by=tuple(value["partition_by"]),
            sort_by=tuple(value["sort_by"]),
        )


def count_buckets(fields: Sequence[str] | None, layout: Layout) -> int:
    """The number of buckets for new files of a side table. A full compaction may have changed it.

    :param fields: the partitioning in the catalog; ``None`` if unknown.
    :param layout: the layout with which the table was created.
    """
    match = _BUCKETS.fullmatch(fields[-1]) if fields and layout.buckets else None
    return int(match.group(1)) if match and match.group(2) == layout.bucket_by else layout.buckets


def partition_field(text: str) -> str:
    """A partition field with its column quoted.

    >>> partition_field("day(ordered_at)")
    'day(`ordered_at`)'
    >>> partition_field("country")
    '`country`'
    """
    stripped = text.strip()
    match = _TRANSFORM.fullmatch(stripped)
    if match is None:
        return quote(_unquote(stripped))
    if match.group(1):
        return f"{match.group(1).lower()}({quote(_unquote(match.group(2)))})"
    return f"{match.group(3).lower()}({match.group(4)}, {quote(_unquote(match.group(5)))})"


def check_partition_field(where: str, text: str) -> None:
    """Refuse an expression that is not a transform of Iceberg. A column may be named so, in backticks.

    :raises ConfigError: names the transforms, and the one that was probably meant.
    """
    called = _CALL.fullmatch(text.strip())
    if called is None or _TRANSFORM.fullmatch(text.strip()):
        return
    name, column = called.groups()
    meant = difflib.get_close_matches(name.lower(), _TRANSFORMS, n=1)
    raise ConfigError(
        f"partition_by contains {text.strip()}, which is not a column or a transform",
        where=where,
        why=f"the transforms are {', '.join(_TRANSFORMS.values())}",
        fix=f"did you mean {meant[0]}({column})?" if meant else "use a transform, or a column of the model",
    )


def partition_column(text: str) -> str:
    """The column of a partition field.

    >>> partition_column("truncate(4, sku)")
    'sku'
    """
    match = _TRANSFORM.fullmatch(text.strip())
    if match is None:
        return _unquote(text)
    return _unquote(match.group(2) or match.group(5))


def require_columns(where: str, setting: str, columns: Iterable[str], known: Iterable[str]) -> None:
    """Check that a model has the columns that a setting refers to.

    :raises ConfigError: it lacks one.
    """
    there = list(known)
    by_lower = {name.lower(): name for name in there}
    for column in columns:
        if column not in there:
            meant = difflib.get_close_matches(column.lower(), by_lower, n=1)
            raise ConfigError(
                f"{setting} refers to the column {column}, which the model does not return",
                where=where,
                why=f"its columns are: {', '.join(there)}",
                fix=f"did you mean {by_lower[meant[0]]}?"
                if meant
                else f"correct {setting} in the model's config, or select the column",
            )


def with_columns_of(fields: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Partition fields with their columns in the spelling of the model's columns.

    >>> with_columns_of(["day(AT)", "Shop", "x"], ["at", "shop"])
    ('day(`at`)', '`shop`', 'x')
    """
    spelled = {column.lower(): column for column in columns}
    return tuple(_with_column(text.strip(), spelled) for text in fields)


def _with_column(text: str, spelled: Mapping[str, str]) -> str:
    column = partition_column(text)
    there = spelled.get(column.lower(), column)
    if there == column:
        return text
    match = _TRANSFORM.fullmatch(text)
    if match is None:
        return quote(there)
    if match.group(1):
        return f"{match.group(1)}({quote(there)})"
    return f"{match.group(3)}({match.group(4)}, {quote(there)})"


class PartitionValue(NamedTuple):
    """The value of a partition field as SQL over a row, and its Spark type."""

    sql: str
    type: str


def partition_expression(text: str, catalog: str, prefix: str, types: Mapping[str, str]) -> PartitionValue:
    """The value of a partition field as SQL over a row, and its Spark type.

    :param prefix: the prefix of the column: empty, or an alias with its dot.
    :param types: Spark type by column name.

    >>> partition_expression("day(at)", "lake", "m.", {"at": "timestamp"})
    PartitionValue(sql='`lake`.system.days(m.`at`)', type='date')
    """
    column = partition_column(text)
    value = prefix + quote(column)
    match = _TRANSFORM.fullmatch(text.strip())
    if match is None:
        return PartitionValue(value, types[column])
    if match.group(1):
        unit = match.group(1).lower().rstrip("s")
        of_unit = f"{quote(catalog)}.system.{unit}s({value})"
        return PartitionValue(of_unit, "date" if unit == "day" else "int")
    name, width = match.group(3).lower(), int(match.group(4))
    of_width = f"{quote(catalog)}.system.{name}({width}, {value})"
    return PartitionValue(of_width, types[column] if name == "truncate" else "int")


def same_fields(texts: Sequence[str]) -> tuple[str, ...]:
    """Partition fields in canonical form.

    >>> same_fields(["`day`", "DAY(at)", "truncate(4,sku)"])
    ('day', 'days(at)', 'truncate(4, sku)')
    """
    return tuple(_same_field(text.strip()) for text in texts)


def _same_field(text: str) -> str:
    match = _TRANSFORM.fullmatch(text)
    if match is None:
        return _unquote(text)
    if match.group(1):
        return f"{match.group(1).lower().rstrip('s')}s({_unquote(match.group(2))})"
    return f"{match.group(3).lower()}({match.group(4)}, {_unquote(match.group(5))})"


def adopt_layout(fields: Sequence[str], key: Sequence[str], sort_by: Sequence[str] = ()) -> Layout:
    """The layout of an existing table. Its last field is used as buckets if dbt-arctic would have created it.

    :param fields: the partitioning in the catalog.
    """
    match = _BUCKETS.fullmatch(fields[-1]) if fields else None
    buckets = int(match.group(1)) if match and match.group(2) in key else 0
    order = tuple(sort_by) or tuple(key)
    if match and buckets and not buckets & (buckets - 1):
        return Layout(buckets, match.group(2), tuple(fields[:-1]), order)
    return Layout(0, key[0], tuple(fields), order)


def plan_layout(
    *,
    where: str,
    key: Sequence[str],
    types: Mapping[str, str],
    buckets: int | None = None,
    bucket_by: str | None = None,
    partition_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
) -> Layout:
    """Check the config and fill in its defaults.

    :param where: the model, for error texts.
    :param types: Spark type by column name, of the model's columns.
    :raises ConfigError: a column does not exist, a bucket count is not a power of two, or no key column can
        be bucketed.
    """
    count = DEFAULT_BUCKETS if buckets is None else buckets
    check_bucket_count(where, count)
    for setting, columns in (
        ("bucket_by", [bucket_by] if bucket_by else []),
        ("partition_by", [partition_column(text) for text in partition_by]),
        ("sort_by", list(sort_by)),
    ):
        require_columns(where, setting, columns, types)
    if bucket_by is not None and bucket_by not in key:
        raise ConfigError(
            f"bucket_by is {bucket_by}, which is not part of unique_key",
            where=where,
            why="all rows of a key must be in the same bucket",
            fix=f"choose one of: {', '.join(key)}",
        )
    chosen = bucket_by or next((column for column in key if is_bucketable(types[column])), None)
    if chosen is None or not is_bucketable(types[chosen]):
        described = ", ".join(f"{column} {types[column]}" for column in key)
        raise ConfigError(
            "no column of the key can be bucketed",
            where=where,
            why="Iceberg buckets integers, decimals, dates, timestamps, strings and binaries; "
            f"the key is {described}",
            fix="cast a key column to one of these types in the model, for instance to a decimal",
        )
    return Layout(count, chosen, tuple(partition_by), tuple(sort_by) or tuple(key))


def check_bucket_count(where: str, count: int) -> None:
    """Refuse a number of buckets that is not a power of two.

    :raises ConfigError: it is not a power of two.
    """
    if count < 1 or count > MAX_BUCKETS or count & (count - 1):
        raise ConfigError(
            f"buckets is {count}",
            where=where,
            why=f"the number of buckets is a power of two from 1 to {MAX_BUCKETS}, so that it can grow and "
            "shrink by doubling",
            fix=f"set buckets={_nearest_power(count)}",
        )


def is_bucketable(spark_type: str) -> bool:
    """Whether Iceberg's bucket transform supports a column of this Spark type."""
    return kind_of(spark_type) in _BUCKETABLE


def _nearest_power(count: int) -> int:
    return min(MAX_BUCKETS, 1 << max(0, (max(count, 1) - 1).bit_length()))


def _unquote(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] == "`":
        return stripped[1:-1].replace("``", "`")
    return stripped
