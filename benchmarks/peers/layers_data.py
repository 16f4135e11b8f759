"""The expected content of the layers after each round, computed by DuckDB. Runs in the parent."""

from __future__ import annotations

import json

from benchmarks.peers.data import Expected, database, expected_key, make, write_parquet
from benchmarks.peers.files import Files
from benchmarks.peers.layers import checks, customers_rows, dwd_sql, dws_sql
from benchmarks.peers.story import Story
from benchmarks.peers.workload import COLUMNS, DELETED, as_text


def prepare(files: Files, story: Story) -> Expected:
    kept = files.folder / f"expected-{story.name}.json"
    planned = story.planned()
    written = [one.file for one in planned]
    if kept.exists():
        found = json.loads(kept.read_text())
        if found["rounds"] == written:
            return dict(found["expected"])
    expected: Expected = {}
    with database(files.folder) as duck:
        make(duck, files, files.WARM.rows, [files.WARM])
        make(duck, files, story.rows, planned)
        write_parquet(duck, customers_rows(), files.customers())
        duck.execute(f"CREATE TABLE state AS SELECT * FROM '{files.initial(story.rows)}'")
        listed = ", ".join(COLUMNS)
        for number in range(len(planned) + 1):
            if number:
                changes = f"'{files.changes(planned[number - 1])}'"
                duck.execute(f"DELETE FROM state WHERE id IN (SELECT id FROM {changes})")
                duck.execute(f"INSERT INTO state SELECT {listed} FROM {changes} WHERE NOT {DELETED}")
            duck.execute(f"CREATE OR REPLACE VIEW dwd AS {dwd_sql('state', repr(str(files.customers())))}")
            for what, sql in checks("dwd", f"({dws_sql('dwd')})").items():
                expected[expected_key(number, what)] = as_text(duck.execute(sql).fetchall())
    kept.write_text(json.dumps({"rounds": written, "expected": expected}))
    return expected
