"""The lake in memory does what Spark and Iceberg do: the same statements on both, and everything compared.

Rows with the age that Iceberg gives them, the log with what each commit says of itself, the references, the
bounds that files have, and which statements are refused.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import quote_all
from tests.model import plain  # noqa: F401  # the statements of users
from tests.model.spark import SparkWorld
from tests.model.world import MemoryWorld, World

CREATE = """\
CREATE TABLE {t} (
  `id` bigint,
  `amount` int,
  `_action` string,
  `_txn` bigint
)
USING iceberg
PARTITIONED BY (bucket(1, `id`))
TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.merge.mode' = \
'merge-on-read', 'write.update.mode' = 'merge-on-read', 'write.distribution-mode' = 'none')"""
INSERT = "INSERT INTO {t} WITH (`snapshot-property.arctic.txn`='{txn}') (`id`, `amount`, `_action`, `_txn`)\n"
MERGE = """\
MERGE INTO {t} AS b
USING (
  SELECT CAST(id AS BIGINT) AS id, CAST(amount AS INT) AS amount, act
  FROM VALUES (1, 10, 'U'), (2, 20, 'D'), (9, 90, 'U') AS s(id, amount, act)
) AS c
  ON b.`id` = c.`id`
WHEN MATCHED AND c.`act` = 'D' THEN DELETE
WHEN MATCHED THEN UPDATE SET b.`amount` = c.`amount`
WHEN NOT MATCHED AND c.`act` <> 'D' THEN INSERT (`id`, `amount`) VALUES (c.`id`, c.`amount`)"""
FORWARD = "CALL `lake`.system.fast_forward(table => {argument}, branch => 'main', to => '{branch}')"


REWRITE = (
    "CALL `lake`.system.rewrite_data_files(table => {argument}, "
    "where => '(`id` IN (CAST(\\'{key}\\' AS bigint)))', options => map('rewrite-all', 'true'))"
)
MANIFESTS = (
    "?SELECT partition_spec_id, count(*) > 0, max(length) > 0\nFROM {t}.manifests\nWHERE content = 0\n"
    "GROUP BY partition_spec_id\nHAVING sum(deleted_data_files_count) > 0\nORDER BY partition_spec_id"
)


def insert(txn: int, *rows: tuple[int, int, str]) -> str:
    listed = ", ".join(f"({key}, {amount}, '{action}')" for key, amount, action in rows)
    nothing = "" if rows else "\nWHERE false"
    # In an order: one task, and so one file.
    return INSERT.replace("{txn}", str(txn)) + (
        f"SELECT CAST(id AS BIGINT), CAST(amount AS INT), action, CAST({txn} AS BIGINT)\n"
        f"FROM VALUES {listed or '(0, 0, NULL)'} AS s(id, amount, action){nothing}\nORDER BY id"
    )


def on_branch(sql: str, branch: str) -> str:
    return sql.replace("{t}", f"{{t}}.`branch_{branch}`", 1)


# One statement a line. @n is the snapshot after the n-th line; a line that begins with ! is refused. A query
# after ? runs in the session of the statements, and its rows are compared.
SCRIPT = [
    CREATE,
    insert(5001, (1, 1, "U"), (2, 2, "U"), (3, 3, "U")),
    insert(5002, (1, 7, "D")),
    insert(5003),
    "ALTER TABLE {t} CREATE BRANCH `b1` AS OF VERSION @1",
    on_branch(insert(5004, (4, 4, "U")), "b1"),
    "!" + FORWARD.replace("{branch}", "b1"),
    "ALTER TABLE {t} DROP BRANCH IF EXISTS `b1`",
    "ALTER TABLE {t} CREATE BRANCH `b2` AS OF VERSION @head",
    "SET `spark.sql.iceberg.snapshot-property.arctic.merged`=[5001,5002]",
    on_branch(MERGE, "b2"),
    "RESET `spark.sql.iceberg.snapshot-property.arctic.merged`",
    FORWARD.replace("{branch}", "b2"),
    FORWARD.replace("{branch}", "b2"),
    "ALTER TABLE {t} DROP BRANCH IF EXISTS `b2`",
    "!" + FORWARD.replace("{branch}", "b2"),
    insert(5005, (20, 1, "U"), (21, 1, "U")),
    insert(5006, (22, 1, "U"), (23, 1, "D")),
    "DELETE FROM {t}\nWHERE `_txn` IN (5005)",
    "DELETE FROM {t}\nWHERE `_txn` IN (5006) AND `_action` <> 'D'",
    "DELETE FROM {t}\nWHERE `_txn` IN (7777)",
    "DELETE FROM {t}\nWHERE `_txn` IN (5006)",
    "ALTER TABLE {t} CREATE TAG `kept` AS OF VERSION @1",
    "!ALTER TABLE {t} CREATE TAG `kept` AS OF VERSION @2",
    "ALTER TABLE {t} ADD COLUMNS (`extra` string)",
    "!ALTER TABLE {t} ADD COLUMNS (`extra` string)",
    insert(5007, (30, 1, "U")),
    "ALTER TABLE {t} DROP COLUMNS (`extra`)",
    "!ALTER TABLE {t} DROP COLUMNS (`extra`)",
    "CALL `lake`.system.rewrite_data_files(table => {argument}, options => map('rewrite-all', 'true'))",
    # What an erasure runs. Manifests name the files that were removed until they are rewritten.
    MANIFESTS,
    "SET `spark.sql.iceberg.snapshot-property.arctic.erase`=delete",
    "DELETE FROM {t}\nWHERE (`id` IN (CAST('30' AS bigint)))\n  AND length(CAST(`id` AS STRING)) >= 0",
    "DELETE FROM {t}\nWHERE `_txn` IN (7777)",
    "RESET `spark.sql.iceberg.snapshot-property.arctic.erase`",
    REWRITE.replace("{key}", "30"),
    REWRITE.replace("{key}", "9"),
    MANIFESTS,
    "ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest.target-size-bytes' = '1', 'x' = '1')",
    "CALL `lake`.system.rewrite_manifests(table => {argument}, use_caching => false, spec_id => 0)",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('commit.manifest.target-size-bytes', 'x')",
    MANIFESTS,
    "?SELECT count(DISTINCT file_path) > 1\nFROM {t}.all_files",
    insert(5008, (31, 1, "U")),
    insert(0, (32, 1, "-U")),
    "CALL `lake`.system.rewrite_data_files(table => {argument}, where => '`_txn` > 0', "
    "options => map('min-input-files', '2'))",
    "DELETE FROM {t}\nWHERE `_txn` IN (5008)",
    "CALL `lake`.system.rewrite_data_files(table => {argument}, strategy => 'sort', "
    "sort_order => '`id` ASC NULLS FIRST', where => '`lake`.system.bucket(1, `id`) IN (0)', "
    "options => map('rewrite-all', 'true'))",
    "DELETE FROM {t}\nWHERE `_txn` IN (5007)",
    "ALTER TABLE {t} REPLACE PARTITION FIELD bucket(1, `id`) WITH bucket(2, `id`)",
    "!ALTER TABLE {t} REPLACE PARTITION FIELD bucket(1, `id`) WITH bucket(4, `id`)",
    insert(0, (40, 1, "-U"), (41, 1, "-U")),
    "DELETE FROM {t}\nWHERE `_txn` IN (0)",
    "ALTER TABLE {t} ALTER COLUMN `amount` COMMENT 'it\\'s in cents'",
    "ALTER TABLE {t} SET TBLPROPERTIES ('color' = 'it\\'s blue')",
    "CALL `lake`.system.expire_snapshots(table => {argument}, older_than => timestamp_millis(@now), "
    "retain_last => 1)",
    "!ALTER TABLE {t} CREATE BRANCH `b3` AS OF VERSION @2",
    "ALTER TABLE {t} DROP TAG IF EXISTS `kept`",
    "!INSERT INTO {gone} (`id`)\nSELECT 1",
    "!SELECT * FROM {gone}",
    "!DROP TABLE {gone} PURGE",
    "!DROP VIEW {gone}",
    insert(5009, (50, 1, "U")),
    # Rows that a session keeps of a version, from the first query that reads them.
    "CACHE LAZY TABLE `kept` AS\nSELECT `id` FROM {t} VERSION AS OF @head",
    insert(5010, (60, 1, "U"), (61, 1, "U")),
    "?SELECT count(*), CAST(min(k.`id`) AS STRING), typeof(min(k.`id`)) FROM `kept` AS k",
    "!CACHE LAZY TABLE `kept` AS\nSELECT 1 AS `id`",
    "!CACHE LAZY TABLE `others` AS\nSELECT `missing` FROM {t} VERSION AS OF @head",
    "DROP VIEW IF EXISTS `kept`",
    "DROP VIEW IF EXISTS `kept`",
    "!?SELECT count(*) FROM `kept`",
    "CREATE OR REPLACE GLOBAL TEMPORARY VIEW `of_all` AS\nSELECT `id` FROM {t} VERSION AS OF @head",
    "CACHE TABLE `global_temp`.`of_all`",
    "?SELECT count(*) FROM `global_temp`.`of_all`",
    "CREATE OR REPLACE GLOBAL TEMPORARY VIEW `of_all` AS\nSELECT 1 AS `id`",
    "?SELECT * FROM `global_temp`.`of_all` AS a",
    "DROP VIEW IF EXISTS `global_temp`.`of_all`",
    "!?SELECT count(*) FROM `global_temp`.`of_all`",
    "!CACHE TABLE `global_temp`.`of_all`",
]
SUMMARY = ("arctic.txn", "arctic.merged", "arctic.erase", "added-records", "total-records")


class Side:
    """One of the two worlds, and its snapshots in the order in which they were seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.table = world.name("t")
        self.process = world.process("test")
        self.seen: list[int] = []
        self.after: dict[int, int] = {}

    def run(self, place: int, line: str) -> str:
        """``refused``, or the rows of a query that is compared."""

        def at(found: re.Match[str]) -> str:
            if found[1] == "now":
                return str(self.world.now_ms() + 1000)
            state = self.state()
            return str(state.current_snapshot_id if found[1] == "head" else self.after[int(found[1])])

        compared, sql = line.removeprefix("!").startswith("?"), line.lstrip("!?")
        sql = sql.replace("{t}", self.table.sql)
        sql = sql.replace("{argument}", self.table.procedure_argument())
        sql = re.sub(r"@(\w+)", at, sql.replace("{gone}", self.world.name("gone").sql))
        try:
            if compared:
                return str([tuple(row) for row in self.process.query(sql)])
            if sql.startswith("SELECT"):
                self.world.query(sql)
            else:
                self.process.execute(sql)
        except ArcticError:
            return "refused"
        state = self.state()
        self.seen += [one.snapshot_id for one in state.snapshots if one.snapshot_id not in self.seen]
        if state.current_snapshot_id is not None:
            self.after[place] = state.current_snapshot_id
        return ""

    def state(self) -> Any:
        state = self.world.catalog.load_table(self.table.schema, self.table.identifier)
        assert state is not None
        return state

    def described(self, shown: str = "`id`, `amount`, `_txn`") -> dict[str, Any]:
        """:param shown: the columns whose rows are compared; with `_txn`, the bounds of files too."""
        state = self.state()

        def number(snapshot: int | None) -> int | None:
            return None if snapshot is None else self.seen.index(snapshot)

        hidden = f"{shown}, `_last_updated_sequence_number`"
        # Into how many files Spark's tasks write is of no account: only what they hold together.
        files: dict[tuple[int | None, int | None], int] = {}
        if state.current_snapshot_id is not None and "`_txn`" in shown:
            at = state.current_snapshot_id
            for file in self.world.catalog.data_files(state.schema, state.name, at, "_txn"):
                bounds = (file.lower, file.upper)
                files[bounds] = files.get(bounds, 0) + file.record_count
        return {
            "rows": sorted(map(str, self.world.query(f"SELECT {hidden} FROM {self.table.sql}"))),
            "log": [
                (
                    number(one.snapshot_id),
                    one.sequence_number,
                    one.operation,
                    {name: one.summary[name] for name in SUMMARY if name in one.summary},
                    "added-dvs" in one.summary,
                )
                for one in state.history()
            ],
            "snapshots": sorted(self.seen.index(one.snapshot_id) for one in state.snapshots),
            "branches": {name: number(at) for name, at in state.branches.items()},
            "tags": {name: number(at) for name, at in state.tags.items()},
            "columns": [(column.name, column.type, column.comment or "") for column in state.columns],
            "property": state.properties.get("color"),
            "files": files,
        }


def test_both_do_the_same(spark_world: SparkWorld, memory_world: MemoryWorld) -> None:
    real, model = Side(spark_world), Side(memory_world)
    for place, line in enumerate(SCRIPT):
        told = real.run(place, line)
        assert (told == "refused") == line.startswith("!"), line
        assert model.run(place, line) == told, line
        if line.lstrip("!").startswith("?"):
            continue
        assert model.described() == real.described(), line


PLAIN = [
    "CREATE TABLE {t} (id BIGINT, amount INT) USING iceberg PARTITIONED BY (bucket(1, id)) "
    "TBLPROPERTIES ('format-version'='3', 'write.update.mode'='merge-on-read')",
    "!CREATE TABLE {t} (id BIGINT) USING iceberg",
    "ALTER TABLE {t} CREATE BRANCH early",
    "INSERT INTO {t} VALUES (0, 0), (1, 1), (2, 2), (3, 3)",
    "INSERT INTO {t} VALUES (4, 4)",
    "UPDATE {t} SET amount = 20 WHERE id = 2",
    "DELETE FROM {t} WHERE id = 3",
    "DELETE FROM {t} WHERE id = 4",
    "DELETE FROM {t} WHERE id = 99",
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
    "INSERT INTO {t} VALUES (5, 5), (6, 6), (7, 7), (8, 8)",
    "DELETE FROM {t} WHERE id = 5",
    "INSERT OVERWRITE {t} VALUES (1, 1), (7, 7)",
    "ALTER TABLE {t} CREATE TAG marked",
    "ALTER TABLE {t} RENAME COLUMN amount TO old",
    "ALTER TABLE {t} ADD COLUMN amount INT",
    "ALTER TABLE {t} ALTER COLUMN old TYPE BIGINT",
    "!ALTER TABLE {t} DROP COLUMN nothing",
    "DELETE FROM {t} WHERE true",
]


def test_both_do_the_same_with_a_plain_table(spark_world: SparkWorld, memory_world: MemoryWorld) -> None:
    real, model = Side(spark_world), Side(memory_world)
    for place, line in enumerate(PLAIN):
        told = real.run(place, line)
        assert (told == "refused") == line.startswith("!"), line
        assert model.run(place, line) == told, line
        shown = quote_all([column.name for column in real.state().columns])
        assert model.described(shown) == real.described(shown), line


@pytest.mark.parametrize("text", ["plain", "it's", 'quo"te', "back\\slash", "new\nline", "$x", "水"])
def test_text_comes_back_as_it_was(memory_world: MemoryWorld, text: str) -> None:
    from dbt_arctic.keyed.names import literal

    sql = f"SELECT concat({literal('__' + text)}, {literal('____')})"
    assert memory_world.query(sql) == [(f"__{text}____",)]
