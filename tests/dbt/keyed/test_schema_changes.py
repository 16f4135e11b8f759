"""Statements that change a followed table of PostgreSQL: no row is silently another one than there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing, suppress

import psycopg
import pytest

from dbt_arctic.sources.column_changes import Effect
from tests.extent import extent

from .database_servers import running_server
from .followed_table import FollowedDatabase, FollowedTable, Missing

SLOT = "arctic_ddl"

STATEMENTS: list[tuple[str, Effect]] = [
    # Columns that come and go
    ("ALTER TABLE {t} ADD COLUMN c int", "null"),
    ("ALTER TABLE {t} ADD COLUMN c text[]", "null"),
    ("ALTER TABLE {t} ADD COLUMN c int; ALTER TABLE {t} ALTER COLUMN c SET DEFAULT 5", "null"),
    ("ALTER TABLE {t} ADD COLUMN c int DEFAULT 5", "read"),
    ("ALTER TABLE {t} ADD COLUMN c int NOT NULL DEFAULT 5", "read"),
    ("ALTER TABLE {t} ADD COLUMN c double precision DEFAULT random()", "read"),
    ("ALTER TABLE {t} ADD COLUMN c serial", "read"),
    ("ALTER TABLE {t} ADD COLUMN c bigint GENERATED ALWAYS AS IDENTITY", "read"),
    ("ALTER TABLE {t} ADD COLUMN c int DEFAULT 5; VACUUM FULL {t}", "read"),
    ("ALTER TABLE {t} ADD COLUMN c int GENERATED ALWAYS AS (n * 2) STORED", "none"),
    ("ALTER TABLE {t} ADD COLUMN c int; ALTER TABLE {t} DROP COLUMN c", "none"),
    (
        "ALTER TABLE {t} ADD COLUMN c int; UPDATE {t} SET c = 7; ALTER TABLE {t} DROP COLUMN c; "
        "ALTER TABLE {t} ADD COLUMN c int",
        "read",
    ),
    ("ALTER TABLE {t} ADD COLUMN c int; ALTER TABLE {t} ADD COLUMN y int; UPDATE {t} SET y = 1", "null"),
    ("ALTER TABLE {t} ADD COLUMN c int; UPDATE {t} SET c = 1; ALTER TABLE {t} ADD COLUMN y int", "read"),
    ("ALTER TABLE {t} DROP COLUMN n", "none"),
    ("ALTER TABLE {t} DROP COLUMN a, DROP COLUMN b", "none"),
    ("ALTER TABLE {t} DROP COLUMN n; ALTER TABLE {t} ADD COLUMN n int", "read"),
    ("ALTER TABLE {t} DROP COLUMN z; ALTER TABLE {t} ADD COLUMN z text", "read"),
    # Generated columns that become others
    ("ALTER TABLE {t} ALTER COLUMN g DROP EXPRESSION", "read"),
    # Other names
    ("ALTER TABLE {t} RENAME a TO c", "read"),
    ("ALTER TABLE {t} RENAME a TO c; ALTER TABLE {t} RENAME b TO a; ALTER TABLE {t} RENAME c TO b", "read"),
    ("ALTER TABLE {t} RENAME a TO c; UPDATE {t} SET c = 'q'; ALTER TABLE {t} RENAME c TO a", "read"),
    (
        "ALTER TABLE {t} RENAME a TO c; ALTER TABLE {t} RENAME b TO a; ALTER TABLE {t} RENAME c TO b; "
        "UPDATE {t} SET a = 'other'; "
        "ALTER TABLE {t} RENAME a TO c; ALTER TABLE {t} RENAME b TO a; ALTER TABLE {t} RENAME c TO b",
        "read",
    ),
    ("ALTER TABLE {t} ADD COLUMN c int; UPDATE {t} SET c = 7; ALTER TABLE {t} RENAME c TO y", "read"),
    ("ALTER TABLE {t} DROP COLUMN a; ALTER TABLE {t} RENAME b TO a", "read"),
    ("ALTER TABLE {t} RENAME TO {t}x; UPDATE {t}x SET a = 'away'; ALTER TABLE {t}x RENAME TO {t}", "none"),
    # Other types
    ("ALTER TABLE {t} ALTER COLUMN v TYPE varchar(20)", "none"),
    ("ALTER TABLE {t} ALTER COLUMN v TYPE text", "none"),
    ("ALTER TABLE {t} ALTER COLUMN h TYPE inet", "read"),
    ("ALTER TABLE {t} ALTER COLUMN h SET NOT NULL", "none"),
    ("ALTER TABLE {t} ALTER COLUMN v TYPE varchar(3) USING left(v, 3)", "read"),
    ("ALTER TABLE {t} ALTER COLUMN m TYPE numeric(12,2)", "none"),
    ("ALTER TABLE {t} ALTER COLUMN m TYPE numeric(12,2) USING m + 1", "read"),
    ("ALTER TABLE {t} ALTER COLUMN m TYPE numeric(12,4)", "read"),
    ("ALTER TABLE {t} ALTER COLUMN m TYPE numeric(8,1)", "read"),
    ("ALTER TABLE {t} ALTER COLUMN n TYPE bigint", "read"),
    ("ALTER TABLE {t} ALTER COLUMN n TYPE smallint", "read"),
    ("ALTER TABLE {t} ALTER COLUMN n TYPE int USING n * 2", "read"),
    ("ALTER TABLE {t} ALTER COLUMN n TYPE text", "read"),
    ("ALTER TABLE {t} ALTER COLUMN a TYPE int USING length(a)", "read"),
    ("ALTER TABLE {t} ALTER COLUMN a TYPE text USING upper(a)", "read"),
    ("ALTER TABLE {t} ALTER COLUMN d TYPE timestamp", "read"),
    ("ALTER TABLE {t} ALTER COLUMN l TYPE bigint[]", "read"),
    ("ALTER TABLE {t} ALTER COLUMN l TYPE int[] USING l || 1", "read"),
    ("ALTER TABLE {t} ALTER COLUMN e TYPE text", "read"),
    ("ALTER TYPE {t}_mood ADD VALUE 'good'", "none"),
    ("ALTER TYPE {t}_mood ADD VALUE 'great' BEFORE 'ok'", "none"),
    ("ALTER TYPE {t}_mood RENAME VALUE 'ok' TO 'fine'", "read"),
    (
        "ALTER TYPE {t}_mood RENAME VALUE 'ok' TO 'fine'; UPDATE {t} SET e = 'fine'; "
        "ALTER TYPE {t}_mood RENAME VALUE 'fine' TO 'ok'",
        "read",
    ),
    # What leaves the values as they are
    ("ALTER TABLE {t} ALTER COLUMN n SET NOT NULL", "none"),
    ("ALTER TABLE {t} ALTER COLUMN k DROP NOT NULL", "none"),
    ("ALTER TABLE {t} ALTER COLUMN n SET DEFAULT 3", "none"),
    ("ALTER TABLE {t} ALTER COLUMN k DROP DEFAULT", "none"),
    ("ALTER TABLE {t} ADD CHECK (n > -100)", "none"),
    ("ALTER TABLE {t} ALTER COLUMN a SET STATISTICS 50", "none"),
    ("CREATE INDEX ON {t} (a); CLUSTER {t} USING {t}_a_idx", "none"),
    ("VACUUM FULL {t}", "none"),
    ("ALTER TABLE {t} REPLICA IDENTITY FULL", "none"),
    ("COMMENT ON COLUMN {t}.a IS 'a'", "none"),
    # Keys
    ("ALTER TABLE {t} RENAME id TO key", "load"),
    ("ALTER TABLE {t} ALTER COLUMN id TYPE bigint", "load"),
    ("ALTER TABLE {t} DROP CONSTRAINT {t}_pkey; ALTER TABLE {t} ADD PRIMARY KEY (k)", "load"),
    ("ALTER TABLE {t} DROP CONSTRAINT {t}_pkey; ALTER TABLE {t} ADD PRIMARY KEY (id)", "none"),
]
"""Each statement, and what it means for the rows of a model."""

CHANGED = "UPDATE {t} SET a = a || 'x', n = n + 1 WHERE id = 1; DELETE FROM {t} WHERE id = 2; " + (
    "INSERT INTO {t} VALUES (3, 3, 'c', 'cc', 3, 'three', 3.33, 'ok', '2026-01-03', '{{3}}')"
)
WRITTEN = "UPDATE {t} SET {key} = {key} WHERE {key} IN (1, 3)"
"""Logs whole rows, whatever columns there are."""


def create(database: FollowedDatabase, name: str) -> FollowedTable:
    for statement in (
        f"CREATE TYPE {name}_mood AS ENUM ('ok', 'bad')",
        f"CREATE TABLE {name} (id int PRIMARY KEY, k int NOT NULL DEFAULT 1, a text, b text, n int, "
        f"v varchar(10), m numeric(10,2), e {name}_mood, d date, l int[], "
        "g int GENERATED ALWAYS AS (k * 2) STORED, z text, h cidr DEFAULT '10.0.0.1/32')",
        f"INSERT INTO {name} VALUES (1, 1, 'a', 'b', 1, 'one one', 1.25, 'ok', '2026-01-01', '{{1}}'), "
        f"(2, 2, 'aa', 'bb', 2, 'two', 2.55, 'bad', '2026-01-02', '{{2}}')",
    ):
        database.run(statement)
    return FollowedTable(database, name)


@pytest.fixture(scope="module")
def database() -> Iterator[FollowedDatabase]:
    """A PostgreSQL without Spark."""
    with running_server("postgresql") as server, closing(server.connect()) as connection:
        yield FollowedDatabase(server.url, connection, SLOT)


def test_no_statement_leaves_other_rows_than_those_of_the_database(database: FollowedDatabase) -> None:
    models = {}
    for number, (statement, _) in enumerate(STATEMENTS):
        for order in ("s", "csw"):
            models[statement, order] = create(database, f"t{number}_{order}")
    database.take()
    for model in models.values():
        model.load()
    for (statement, order), model in models.items():
        for part in order:
            key = key_of(model)
            for one in {"s": statement, "c": CHANGED, "w": WRITTEN}[part].split("; "):
                database.run(one.format(t=model.name, key=key))
    wrong = []
    taken, effects = database.take(), dict(STATEMENTS)
    for (statement, order), model in models.items():
        try:
            effect = model.run(taken.get(f"public.{model.name}", ()))
        except Missing as error:
            wrong.append((statement, order, f"{error} is missing"))
            continue
        if effect != effects[statement]:
            wrong.append((statement, order, f"{effect}: {model.changes}"))
        if model.rows != model.there():
            wrong.append((statement, order, f"{model.rows} in place of {model.there()}"))
    assert wrong == []
    # What a run has recorded is what the next one compares.
    for model in models.values():
        database.run(WRITTEN.format(t=model.name, key=key_of(model)))
        database.run(f"DELETE FROM {model.name} WHERE {key_of(model)} = 1")
    taken = database.take()
    for (statement, order), model in models.items():
        if model.run(taken[f"public.{model.name}"]) != "none" or model.rows != model.there():
            wrong.append((statement, order, str(model.changes)))
    assert wrong == []


def test_nor_does_a_statement_after_the_changes_were_captured(database: FollowedDatabase) -> None:
    """The run sees columns that later changes, which the next run reads, did not have."""
    models = {}
    for number, (statement, effect) in enumerate(STATEMENTS):
        if effect != "load":
            models[statement] = create(database, f"late{number}")
    database.take()
    for model in models.values():
        model.load()
        database.run(f"UPDATE {model.name} SET a = a || 'y' WHERE id = 1")
    taken = database.take()
    for statement, model in models.items():
        for one in f"{CHANGED}; {statement}".split("; "):
            database.run(one.format(t=model.name))
    wrong = []
    for model in models.values():
        model.run(taken[f"public.{model.name}"])
    taken = database.take()
    for statement, model in models.items():
        try:
            model.run(taken[f"public.{model.name}"])
        except Missing as error:
            wrong.append((statement, f"{error} is missing"))
        if model.rows != model.there():
            wrong.append((statement, f"{model.rows} in place of {model.there()}: {model.changes}"))
    assert wrong == []


def key_of(model: FollowedTable) -> str:
    (key,) = model.database.columns(model.name).events.key
    return key


@pytest.mark.parametrize("seed", extent([1], range(1, 9)))
def test_nor_do_many_statements_between_changes_of_rows(database: FollowedDatabase, seed: int) -> None:
    """A statement that no longer fits the table has no effect."""
    chance, statements = random.Random(seed), list[str]()
    models = [create(database, f"random{seed}_{number}") for number in range(5)]
    database.take()
    for model in models:
        model.load()
    altering = [statement for statement, effect in STATEMENTS if effect != "load"]
    found = set[Effect]()
    for _ in range(extent(300, 600)):
        model = chance.choice(models)
        if chance.random() < 0.1:
            taken = database.take()
            for one in models:
                found.add(one.run(taken.get(f"public.{one.name}", ())))
                assert one.rows == one.there(), (one.name, one.changes, statements)
            statements.clear()
            continue
        text = chance.choice(altering) if chance.random() < 0.08 else _written(chance)
        statements.append(text.format(t=model.name))
        for part in statements[-1].split("; "):
            with suppress(psycopg.Error):
                database.run(part)
    assert found >= {"none", "read"}


def _written(chance: random.Random) -> str:
    """A statement that changes rows."""
    key, column = chance.randrange(8), chance.choice("abnz")
    return chance.choice(
        [
            f"INSERT INTO {{t}} (id, k) VALUES ({key}, 1)",
            f"DELETE FROM {{t}} WHERE id = {key}",
            f"UPDATE {{t}} SET id = id WHERE id % 3 = {key % 3}",
            f"UPDATE {{t}} SET id = {chance.randrange(8)} WHERE id = {key}",
            f"UPDATE {{t}} SET {column} = '{chance.randrange(1000)}' WHERE id > {key}",
            f"UPDATE {{t}} SET {column} = '{chance.randrange(1000)}' WHERE id > {key}",
        ]
    )
