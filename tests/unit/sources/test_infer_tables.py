"""What a folder of files suggests: tables, columns, types, keys and the dbt files that load them."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.cli.main import main
from dbt_arctic.engine.file_sample import sample_file
from dbt_arctic.errors import ConfigError, MalformedFile
from dbt_arctic.sources.file_settings import parse_source
from dbt_arctic.sources.infer_tables import TableDraft, draft_tables
from dbt_arctic.sources.infer_types import type_of_json, type_of_texts


def drafts(folder: Path) -> dict[str, TableDraft]:
    found = draft_tables(str(folder), list_files(str(folder), {}), partial(sample_file, rows=1000))
    return {table.name: table for table in found}


def write(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20", "0"], "bigint"),
        (["00501", "10001"], "string"),
        (["+49", "1"], "string"),
        ([str(2**63)], "decimal(38, 0)"),
        (["1" * 39], "string"),
        (["1.50", "20.00", "3"], "decimal(18, 2)"),
        (["12345678901234567.89"], "decimal(38, 2)"),
        (["1.5", "2.25"], "double"),
        (["1e3", "2.5"], "double"),
        (["TRUE", "false", None, ""], "boolean"),
        (["2026-02-28", None], "date"),
        (["2026-02-30"], "string"),
        (["2026-01-01", "2026-01-01T10:00:00.123456Z"], "timestamp"),
        (["2026-01-01 25:00:00"], "string"),
        (["1", "x"], "string"),
        ([None, ""], "string"),
    ],
)
def test_texts_have_the_type_that_keeps_them_exactly(values: list[str | None], kind: str) -> None:
    assert type_of_texts(values) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None], "bigint"),
        ([1, 2.5], "double"),
        ([True, False], "boolean"),
        ([True, 1], "string"),
        (["1", "2"], "string"),
        (["2026-01-01T00:00:00Z"], "timestamp"),
        ([[1], [], [2.5]], "array<double>"),
        ([{"a b": 1}, {"c": {"d": "x"}}], "struct<`a b`:bigint,c:struct<d:string>>"),
        ([{}], "string"),
        ([2**70], "decimal(38, 0)"),
        ([None], "string"),
    ],
)
def test_json_values_have_the_type_that_holds_all_of_them(values: list[object], kind: str) -> None:
    assert type_of_json(values) == kind


def test_subfolders_and_beginnings_of_names_are_tables(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        {
            "orders_1.csv": "order_id,amount\n1,2.50\n",
            "orders_2.csv": "order_id,amount\n1,3.50\n",
            "order_items_1.csv": "order_id,line\n1,1\n1,2\n",
            "clicks/day=2026-01-01/a.json": '{"page": "x"}\n',
            "clicks/day=2026-01-02/b.jsonl.gz": gzip.compress(b'{"page": "y", "n": 1}\n'),
            "clicks/_tmp/c.json": "not read",
            "notes.md": "not read",
        },
    )
    found = drafts(folder)
    assert set(found) == {"orders", "order_items", "clicks"}
    assert found["orders"].columns == {"order_id": "bigint", "amount": "decimal(18, 2)"}
    assert found["orders"].key == "order_id"  # twice in the table, but once in each file
    assert found["order_items"].key == ""
    assert found["clicks"].columns == {"page": "string", "n": "bigint", "day": "date"}
    assert (found["clicks"].pattern, found["clicks"].files) == ("", 2)
    for name in ("orders", "order_items"):
        table = found[name]
        source = parse_source(
            f"landing.{name}",
            {"from": "files", "path": str(folder), "format": "csv", "pattern": table.pattern},
            table.columns,
        )
        accepted = {file.path for file in list_files(str(folder), {}) if source.accepts(file.path)}
        assert accepted == {str(path) for path in folder.glob(f"{name}_?.csv")}


def test_files_of_one_kind_are_one_table_named_as_the_folder_or_the_files(tmp_path: Path) -> None:
    rows = "id,n\n1,1\n"
    assert set(drafts(write(tmp_path / "Daily Sales", {"2026-01-01.csv": rows, "2026-01-02.csv": rows}))) == {
        "daily_sales"
    }
    assert set(drafts(write(tmp_path / "cities", {"berlin.csv": rows, "paris.csv": rows}))) == {"cities"}
    assert set(drafts(write(tmp_path / "in", {"Orders-1.csv": rows}))) == {"orders"}
    assert set(drafts(write(tmp_path / "two", {"a.csv": rows, "b.csv": "x\n1\n"}))) == {"a", "b"}
    assert set(drafts(write(tmp_path / "2026", {"1.csv": rows}))) == {"t_2026"}


def test_a_csv_file_says_how_spark_has_to_read_it(tmp_path: Path) -> None:
    quoted = 'id;text\n1;"a ""b"";\nc"\n2;d\n'
    sample = sample_file(str(write(tmp_path, {"a.csv": quoted}) / "a.csv"), "csv", 10)
    assert sample.options == {"sep": ";", "multiLine": "true", "escape": '"'}
    assert sample.rows == [{"id": "1", "text": 'a "b";\nc'}, {"id": "2", "text": "d"}]
    bare = sample_file(str(write(tmp_path, {"b.csv": "1,x\n2,y\n"}) / "b.csv"), "csv", 10)
    assert (bare.columns, bare.options) == (("column_1", "column_2"), {"header": "false"})
    umlauts = sample_file(
        str(write(tmp_path, {"c.csv": "name\nMüller\n".encode("latin-1")}) / "c.csv"), "csv", 10
    )
    assert (umlauts.rows, umlauts.options) == ([{"name": "Müller"}], {"encoding": "iso-8859-1"})
    with pytest.raises(MalformedFile, match="neither UTF-8 nor ISO-8859-1"):
        sample_file(str(write(tmp_path, {"e.csv": "price\n1 €\n".encode("cp1252")}) / "e.csv"), "csv", 10)
    with pytest.raises(MalformedFile, match="the first line has 2 columns, and another has 3"):
        sample_file(str(write(tmp_path, {"d.csv": "a,b\n1,2,3\n"}) / "d.csv"), "csv", 10)


def test_formats_with_types_keep_them(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.uint32()),
            "at": pa.array([1, 2], pa.timestamp("us", "UTC")),
            "local": pa.array([1, 2], pa.timestamp("us")),
            "price": pa.array([None, None], pa.decimal128(12, 3)),
            "tags": pa.array([["a"], []], pa.list_(pa.string())),
        }
    )
    wanted = {
        "id": "bigint",
        "at": "timestamp",
        "local": "timestamp_ntz",
        "price": "decimal(12,3)",
        "tags": "array<string>",
    }
    (tmp_path / "p").mkdir()
    pa.parquet.write_table(table, tmp_path / "p" / "a.parquet")
    found = drafts(tmp_path)["p"]
    assert (found.columns, found.key, found.format) == (wanted, "id", "parquet")
    pa.parquet.write_table(
        table.cast(table.schema.set(0, pa.field("id", pa.string()))), tmp_path / "p" / "b.parquet"
    )
    with pytest.raises(ConfigError, match="the column id has the type"):
        drafts(tmp_path)


def test_a_json_array_is_read_as_one_value(tmp_path: Path) -> None:
    write(tmp_path, {"a.json": json.dumps([{"id": 1}, {"id": 2, "x": None}])})
    found = drafts(tmp_path)["a"]
    assert (found.columns, found.options) == ({"id": "bigint", "x": "string"}, {"multiLine": "true"})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"notes.md": "x"}, "there are no data files"),
        ({"t/a.csv": "x\n1\n", "t/b.json": '{"x": 1}'}, "files of several formats: csv, json"),
        ({"t/a.csv": "x\n1\n", "t/b.csv": "y\n1\n"}, "have different columns"),
        ({"t/a.csv": "_action\n1\n"}, "have a column _action"),
        ({"t/a.csv": "x\n1\n", "t_1.csv": "y\n1\n"}, "two tables with the name t"),
    ],
)
def test_what_cannot_be_one_source_is_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        drafts(write(tmp_path, dict(files)))


def test_the_command_writes_files_for_review_and_changes_none(tmp_path: Path) -> None:
    project = write(tmp_path / "shop", {"dbt_project.yml": "name: shop\n", "models/orders.sql": "select 1"})
    write(
        project,
        {
            "landing/orders/1.csv": "order_id,updated_at,odd name\n1,2026-01-01 10:00:00,x\n",
            "landing/events/1.json": '{"page": "a"}\n',
        },
    )

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(
            main, ["ingest", "init", "landing", *words, "--project-dir", str(project)]
        )
        return result.exit_code, result.output

    code, output = run()
    assert code == 2
    assert "the project has the model orders already" in output
    assert "--prefix" in output
    assert not (project / "models/landing").exists()
    code, output = run("--prefix", "raw_", "--dry-run")
    assert code == 0
    assert not (project / "models/landing").exists()
    code, output = run("--prefix", "raw_")
    assert code == 0, output
    assert "dbt build --select models/landing" in output
    assert "none: rows are only appended" in output
    assert (project / "models/landing/raw_orders.sql").read_text() == (
        "{{ config(materialized='incremental', unique_key='order_id', "
        "deduplicate_by=['updated_at', '_source_modified']) }}\n\n"
        "select\n    order_id,\n    updated_at,\n    `odd name`,\n    _source_file,\n    _source_modified\n"
        "from {{ incremental_pull(source('landing', 'orders')) }}\n"
    )
    assert "strategy='append'" in (project / "models/landing/raw_events.sql").read_text()
    declared = yaml.safe_load((project / "models/landing/landing.yml").read_text())
    [events, orders] = declared["sources"][0]["tables"]
    assert orders["config"]["meta"]["arctic"] == {
        "from": "files",
        "path": "landing/orders",
        "format": "csv",
        "columns": {"order_id": "bigint", "updated_at": "timestamp", "odd name": "string"},
    }
    assert events["name"] == "events"
    assert declared["models"][1] == {
        "name": "raw_orders",
        "columns": [{"name": "order_id", "data_tests": ["unique", "not_null"]}],
    }
    written = (project / "models/landing/landing.yml").read_text()
    code, output = run("--prefix", "raw_")
    assert code == 2
    assert "the project has the file models/landing/landing.yml already" in output
    # A folder that is not one of the models' is no exception.
    write(project, {"drafts/landing.yml": "mine"})
    for into in ("drafts", str(project / "drafts")):
        code, output = run("--prefix", "new_", "--into", into)
        assert code == 2
        assert "landing.yml already" in output
    assert (project / "drafts/landing.yml").read_text() == "mine"
    assert (project / "models/landing/landing.yml").read_text() == written
    assert not list((project / "drafts").glob("*.sql"))
