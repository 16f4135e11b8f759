"""Columns that do not fit a plain table are refused before one of them is added or dropped."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import SchemaChanged, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.plain_columns import EvolvedColumns, drop_last, evolve_plain
from dbt_arctic.store.context import Context

TABLE = (Column("id", "bigint"), Column("n", "int"), Column("untyped", "void"))
MODES = ("ignore", "append_new_columns", "sync_all_columns")


class _Recorded:
    """Takes the statements that would be sent to a table with this partitioning."""

    def __init__(self, partitioning: tuple[str, ...] | None = ()) -> None:
        self.steps: list[str] = []
        order = [text.removeprefix("sorted by ") for text in partitioning or () if "sorted" in text]
        columns = [CatalogColumn("day", "date", nullable=False), CatalogColumn("at", "timestamp")]
        state = SimpleNamespace(partitioning=partitioning, sort_order=order, columns=columns)
        self.catalog = SimpleNamespace(
            of=lambda name: SimpleNamespace(load_table=lambda schema, identifier: state)
        )

    def run(self, step: str, sql: str, table: Any = None) -> int:
        self.steps.append(step)
        return 0


def evolve(mode: str, **types: str) -> list[str]:
    recorded = _Recorded()
    produced = tuple(Column(name, type_) for name, type_ in types.items())
    try:
        evolve_plain(cast(Context, recorded), Name("lake", "dev", "orders"), "orders", mode, TABLE, produced)
    except SchemaChanged:
        assert recorded.steps == []
        raise
    return recorded.steps


@pytest.mark.parametrize("mode", MODES)
def test_a_type_that_would_change_values_is_refused(mode: str) -> None:
    with pytest.raises(SchemaChanged, match=r"n .*decimal"):
        evolve(mode, id="bigint", n="decimal(4,1)", untyped="void", more="int")


@pytest.mark.parametrize("mode", MODES)
def test_columns_that_fit_are_not_refused(mode: str) -> None:
    evolve(mode, ID="int", N="int", untyped="struct<a:int>", more="string")


def test_a_collation_is_no_other_type() -> None:
    table = (Column("id", "bigint"), Column("name", "string"))
    produced = (Column("id", "bigint"), Column("name", "string collate UTF8_LCASE"))
    recorded = _Recorded()
    for mode in MODES:
        evolve_plain(cast(Context, recorded), Name("lake", "dev", "t"), "t", mode, table, produced)
    assert recorded.steps == []


def test_a_column_may_be_gone_unless_all_have_to_be_written() -> None:
    with pytest.raises(SchemaChanged, match="n"):
        evolve("ignore", id="bigint")
    for mode in MODES[1:]:
        evolve(mode, id="bigint")


@pytest.mark.parametrize(
    ("partitioning", "is_refused"),
    [
        (("day",), True),
        (("id", "days(`At`)"), True),
        (("truncate(2, at)",), True),
        (("addr.zip",), True),
        (("sorted by at",), True),
        (("days(id)",), False),
        ((), False),
        (None, False),
    ],
)
def test_a_column_of_the_partitioning_is_not_dropped(
    partitioning: tuple[str, ...] | None, is_refused: bool
) -> None:
    kept = Column("id", "bigint")
    dropped = (
        Column("day", "date"),
        Column("at", "timestamp"),
        Column("addr", "struct<zip:int,city:string>"),
    )
    recorded = _Recorded(partitioning)

    def drop() -> None:
        context = cast(Context, recorded)
        found = evolve_plain(
            context, Name("lake", "dev", "t"), "m", "sync_all_columns", (kept, *dropped), (kept,)
        )
        assert found == EvolvedColumns((kept, *dropped), (("day",), ("at",), ("addr",)))

    if not is_refused:
        drop()
        # NULL is allowed where the rows of the batch have it.
        assert recorded.steps == ["drop_not_null"]
        return
    with pytest.raises(SchemaChanged, match="no longer returns") as error:
        drop()
    assert "dbt run --full-refresh --select m" in error.value.fix
    assert recorded.steps == []


BOX = Column("box", "struct<a:int,b:int>")


def test_what_is_dropped_is_there_until_the_batch_is_written() -> None:
    recorded, name = _Recorded(), Name("lake", "dev", "t")
    context = cast(Context, recorded)
    produced = (Column("id", "bigint"), Column("box", "struct<b:int,c:int>"))
    stored = (Column("id", "int"), Column("gone", "int"), BOX)
    found = evolve_plain(context, name, "m", "sync_all_columns", stored, produced)
    assert [one.type for one in found.columns] == ["bigint", "int", "struct<a:int,b:int,c:int>"]
    assert found.dropped == (("box", "a"), ("gone",))
    # The catalog does not say whether a field may be NULL.
    assert recorded.steps == ["add_columns", "widen_column", "drop_not_null"]
    assert drop_last(context, name, "m", found) is None
    assert recorded.steps[3:] == ["drop_columns"]
    first = evolve_plain(context, name, "m", "sync_all_columns", stored, produced, drop_first=True)
    assert first == EvolvedColumns((Column("id", "bigint"), Column("box", "struct<b:int,c:int>")))
    assert recorded.steps[4:] == ["add_columns", "widen_column", "drop_columns"]
    assert drop_last(context, name, "m", first) is None
    assert len(recorded.steps) == 7


def test_a_drop_that_fails_after_the_rows_are_written_is_a_warning() -> None:
    def fail(*given: Any) -> None:
        raise StatementError("Spark rejected the statement", why="it is in use")

    context = cast(Context, SimpleNamespace(run=fail))
    columns = EvolvedColumns((BOX,), (("gone",), ("box", "a")))
    found = drop_last(context, Name("lake", "dev", "t"), "m", columns)
    assert "not all of gone, box.a could be dropped" in str(found)
    assert "it is in use" in str(found)
