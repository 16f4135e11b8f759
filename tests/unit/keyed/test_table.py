"""A keyed table as properties of its view, and what a listing hides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_arctic.errors import DamagedKeyedTable, NewerProtocol
from dbt_arctic.keyed import create, write
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.table import (
    PROTOCOL,
    Column,
    Generation,
    KeyedTable,
    from_properties,
    hides,
    is_keyed,
    side_generation,
)

NAME = Name("lake", "shop", "orders")


def keyed(**parts: object) -> KeyedTable:
    settings = {
        "name": NAME,
        "generation": Generation(3, "b3", "c3"),
        "key": ("id", "Ünïcode"),
        "layout": Layout(8, "id", ("day(at)",), ("id",)),
        "columns": (Column("id", "bigint", "it's the id"), Column("Ünïcode", "string")),
        "owner": "model.shop.orders",
        "previous": Generation(1, "b1", "c1"),
        **parts,
    }
    return KeyedTable(**settings)  # type: ignore[arg-type] # mypy sees objects only


@pytest.mark.parametrize("previous", [None, Generation(1, "b1", "c1"), Generation(1, "b1", "c1", "at")])
@pytest.mark.parametrize("sequence_by", [None, "id"])
@pytest.mark.parametrize("root", ["orders", "renamed"])
def test_a_table_survives_the_properties_of_its_view(
    previous: Generation | None, root: str, sequence_by: str | None
) -> None:
    table = keyed(previous=previous, root=root, generation=Generation(3, "b3", "c3", sequence_by))
    # An older program reads what it knows, and nothing else.
    ordered = sequence_by or (previous and previous.sequence_by)
    assert table.to_properties()["arctic.protocol"] == ("2" if ordered else "1")
    assert from_properties(NAME, table.to_properties(), table.columns) == table


def test_a_renamed_view_still_finds_its_side_tables() -> None:
    renamed = from_properties(Name("lake", "shop", "new"), keyed().to_properties(), ())
    assert renamed.base.identifier == "orders__base_3"
    assert [side.identifier for side in renamed.side_tables] == [
        "orders__base_3", "orders__change_3", "orders__base_1", "orders__change_1",
    ]  # fmt: skip


def test_a_listing_hides_side_tables_of_every_generation_and_nothing_else() -> None:
    properties = keyed().to_properties()
    hidden = ["orders__base_3", "orders__change_3", "orders__base_1", "orders__change_4"]
    # Generation 2 was abandoned: neither the current nor the previous one.
    hidden.append("orders__base_2")
    assert [name for name in hidden if not hides(properties, name)] == []
    shown = [
        "orders",
        "orders__base_x",
        "orders__base",
        "other__base_3",
        "orders__base_3_old",
        "xorders__base_3",
    ]
    assert [name for name in shown if hides(properties, name)] == []
    assert not hides({}, "orders__base_3")


def test_a_view_is_keyed_only_while_its_protocol_is_written() -> None:
    assert is_keyed(keyed().to_properties())
    assert not is_keyed({})
    assert not is_keyed({"arctic.protocol": ""})


def test_a_newer_protocol_requires_an_upgrade() -> None:
    with pytest.raises(NewerProtocol, match="pip install"):
        from_properties(NAME, {**keyed().to_properties(), "arctic.protocol": str(PROTOCOL + 1)}, ())


NEEDED = ("arctic.base", "arctic.base-id", "arctic.key", "arctic.layout", "arctic.generation")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in NEEDED),
        *((name, "garbage") for name in NEEDED if name != "arctic.base-id"),  # any text is an id
    ],
)
def test_unreadable_properties_ask_for_a_full_refresh(name: str, value: str | None) -> None:
    properties = keyed().to_properties()
    if value is None:
        del properties[name]
    else:
        properties[name] = value
    with pytest.raises(DamagedKeyedTable, match="--full-refresh --select orders"):
        from_properties(NAME, properties, ())


def test_side_names_are_read_back_as_they_were_made() -> None:
    assert side_generation(NAME, "orders__base_12") == 12
    assert side_generation(Name("l", "s", "orders__base_1"), "orders__base_1__change_2") == 2
    assert side_generation(NAME, "orders__base_1__change_2") is None


@given(st.text(max_size=30))
def test_no_text_gets_out_of_a_literal(text: str) -> None:
    made = literal(text)
    body = made[1:-1]
    at = 0
    while at < len(body):
        assert body[at] != "'"
        at += 2 if body[at] == "\\" else 1
    assert at == len(body), "a backslash took the closing quote"


@given(st.text(min_size=1, max_size=30))
def test_no_text_gets_out_of_an_identifier(text: str) -> None:
    assert quote(text)[1:-1].replace("``", "") == text.replace("`", "")


def test_base_and_change_share_a_layout_and_know_whose_they_are() -> None:
    table = keyed()
    for ddl in (create.create_base(table, 5, {}), create.create_change(table, 5)):
        assert "PARTITIONED BY (day(`at`), bucket(8, `id`))" in ddl
        assert "'arctic.of' = 'lake.shop.orders'" in ddl
        assert "'format-version' = '3'" in ddl
    assert "'arctic.id' = 'b3'" in create.create_base(table, 5, {"arctic.id": "stolen"})


@pytest.mark.parametrize(
    "type_", ["int", "decimal(4,2)", "string", "date", "timestamp", "timestamp_ntz", "binary"]
)
def test_markers_have_a_value_only_in_the_bucket_column(type_: str) -> None:
    table = keyed(columns=(Column("id", type_), Column("Ünïcode", "map<string,int>")))
    sql = write.mark_buckets(table, {"arctic.run": "r"})
    assert "CAST(NULL AS map<string,int>)" in sql
    assert "system.bucket(8, `id`)" in sql
    assert "'-U', 0L, 0L" in sql
    # A single task writes them all: neither the numbers nor the rows are shuffled.
    assert "FROM range(0, 192, 1, 1)" in sql
    assert "`use-table-distribution-and-ordering`='false'" in sql
    assert "`fanout-enabled`='true'" in sql


ONE_AFTER_THE_OTHER = "`fanout-enabled`='false'"


def written_statements(layout: Layout) -> list[str]:
    """The statements that write the rows of batches into a table with a layout."""
    table = keyed(layout=layout)
    batch = Batch("orders", "SELECT 1", table.key, table.column_names, table.column_names)
    return [
        write.fill_base(table, batch, {}),
        write.insert_into_change(table, batch, 1, {}, cores=2),
        write.insert_into_change(table, batch, 1, {}, cores=2, in_one_task=True),
        write.insert_rows(table, 1, {}, "SELECT 1", "b"),
        write.fill_tombstones(table, batch, 1, {}),
    ]


def test_a_write_to_partitions_has_one_open_file_in_a_task() -> None:
    layout, partitioned = Layout(8, "id"), Layout(8, "id", ("id",))
    assert all(ONE_AFTER_THE_OTHER not in sql for sql in written_statements(layout))
    assert all(ONE_AFTER_THE_OTHER in sql for sql in written_statements(partitioned))
    # MERGE takes no options, so compaction follows the property of the base table.
    fanout = "'write.spark.fanout.enabled' = '{}'"
    assert fanout.format("true") in create.create_base(keyed(layout=layout), 0, {})
    assert fanout.format("false") in create.create_base(keyed(layout=partitioned), 0, {})
