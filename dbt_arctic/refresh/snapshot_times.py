"""The columns that dbt adds to a snapshot, in the types in which they are stored.

The first run decides the types. A time of another type would be changed when it is stored: a TIMESTAMP in a
DATE is cut to its day, is newer than itself in each later run, and adds a record of its key each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import TableState
from dbt_arctic.data_type import kind_of
from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.assignment import mismatches
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.partition_column_types import gets_other_partition_values

TIMES = ("date", "timestamp", "timestamp_ntz")
"""The types of times that are compared as times."""
_TIME_COLUMNS = ("dbt_valid_from", "dbt_updated_at", "dbt_valid_to")


@dataclass(frozen=True)
class OwnColumns:
    """The columns that a run adds to the rows of its query.

    :param names: the names of the columns, by dbt's names.
    :param updated_at: SQL of the time of a row.
    :param time: its type.
    :param scd_id: the type of the id of a record.
    :param current_end: SQL of ``dbt_valid_to_current``; ``None`` for NULL.
    """

    model: str
    names: Mapping[str, str]
    updated_at: str
    time: str
    scd_id: str
    hard_deletes: str
    current_end: str | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, with the types of the values that the query gives them."""
        times = [Column(self._name(one), self.time) for one in _TIME_COLUMNS]
        marks = [Column(self._name("dbt_is_deleted"), "string")] if self.hard_deletes == "new_record" else []
        return (*times, Column(self._name("dbt_scd_id"), self.scd_id), *marks)

    def as_stored(self, stored: Sequence[Column]) -> tuple[Column, ...]:
        """The columns that ``refuse_other_types`` accepts, with an end in the type that it was stored in."""
        types = {column.name.lower(): column.type for column in stored}
        return tuple(
            Column(column.name, types[column.name.lower()])
            if self._is_converted_end(column, types.get(column.name.lower(), ""))
            else column
            for column in self.columns
        )

    def refuse_other_types(self, stored: Sequence[Column], state: TableState | None) -> None:
        """Refuse values that the stored columns would change, or compare as another type.

        :param state: the snapshot in the catalog.
        :raises SchemaChanged: nothing was changed.
        """
        types = {column.name.lower(): column.type for column in stored}
        found = [
            (column, types[column.name.lower()])
            for column in (*self.columns, *self._times_of_the_run(types))
            if column.name.lower() in types and not self._fits(column, types[column.name.lower()])
        ]
        if not found:
            return
        described = [
            f"{one.name} is {one.type} in the query and {there} in the table" for one, there in found
        ]
        times = {self._name(one) for one in _TIME_COLUMNS}
        if any(one.name not in times for one, _ in found):
            raise SchemaChanged(
                "the snapshot cannot store the columns of dbt without loss",
                where=self.model,
                why="; ".join(dict.fromkeys(described)),
                fix="give the column in the table the type that it has in the query",
            )
        raise SchemaChanged(
            f"the time of a row, {self.updated_at}, is not of the type of the stored times",
            where=self.model,
            why=f"{'; '.join(dict.fromkeys(described))}: a time that is changed when it is stored would be "
            "another one in each run, and add a record of each key",
            fix=self._fix(found[0][1], types, state),
        )

    def _times_of_the_run(self, stored: Mapping[str, str]) -> Iterator[Column]:
        """The time of the run, at which a deleted record ends. It has the type of a stored start."""
        start = stored.get(self._name("dbt_valid_from").lower())
        if self.hard_deletes != "ignore" and start in TIMES:
            for one in _TIME_COLUMNS:
                yield Column(self._name(one), start)

    def _fits(self, column: Column, stored: str) -> bool:
        if kind_of(stored) == "string" and kind_of(column.type) not in ("string", "void"):
            return False  # as texts, 10 is before 9
        if not mismatches(column.name, column.type, stored):
            return True
        return self._is_converted_end(column, stored)

    def _is_converted_end(self, column: Column, stored: str) -> bool:
        """Whether a local time is stored in one column with a ``dbt_valid_to_current`` that is a TIMESTAMP.

        Spark converts it to a TIMESTAMP, at the first run as at every other.
        """
        is_end = bool(self.current_end) and column.name == self._name("dbt_valid_to")
        return is_end and (column.type, stored) == ("timestamp_ntz", "timestamp")

    def _fix(self, wanted: str, stored: Mapping[str, str], state: TableState | None) -> str:
        if wanted not in TIMES or self.time not in TIMES:
            return f"set updated_at to a column or an expression of the type {wanted}"
        cast = f"set updated_at to 'cast({self.updated_at} as {wanted})'"
        names = [self._name(one) for one in _TIME_COLUMNS]
        others = [one for one in names if stored.get(one.lower(), self.time) != self.time]
        if state is not None and gets_other_partition_values(
            state, [Column(one, self.time) for one in others]
        ):
            return (
                f"{cast}: Iceberg cannot convert the stored times, because the table is partitioned by them"
            )
        quoted = list(map(quote, others))
        layout = f" partitioned by ({', '.join(state.partitioning)})" if state and state.partitioning else ""
        converted = ", ".join(f"cast({one} as {self.time}) as {one}" for one in quoted)
        hook = (
            f"create or replace table {{{{ this }}}} using iceberg{layout} as "
            f"select * except ({', '.join(quoted)}), {converted} from {{{{ this }}}}"
        )
        return f'{cast}, or convert the stored times in the same run: pre_hook="{hook}"'

    def _name(self, column: str) -> str:
        return self.names[column].strip("`")
