"""What a check changes in a table: rows of any types and any number, but nothing that may identify them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.changed_copies import (
    ChangedCopy,
    ReferencedValues,
    change,
    columns_and_rows,
    copied,
    identifying_columns,
    pulled,
)
from dbt_arctic.adapter.declared_tests import Declared
from dbt_arctic.adapter.project import load_target
from dbt_arctic.adapter.random_changes import held_of, taken_of
from dbt_arctic.adapter.target_session import target_session
from dbt_arctic.keyed.names import Name
from tests.dbt.keyed.conftest import Shop
from tests.extent import extent

KINDS = """SELECT id, CAST(127 AS TINYINT) AS tiny, CAST(0.99 AS DECIMAL(2, 2)) AS share,
    CAST('NaN' AS DOUBLE) AS d, CAST(id AS FLOAT) AS f, id % 2 = 0 AS flag, DATE'2026-01-01' AS day,
    TIMESTAMP_NTZ'2026-01-01 10:00:00' AS at,
    X'00' AS bytes, map('a', id) AS m, array(id) AS listed, named_struct('m', map('a', id)) AS s,
    IF(id > 2, concat('t', id % 3), NULL) AS text, CAST(NULL AS STRING) AS nothing FROM range({})"""


def churned(
    shop: Shop,
    source: str,
    rounds: int,
    said: Declared | None = None,
    referring: tuple[ReferencedValues, ...] = (),
    only_new: bool = False,
) -> ChangedCopy:
    with target_session(load_target(shop.folder, shop.folder), "check") as session:
        names = (Name("lake", shop.schema, name) for name in (source, "copied"))
        found = copied(session, *names, 5, said or Declared(), referring)
        for number in range(1, rounds + 1):
            change(session, found, 5 + 1000 * number, only_new, referring)
        return found


def dropped(shop: Shop) -> None:
    for name in ("copied", "copied__waiting", "copied__gone"):
        shop.sql(f"DROP TABLE {{s}}{'__aside' if '__' in name else ''}.{name}")


@pytest.mark.parametrize("rows", extent([12], [0, 1, 2, 12]))
def test_tables_of_any_size_and_types_can_be_changed(shop: Shop, rows: int) -> None:
    shop.source("kinds", KINDS.format(rows))
    # The second round inserts the rows again that the first one has deleted.
    found = churned(shop, "kinds", 2, Declared(keys=[("bytes",)]))
    assert found.identifying >= {"id", "bytes"}
    ids = [row[0] for row in shop.rows("copied", "id")]
    assert len(ids) == len(set(ids))
    assert set(ids) <= set(range(rows))
    assert shop.sql("SELECT count(1) FROM {s}.copied WHERE tiny IS NULL OR day IS NULL OR m IS NULL") == [
        (0,)
    ]
    if rows == 12:
        constant = {"id", "tiny", "nothing", "bytes"}
        others = [column.name for column in found.columns if column.name not in constant]
        counted = ", ".join(f"count(DISTINCT to_json(struct({name})))" for name in others)
        before, after = (shop.sql(f"SELECT {counted} FROM {{s}}.{name}")[0] for name in ("kinds", "copied"))
        assert before != after


def test_a_log_gets_new_rows_and_keeps_all_others(shop: Shop) -> None:
    shop.source("logged", "SELECT id, id % 3 AS kind FROM range(200)")
    counts = []
    for rounds in (0, 2):
        churned(shop, "logged", rounds, only_new=True)
        assert set(shop.rows("copied")) <= set(shop.rows("logged"))
        operations = shop.sql("SELECT DISTINCT operation FROM {s}.copied.snapshots")
        assert operations == [("append",)]
        counts.append(len(shop.rows("copied")))
        dropped(shop)
    assert counts == [180, 190]


def test_what_a_model_pulls_is_a_log() -> None:
    def calls(macros: list[str], *nodes: str) -> Any:
        return SimpleNamespace(depends_on=SimpleNamespace(macros=macros, nodes=list(nodes)))

    macros = {"macro.shop.touched": calls(["macro.shop.touched", "macro.dbt_arctic.incremental_pull"])}
    nodes = [
        calls(["macro.dbt_arctic.incremental_pull"], "source.feed"),
        calls(["macro.shop.touched"], "source.other"),
        calls(["macro.dbt.is_incremental"], "source.plain"),
        SimpleNamespace(name="a seed"),
    ]
    assert pulled(nodes, macros) == {"source.feed", "source.other"}


def test_a_step_takes_a_few_rows_of_a_small_table_and_a_fiftieth_of_a_large_one() -> None:
    assert [taken_of(rows) for rows in (0, 1, 4, 20, 1000)] == [0, 1, 2, 5, 20]
    assert [held_of(rows) for rows in (0, 1, 4, 20, 1000)] == [0, 0, 2, 5, 100]


IDENTIFYING: list[tuple[str, list[tuple[str, ...]], str]] = [
    ("SELECT id AS a, id % 5 AS b, id * 1.5 AS c FROM range(20)", [], "a"),
    ("SELECT id % 5 AS a, id div 5 AS b, id / 7D AS c, id % 2 AS d FROM range(20)", [], "a b"),
    ("SELECT id % 2 AS a, id div 2 % 3 AS b, id div 6 AS c, id % 5 = 0 AS d FROM range(24)", [], "a b c"),
    ("SELECT id % 5 AS a, date_add(DATE'2026-01-01', int(id div 5)) AS b, 1 AS c FROM range(20)", [], "a b"),
    ("SELECT DATE'2026-01-01' + make_dt_interval(CAST(id AS INT)) AS a, 1.5 AS b FROM range(9)", [], "a"),
    ("SELECT id % 5 AS a, id div 5 AS b, id % 4 AS c FROM range(20)", [("A", "b")], "a b"),
    # What a test says of a model need not hold for the source: what identifies a row is looked for.
    ("SELECT id % 5 AS a, id div 5 AS b, 1 AS c FROM range(20)", [("a",)], "a b"),
    ("SELECT id % 5 AS a, id % 5 AS b FROM range(20)", [], "a b"),
]
"""A source, the keys that tests declare, and the columns that no change may touch."""


def test_what_may_identify_a_row_stays(shop: Shop) -> None:
    told = Name("lake", shop.schema, "told")
    with target_session(load_target(shop.folder, shop.folder), "check") as session:
        for sql, keys, identifying in IDENTIFYING:
            shop.sql(f"CREATE OR REPLACE VIEW {{s}}.told AS {sql}")
            columns, rows = columns_and_rows(session, told, Declared())
            found = identifying_columns(session, told, columns, rows, keys)
            assert found == frozenset(identifying.split()), sql


def test_changes_keep_what_tests_say(shop: Shop) -> None:
    shop.source(
        "told",
        "SELECT id, id % 3 AS kind, IF(id = 7, NULL, id * 10) AS n FROM range(40)",
    )
    said = Declared(required={"n"}, listed={"kind"})
    # Rows 0 to 29 are referred to, and no row by a NULL.
    referring = ReferencedValues("id", "SELECT id FROM range(30) UNION ALL SELECT NULL")
    for closed in (True, False):
        churned(shop, "told", 2, said if closed else None, (referring,) if closed else ())
        kinds = {kind for (kind,) in shop.rows("copied", "kind")}
        kept = {number for (number,) in shop.rows("copied", "id")} >= set(range(30))
        nulls = shop.sql("SELECT count_if(n IS NULL) FROM {s}.copied")[0]
        if closed:
            assert (kinds, kept, nulls[0] <= 1) == ({0, 1, 2}, True, True)
            assert shop.sql(
                "SELECT count(1) FROM {s}.copied t JOIN {s}.told USING (id) WHERE NOT t.n <=> told.n"
            )[0][0]
            assert set(range(40)) > {number for (number,) in shop.rows("copied", "id")}
        else:
            # Without, the same changes break each of them.
            assert (kinds > {0, 1, 2}, kept, nulls[0] > 1) == (True, False, True)
        dropped(shop)
