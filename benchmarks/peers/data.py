"""Makes the files that all peers read, and what they must find in them: DuckDB, which none of them is.

Runs in the parent, before anything is measured. What is there already is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from benchmarks.peers.files import Files
from benchmarks.peers.story import Story
from benchmarks.peers.workload import (
    COLUMNS,
    DELETED,
    Round,
    as_text,
    changed_rows,
    check_sql,
    digest_sql,
    feed_sql,
    initial_rows,
    reads,
)

Expected = dict[str, list[str]]
"""By round and query: ``3 aggregate``."""


def expected_key(number: int, what: str) -> str:
    return f"{number} {what}"


@contextmanager
def database(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """One on disk, so that tables larger than the memory fit; gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "expected.duckdb"
    file.unlink(missing_ok=True)
    connection = duckdb.connect(str(file), config={"memory_limit": "3GB", "threads": 2})
    try:
        yield connection
    finally:
        connection.close()
        file.unlink(missing_ok=True)


def prepare(files: Files, story: Story) -> Expected:
    """Make what is missing, and say what every peer must find after each round."""
    warm = files.WARM
    with database(files.folder) as duck:
        make(duck, files, warm.rows, [warm])
        make(duck, files, story.rows, story.planned())
        return expect(duck, files, story)


def make(duck: duckdb.DuckDBPyConnection, files: Files, rows: int, rounds: Sequence[Round]) -> None:
    files.of(rows).mkdir(parents=True, exist_ok=True)
    write_parquet(duck, initial_rows(rows), files.initial(rows))
    for one in rounds:
        write_parquet(duck, changed_rows(one), files.changes(one))


def write_parquet(duck: duckdb.DuckDBPyConnection, sql: str, file: Path) -> None:
    if file.exists():
        return
    unfinished = file.with_suffix(".unfinished")
    duck.execute(f"COPY ({sql}) TO '{unfinished}' (FORMAT parquet, COMPRESSION zstd)")
    unfinished.rename(file)


def expect(duck: duckdb.DuckDBPyConnection, files: Files, story: Story) -> Expected:
    kept = files.folder / f"expected-{story.name}.json"
    planned = [one.file for one in story.planned()]
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["rounds"] == planned:
            return dict(found["expected"])
    expected: Expected = {}

    def note(number: int, what: str, sql: str) -> None:
        expected[expected_key(number, what)] = as_text(duck.execute(sql).fetchall())

    def note_state(number: int) -> None:
        note(number, "check", check_sql("state"))
        for what, sql in reads("state", story.rows).items():
            note(number, what, sql)

    duck.execute(f"CREATE OR REPLACE TABLE state AS SELECT * FROM '{files.initial(story.rows)}'")
    note_state(0)
    listed = ", ".join(COLUMNS)
    for one in story.planned():
        changes = f"'{files.changes(one)}'"
        duck.execute(f"DELETE FROM state WHERE id IN (SELECT id FROM {changes})")
        duck.execute(f"INSERT INTO state SELECT {listed} FROM {changes} WHERE NOT {DELETED}")
        note_state(one.number)
        note(one.number, "feed", feed_sql(changes))
        expected[expected_key(one.number, "feed")][3:] = []
    note(len(planned), "digest", digest_sql("state", COLUMNS, "duckdb"))
    kept.write_text(json.dumps({"rounds": planned, "expected": expected}))
    return expected
