"""TPC-H's files and rounds of changes, and what the queries must find. Runs in the parent."""

from __future__ import annotations

import json

from benchmarks.peers import tpch
from benchmarks.peers.data import Expected, database, expected_key, write_parquet
from benchmarks.peers.files import Files
from benchmarks.peers.story import Story
from benchmarks.peers.workload import DELETED, as_text
from benchmarks.tpch.data import generate


def prepare(files: Files, story: Story) -> Expected:
    folder, rounds = files.tpch(story.scale), len(story.cases[0].rounds)
    kept = folder / f"expected-{rounds}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    generate(folder, story.scale)
    expected: Expected = {}
    with database(files.folder) as duck:
        for name in tpch.NAMES:
            source = f"'{folder / f'{name}.parquet'}'"
            write_parquet(duck, tpch.initial_sql(name, source), files.tpch_initial(story.scale, name))
            initial = files.tpch_initial(story.scale, name)
            duck.execute(f"CREATE TABLE {name} AS SELECT * FROM '{initial}'")
        for number in range(rounds + 1):
            for name, table in tpch.tables(1).items() if number else ():
                changes = files.tpch_changes(story.scale, name, number)
                write_parquet(duck, tpch.changes_sql(name, name, number), changes)
                same = table.same_key(name, "changed")
                duck.execute(f"DELETE FROM {name} USING '{changes}' AS changed WHERE {same}")
                listed = ", ".join(table.columns)
                duck.execute(f"INSERT INTO {name} SELECT {listed} FROM '{changes}' WHERE NOT {DELETED}")
            for what, sql in tpch.compared(*tpch.NAMES).items():
                expected[expected_key(number, what)] = as_text(duck.execute(sql).fetchall())
    kept.write_text(json.dumps(expected))
    return expected
