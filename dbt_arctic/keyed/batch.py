"""A batch reduced to one row per key, as SQL, with the checks of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dbt_arctic.errors import ConfigError, KeyColumnMissing
from dbt_arctic.keyed.checks import Check, raise_error_sql, shown_row, when_broken
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.narrowing import TypeChange, exact_cast
from dbt_arctic.keyed.table import ACTION, OFFSET, RESERVED_COLUMNS, TXN

ROWS_OF_KEY = "_arctic_rows"
"""The number of rows in a batch with the key of a row, if the batch already has it."""

BUCKET = "_arctic_bucket"

_ROWS = quote(ROWS_OF_KEY)
_RANK = quote("_arctic_rank")
_BUCKET = quote(BUCKET)


@dataclass(frozen=True)
class Batch:
    """The SQL of a model as upserts and deletes of keys.

    :param sql: the compiled SQL of the model.
    :param columns: the columns to write, in the order of the table. Columns that the model lacks are NULL.
    :param model_columns: the columns of the SQL.
    :param deduplicate_by: SQL expressions; of several rows with one key, the greatest wins.
    :param sequence_by: the column that orders the changes of a key; it takes precedence over
        ``deduplicate_by``.
    :param delete_when: SQL condition over the model's columns; rows for which it is true are deletes.
    :param images: whether some rows are before-images, ``-U``, of keys that have another row in the batch.
    :param counted: whether the SQL has ``ROWS_OF_KEY``.
    :param unavailable: whether the SQL has ``UNAVAILABLE``, the columns whose values a row lacks.
    :param checks: constraints on every stored row; a delete stores only its key.
    :param type_changes: of the columns for which the SQL returns another type than the table has.
    """

    model: str
    sql: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    model_columns: tuple[str, ...]
    deduplicate_by: tuple[str, ...] = ()
    delete_when: str | None = None
    checks: tuple[Check, ...] = ()
    sequence_by: str | None = None
    images: bool = False
    counted: bool = False
    unavailable: bool = False
    type_changes: Mapping[str, TypeChange] = field(default_factory=dict)

    @property
    def can_delete(self) -> bool:
        """Whether any of its rows may be a delete."""
        return self.has_action or bool(self.delete_when)

    @property
    def has_action(self) -> bool:
        """Whether the SQL has a column ``_action``."""
        return ACTION in self._produced

    @property
    def _produced(self) -> frozenset[str]:
        """The columns that the SQL returns, in lower case, because Spark's names are case-insensitive."""
        return frozenset(column.lower() for column in self.model_columns)

    def check_columns(self) -> None:
        """Check the batch before any statement runs.

        :raises KeyColumnMissing: the SQL does not return a key column.
        :raises ConfigError: another setting refers to a missing column, or a column name is reserved.
        """
        missing = [column for column in self.key if column not in self.model_columns]
        if missing:
            raise KeyColumnMissing(
                f"unique_key contains {', '.join(missing)}, which the model does not return",
                where=self.model,
                why=f"its columns are: {', '.join(self.model_columns)}",
                fix="select the key columns under these names, or correct unique_key",
            )
        if self.sequence_by is not None and self.sequence_by.lower() not in self._produced:
            raise ConfigError(
                f"sequence_by is {self.sequence_by}, which the model does not return",
                where=self.model,
                why=f"its columns are: {', '.join(self.model_columns)}",
                fix="select the column under that name, or correct sequence_by",
            )
        reserved = [
            column
            for column in self.model_columns
            if column.lower() in RESERVED_COLUMNS and column.lower() != ACTION
        ]
        if reserved:
            raise ConfigError(
                f"the model returns {', '.join(reserved)}, which is a reserved name of keyed tables",
                where=self.model,
                fix="give the column another name with AS",
            )

    @property
    def is_checked_as_stored(self) -> bool:
        """Whether duplicate keys can be found in a new table after it is written.

        This requires that nothing compares the rows of a key, and that none of them is a delete, which a base
        does not store.
        """
        return not (self.counted or self.can_delete or self.sequence_by or self.deduplicate_by)

    def one_row_per_key(self, txn: int, *, as_stored: bool = False, bucket: str = "") -> str:
        """SQL with one row per key: the columns, ``_action``, ``_offset`` and ``_txn``.

        NULL keys, ambiguous duplicates and rows that violate a constraint fail the statement from inside the
        column ``_offset``, which is stored, so that no optimization can drop the check.

        :param as_stored: whether duplicates are left to ``duplicates_in``.
        :param bucket: SQL of the bucket of a row. Rows are shuffled by bucket before they are grouped by key,
            and stay there.
        """
        source, key = self.sql, quote_all(self.key)
        if bucket:
            source = f"SELECT *, {bucket} AS {_BUCKET}\nFROM (\n{source}\n)\nDISTRIBUTE BY {_BUCKET}"
            # Last, so that Spark sorts by the key, as the base is sorted.
            key = f"{key}, {_BUCKET}"
        windows = self._windows(key, counts=not self.counted and not as_stored)
        if windows:
            listed = ",\n    ".join(windows)
            source = f"  SELECT *,\n    {listed}\n  FROM (\n{source}\n  )"
        if self._order:
            source = f"SELECT *\nFROM (\n{source}\n)\nWHERE {_RANK} = 1"
        selected = ", ".join(map(self._selected, self.columns))
        return f"""\
SELECT {selected},
  {self.action_sql} AS {quote(ACTION)},
  {self._check(as_stored)} AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS {quote(TXN)}
FROM (
{source}
)"""

    @property
    def _order(self) -> str:
        """What decides between rows with one key; empty if nothing does.

        A row without a sequence comes first, so that it is found and refused.
        """
        sequence = [f"({quote(self.sequence_by)}) DESC NULLS FIRST"] if self.sequence_by else []
        return ", ".join([*sequence, *(f"({each}) DESC NULLS LAST" for each in self.deduplicate_by)])

    def _windows(self, key: str, *, counts: bool) -> list[str]:
        """What is computed over the rows with one key. Both windows need the same sort.

        :param counts: whether to count the rows with the greatest value of ``_order``, all without an order.
        """
        over = f"PARTITION BY {key}"
        ranked = []
        if self._order:
            over = f"{over} ORDER BY {self._order}"
            ranked.append(f"rank() OVER ({over}) AS {_RANK}")
            # Spark looks for the first rows of each key before it shuffles only if all windows begin at the
            # first row. That sort of the whole batch rarely removes a row.
            over = f"{over} RANGE BETWEEN CURRENT ROW AND CURRENT ROW"
        return [*ranked, f"count({self._changes}) OVER ({over}) AS {_ROWS}"] if counts else ranked

    def _selected(self, column: str) -> str:
        name = quote(column)
        if column.lower() not in self._produced:
            return f"NULL AS {name}"
        return f"{self.in_stored_type(column, name)} AS {name}" if column in self.type_changes else name

    def in_stored_type(self, column: str, value: str) -> str:
        """SQL of a value. Spark would convert stored values next to it to the type of the batch."""
        change = self.type_changes.get(column)
        return value if change is None else exact_cast(value, change, column=column, where=self.model)

    @property
    def _changes(self) -> str:
        return f"CASE WHEN {quote(ACTION)} <> '-U' THEN 1 END" if self.images else "*"

    @property
    def action_sql(self) -> str:
        """SQL of ``_action``, which fails for a value that is not one of the known ones."""
        conditions = []
        known = "'U', 'D', '-U'" if self.images else "'U', 'D'"
        if self.has_action:
            unknown = raise_error_sql(
                "AR-301",
                "_action has a value that is neither 'U' (upsert) nor 'D' (delete): ",
                f"coalesce(CAST({quote(ACTION)} AS STRING), 'NULL')",
                self.model,
                "",
                "map the source's codes to 'U' and 'D' in the model",
            )
            conditions.append(
                f"WHEN {quote(ACTION)} IS NULL OR {quote(ACTION)} NOT IN ({known}) THEN {unknown}"
            )
            conditions.append(f"WHEN {quote(ACTION)} = 'D' THEN 'D'")
            if self.images:
                conditions.append(f"WHEN {quote(ACTION)} = '-U' THEN '-U'")
        if self.delete_when:
            end = "\n" if "--" in self.delete_when else ""  # the condition may end with a comment
            conditions.append(f"WHEN ({self.delete_when}{end}) THEN 'D'")
        return f"CASE {' '.join(conditions)} ELSE 'U' END" if conditions else "'U'"

    def duplicates_in(self, base: Name, *, in_place: bool) -> str:
        """SQL that returns 0 if each key of a base has one row, and otherwise fails. Reads only keys.

        :param in_place: bucket by bucket, each in one task; otherwise keys are shuffled.
        """
        key = quote_all(self.key)
        keys = base.sql if in_place else f"(SELECT /*+ REPARTITION({key}) */ {key} FROM {base.sql}) AS k"
        return (
            f"coalesce((\n  SELECT max({self._duplicate()})\n"
            f"  FROM (SELECT {key} FROM {keys} GROUP BY {key} HAVING count(1) > 1) AS doubled\n), 0L)"
        )

    def _duplicate(self) -> str:
        error = raise_error_sql(
            "AR-304",
            "several rows of a batch have the same key: ",
            self._shown_key,
            self.model,
            "it is unknown which of them is the latest",
            "make unique_key unique in the model, or, unless it is automatic, "
            "set deduplicate_by to the column that orders them",
        )
        return f"CAST({error} AS BIGINT)"

    @property
    def _shown_key(self) -> str:
        return shown_row(self.key)

    def _check(self, as_stored: bool) -> str:
        row = self._shown_key
        any_null = " OR ".join(f"{quote(column)} IS NULL" for column in self.key)
        null_key = raise_error_sql(
            "AR-303",
            "a row has NULL in its key: ",
            row,
            self.model,
            "a key must identify the row that an update or delete is meant for",
            "filter these rows out in the model, or give them a key with coalesce()",
        )
        duplicate = "" if as_stored else f"WHEN {_ROWS} > 1 THEN {self._duplicate()}"
        action = self.action_sql
        only_if = "" if action == "'U'" else f"{action} = 'U'"
        broken = "".join(
            f"\n    {branch}" for branch in when_broken(self.checks, self.key, self.model, only_if)
        )
        # A before-image is not a change and has no offset; file statistics then give the number of
        # before-images.
        no_change = f"WHEN {quote(ACTION)} = '-U' THEN CAST(NULL AS BIGINT) " if self.images else ""
        no_place = ""
        if self.sequence_by:
            null_sequence = raise_error_sql(
                "AR-309",
                f"a row has NULL in {self.sequence_by}: ",
                row,
                self.model,
                "sequence_by orders the changes of a key, and NULL cannot be ordered",
                "filter these rows out in the model, or give them a value with coalesce()",
            )
            no_place = f"WHEN {quote(self.sequence_by)} IS NULL THEN CAST({null_sequence} AS BIGINT) "
        return (
            f"CASE WHEN {any_null} THEN CAST({null_key} AS BIGINT) {no_place}{no_change}"
            f"{duplicate}{broken} ELSE 0L END"
        )
