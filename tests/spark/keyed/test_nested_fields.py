"""Fields inside the columns of a keyed table come, go and get wider types: readers never see half of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from dbt_arctic.compaction.major import compact_major
from dbt_arctic.errors import ConcurrentRun, SchemaChanged
from dbt_arctic.keyed.create import publish_view
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.view_checks import check_columns
from dbt_arctic.store.side_columns import takes_rows
from dbt_arctic.store.state import columns_of
from tests.extent import in_turn

Row = dict[str, Any]
OLD = {"id": "bigint", "s": "struct<a:int,gone:int>", "l": "array<struct<`x y`:struct<b:int>>>"}
NEW = {"id": "bigint", "s": "struct<a:bigint,new:string>", "l": "array<struct<`x y`:struct<b:int,c:int>>>"}
BIG = 2**40


def old(number: int) -> Row:
    return {"id": number, "s": {"a": number, "gone": number}, "l": [{"x y": {"b": number}}]}


def new(number: int, a: int = BIG) -> Row:
    return {"id": number, "s": {"a": a, "new": "n"}, "l": [{"x y": {"b": number, "c": number}}]}


def with_new_fields(row: Row) -> Row:
    """An old row as it reads since the change."""
    items = [{"x y": {"b": item["x y"]["b"], "c": None}} for item in row["l"]]
    return {"id": row["id"], "s": {"a": row["s"]["a"], "new": None}, "l": items}


@pytest.fixture
def boxes(shop: Any) -> Callable[[str], Any]:
    """A table with a row in the base and one in the change table."""

    def made(name: str = "boxes", **config: Any) -> Any:
        table = shop.table(name, OLD, **{"on_schema_change": "sync_all_columns", "buckets": 1, **config})
        table.build([old(1)])
        table.upsert([old(2)])
        return table

    return made


def view_is_plain(boxes: Any) -> bool:
    view = boxes.session.catalog.load_view(boxes.name.schema, boxes.name.identifier)
    return not boxes.table.projected and " ".join(view.sql.split()) in " ".join(
        publish_view(boxes.table).split()
    )


def findings(boxes: Any) -> list[Finding]:
    table, catalog = boxes.table, boxes.session.catalog
    states = (catalog.load_table(side.schema, side.identifier) for side in (table.base, table.change))
    return list(check_columns(table, *states))


def test_a_change_that_is_cut_off_anywhere_is_done_by_the_next_run(
    shop: Any, boxes: Any, troubled: Any
) -> None:
    """With rows in both sides, and a reader, a compaction and the next run after it."""
    before, after = [old(1), old(2)], [with_new_fields(old(1)), with_new_fields(old(2))]
    steps: list[str] = []
    for at, attempt in troubled("die", "lose_the_answer"):
        table = boxes(f"boxes{at}")
        evolved = table.with_types(NEW)
        done = attempt(lambda session, evolved=evolved: evolved.on(session).upsert([new(3)]))
        steps = attempt.session.statements.steps
        shown = table.rows()
        if done:
            assert evolved.rows() == [*after, new(3)]
        elif shown != before:
            assert [row for row in shown if row["id"] != 3] == after
        if table.table.projected:
            base = shop.main.catalog.load_table(table.name.schema, table.table.base.identifier)
            if not takes_rows(base.columns, table.table):
                with pytest.raises(ConcurrentRun, match="changing the columns"):
                    compact_major(shop.main.context, table.name)
            (finding,) = findings(table)
            assert "is not complete" in finding.what
        evolved.upsert([new(3)])
        assert evolved.rows() == [*after, new(3)]
        assert view_is_plain(table)
        assert findings(table) == []
        evolved.compact()
        assert evolved.base_rows() == [*after, new(3)]
        table.upsert([old(4)])
        again = {row["id"]: row["s"] for row in table.rows()}
        assert again == {
            1: {"a": 1, "gone": None},
            2: {"a": 2, "gone": None},
            3: {"a": BIG, "gone": None},
            4: {"a": 4, "gone": 4},
        }, "what was dropped does not come back"
    changed = ["add_columns", "widen_column"]
    dropped = ["drop_columns"] * 2
    assert steps == [
        "publish_view", *changed, *changed, "publish_view", *dropped, "publish_view", "upsert",
    ]  # fmt: skip


def test_columns_without_a_type_get_theirs_wherever_the_run_is_cut_off(shop: Any, troubled: Any) -> None:
    untyped = {"id": "bigint", "n": "void", "s": "struct<a:int,b:void>"}
    typed = {**untyped, "n": "string", "s": "struct<a:int,b:date>"}

    def row(number: int, n: str | None) -> Row:
        return {"id": number, "n": n, "s": {"a": number, "b": None}}

    def without_types(number: int) -> str:
        return f"SELECT {number}L AS id, NULL AS n, named_struct('a', {number}, 'b', NULL) AS s"

    for at, attempt in troubled("die", "lose_the_answer"):
        table = shop.table(f"untyped{at}", untyped, buckets=1)
        table.build_sql(without_types(1))
        table.upsert_sql(without_types(2))
        version, before = table.version, [row(1, None), row(2, None)]
        now = table.with_types(typed)
        attempt(lambda session, now=now: now.on(session).upsert([row(3, "x")]))
        assert [one for one in table.rows() if one["id"] != 3] == before
        if table.table.projected:
            (finding,) = findings(table)
            assert "is not complete" in finding.what
        now.upsert([row(3, "x")])
        assert now.rows() == [*before, row(3, "x")]
        assert now.table.types == typed
        assert view_is_plain(table)
        assert findings(table) == []
        known = columns_of(shop.main.catalog, table.table, version)
        older = merge_on_read(table.table, version, known)
        assert now._sorted(shop.main.read(older, list(typed))) == before
        assert dict(shop.main.context.query_schema(older)) == typed
        now.compact()
        assert now.base_rows() == [*before, row(3, "x")]


def test_older_versions_are_read_with_the_fields_of_today(shop: Any, boxes: Any) -> None:
    """By Iceberg's numbers: a field that was dropped and added again is another one, which they lack."""
    table = boxes()
    consumer = shop.consumer("reader", table, on_schema_change="sync_all_columns")
    consumer.run()
    version = table.version
    evolved = table.with_types(NEW)
    evolved.upsert([new(2)])
    reader = shop.consumer("reader", evolved, on_schema_change="sync_all_columns")
    assert reader.run() == "upserted"
    rows = {row["id"]: row for row in reader.rows()}
    assert rows[2] == {**new(2), "s": {"a": BIG, "new": "n"}, "source": "boxes"}
    table.upsert([old(5)])

    def at(version: Any) -> list[Row]:
        known = columns_of(shop.main.catalog, table.table, version)
        return table._sorted(shop.main.read(merge_on_read(table.table, version, known), list(table.types)))

    assert [row["s"] for row in at(version)] == [{"a": 1, "gone": None}, {"a": 2, "gone": None}]
    assert [row["s"] for row in at(table.version)] == [
        {"a": 1, "gone": None},
        {"a": BIG, "gone": None},
        {"a": 5, "gone": 5},
    ]
    back = shop.consumer("again", table)
    assert back.run() == "built"
    assert [row["s"]["gone"] for row in back.rows()] == [None, None, 5]


STEPS = [
    ("publish_view", 0),
    ("add_columns", 0),
    ("widen_column", 1),
    ("publish_view", 1),
    ("drop_columns", 1),
]


@in_turn("the same change", "the old columns")
def test_of_two_runs_at_once_none_loses_a_row(shop: Any, boxes: Any, ways: Sequence[str]) -> None:
    """The other run comes before a statement of the change. The slower run fails, and is repeated."""
    for number, (step, nth) in enumerate(STEPS):
        other = ways[number % len(ways)]
        table = boxes(f"boxes{number}")
        evolved = table.with_types(NEW)
        session = shop.session()

        def beside(table: Any = table, other: str = other) -> None:
            if other == "the same change":
                table.with_types(NEW).upsert([new(7)])
            else:
                table.upsert([old(7)])

        once(session, step, nth, beside)
        with suppress(ConcurrentRun):
            evolved.on(session).upsert([new(3)])
        assert session.statements.before is None, "there is such a step"
        assert {row["id"] for row in table.rows()} >= {1, 2, 7}
        evolved.upsert([new(3)])
        seven = new(7) if other == "the same change" else with_new_fields(old(7))
        assert evolved.rows() == [with_new_fields(old(1)), with_new_fields(old(2)), new(3), seven]
        assert view_is_plain(table)
        session.connection.close()


def once(session: Any, step: str, nth: int, action: Callable[[], None]) -> None:
    """Let others act right before a step of a session, the n-th of its name."""
    seen: list[str] = []

    def before(now: str) -> None:
        seen.append(now)
        if now == step and seen.count(now) == nth + 1:
            session.statements.before = None
            action()

    session.statements.before = before


def test_types_that_no_column_gets_are_refused(boxes: Any) -> None:
    table = boxes()
    for type_, said in {
        "struct<a:string,gone:int>": "s.a was int, is now string",
        "struct<a:int,gone:array<int>>": "s.gone was int, is now array<int>",
    }.items():
        with pytest.raises(SchemaChanged, match=said):
            table.with_types({**OLD, "s": type_}).upsert([])
    assert table.rows() == [old(1), old(2)]
    assert view_is_plain(table)
