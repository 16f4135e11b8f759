"""Which rejected rows of a database's table stay when rows are read again: SQL against a model in Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, cast

import pytest

from dbt_arctic.databases.api import Column, SelectedColumn
from dbt_arctic.sources.bad_database_rows import (
    count_bad,
    count_superseded,
    rejected_rows,
    rows_not_superseded,
)
from dbt_arctic.sources.database_columns import ReadColumn
from dbt_arctic.sources.database_rows import TableRows
from dbt_arctic.sources.database_settings import DatabaseSource
from dbt_arctic.store.rejected_table import COLUMNS
from tests.extent import extent
from tests.spark.conftest import Sql

Entry = tuple[str | None, str, str | None]
"""The key, the error and the values of a rejected row."""
ERROR = "the value of v cannot be read as DECIMAL(38,18)"
READ = [
    ReadColumn(SelectedColumn(Column("id", "integer", "integer", "INT")), "INT"),
    ReadColumn(SelectedColumn(Column("mail", "text", "text", "STRING")), "STRING"),
    ReadColumn(SelectedColumn(Column("v", "numeric", "decimal", "DECIMAL(38,18)")), "DECIMAL(38,18)"),
]


@dataclass(frozen=True)
class Row:
    """A row as it was read. ``is_new`` is false for one of which only the key was read."""

    id: int
    mail: str | None
    v: str | None
    is_new: bool = True

    @property
    def is_bad(self) -> bool:
        return self.v == "NaN"

    def part(self, columns: tuple[str, ...]) -> str:
        texts = {"id": str(self.id), "mail": self.mail, "v": self.v}
        return json.dumps({name: texts[name] for name in columns}, separators=(",", ":"))

    def entry(self, table: TableRows) -> Entry:
        raw = self.part(("id", "mail", "v")) if table.on_bad_row == "quarantine" else None
        return self.part(table.key_columns), ERROR, raw


def stays(entry: Entry, rows: list[Row], known: set[Entry], table: TableRows) -> bool:
    """The rule of the documentation, for one rejected row."""
    key = json.loads(entry[0] or "{}")
    for row in rows:
        texts = {"id": str(row.id), "mail": row.mail}
        is_as_it_was = table.on_bad_row != "fail" and row.is_bad and row.entry(table) in known
        if row.is_new and not is_as_it_was:
            for columns in table.keys:
                if all(key[name] is not None and key[name] == texts[name] for name in columns):
                    return False
    there = {tuple(str(getattr(row, name)) for name in table.compared) for row in rows}
    return not table.compared or tuple(str(key[name]) for name in table.compared) in there


def as_relation(columns: dict[str, str], rows: list[tuple[Any, ...]]) -> str:
    def value(one: Any) -> str:
        if one is None:
            return "NULL"
        return str(one) if isinstance(one, int) else "'" + str(one).replace("\\", "\\\\") + "'"

    listed = [f"({', '.join(map(value, row))})" for row in rows or [tuple(None for _ in columns)]]
    casts = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
    filtered = "" if rows else " WHERE false"
    return f"(SELECT {casts} FROM VALUES {', '.join(listed)} AS t({', '.join(columns)}){filtered})"


@dataclass(frozen=True)
class Base:
    rows: str


def random_row(rng: random.Random, number: int, is_new: bool) -> Row:
    mail = rng.choice([None, "a", "b", "c"])
    return Row(number, mail, rng.choice(["NaN", "1.5", None]) if is_new else None, is_new)


@pytest.mark.parametrize("seed", range(extent(8, 60)))
def test_a_rejected_row_stays_until_its_row_is_read_again(sql: Sql, seed: int) -> None:
    rng = random.Random(seed)
    policy = cast(
        Literal["fail", "quarantine", "drop"], rng.choice(["fail", "quarantine", "quarantine", "drop"])
    )
    source = DatabaseSource("crm.t", "t", on_bad_row=policy)
    keys = rng.choice([(("id",),), (("mail",),), (("id",), ("mail",)), (("id", "mail"),)])
    compared = rng.choice([(), keys[-1]])
    table = TableRows(source, tuple(READ), (), True, keys, compared)
    earlier = TableRows(DatabaseSource("crm.t", "t", on_bad_row="quarantine"), tuple(READ), (), True, keys)
    before = [random_row(rng, number, True) for number in range(8)]
    known = [row.entry(table if policy == "drop" else earlier) for row in before if row.is_bad]
    rows = [
        row if rng.random() < 0.4 else random_row(rng, row.id, True) for row in before if rng.random() < 0.8
    ]
    if compared:
        read = {row.id for row in rows}
        there = [row for row in before if row.id not in read and rng.random() < 0.7]
        rows += [Row(row.id, row.mail, None, False) for row in there]
    entries: list[tuple[Any, ...]] = [("crm.t", *entry) for entry in known]
    entries.append(("crm.other", *Row(1, "a", "NaN").entry(earlier)))
    types = {**dict.fromkeys(("source", "key", "error", "raw"), "STRING")}
    others = [name for name in COLUMNS if name not in types]
    selected = ", ".join(
        [
            *types,
            *(
                f"CAST({'1' if name == 'row_count' else 'NULL'} AS {COLUMNS[name]}) AS {name}"
                for name in others
            ),
        ]
    )
    base = cast(Any, Base(f"(SELECT {selected} FROM {as_relation(types, entries)})"))
    view = as_relation(
        {"c0": "INT", "c1": "STRING", "c2": "STRING", **({"is_new": "INT"} if compared else {})},
        [(row.id, row.mail, row.v, *([int(row.is_new)] if compared else [])) for row in rows],
    )
    sql(f"CREATE OR REPLACE TEMPORARY VIEW read_rows AS SELECT * FROM {view}")

    staying = Counter(entry for entry in known if stays(entry, rows, set(known), table))
    kept = sql(f"SELECT source, key, error, raw FROM ({rows_not_superseded(table, 'read_rows', base)})")
    assert Counter(row[1:] for row in map(tuple, kept) if row[0] == "crm.t") == staying
    assert [row[0] for row in kept if row[0] != "crm.t"] == ["crm.other"]
    ((number,),) = sql(count_superseded(table, "read_rows", base))
    assert number == len(known) - staying.total()
    if policy == "fail":
        return
    fresh = Counter(row.entry(table) for row in rows if row.is_new and row.is_bad)
    fresh = Counter({entry: times for entry, times in fresh.items() if entry not in known})
    found = sql(f"SELECT key, error, raw FROM ({rejected_rows(table, 'read_rows', base)})")
    assert Counter(map(tuple, found)) == fresh
    assert [tuple(row) for row in sql(count_bad(table, "read_rows", base))] == (
        [("t", fresh.total())] if fresh else []
    )
