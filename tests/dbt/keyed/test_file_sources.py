"""Files as a source: each is read once, by each model, whatever ends the run."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import yaml
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection

from .conftest import Shop
from .kafka_topics import add_reader

COLUMNS = {"id": "bigint", "city": "string", "amount": "decimal(10,2)", "day": "date"}
KEYED = "{{{{ config(materialized='incremental', unique_key='id') }}}}"
PULL = (
    "select id, city, amount, day, _source_file "
    "from {{{{ incremental_pull(source('landing', '{source}')) }}}}"
)


def declare(shop: Shop, **sources: dict[str, Any]) -> None:
    fresh = {"warn_after": {"count": 9999, "period": "day"}}
    tables = [
        {"name": name, "config": {"meta": {"arctic": made}, "freshness": fresh}}
        for name, made in sources.items()
    ]
    text = {"version": 2, "sources": [{"name": "landing", "schema": shop.schema, "tables": tables}]}
    shop.file("models/landing.yml", yaml.safe_dump(text, sort_keys=False))


def land(shop: Shop, path: str, rows: Iterable[dict[str, Any]]) -> Path:
    shop.file(f"landing/{path}", "".join(json.dumps(row) + "\n" for row in rows))
    return shop.folder / "landing" / path


def clicks(shop: Shop, **settings: Any) -> dict[str, Any]:
    return {"from": "files", "path": "landing/clicks", "format": "json", "columns": COLUMNS, **settings}


def model(shop: Shop, name: str, source: str = "clicks", head: str = KEYED) -> None:
    shop.model(name, (head + "\n" + PULL.format(source=source)).replace("{{{{", "{{").replace("}}}}", "}}"))


def row(number: int, city: str = "Oslo", amount: float = 1.5) -> dict[str, Any]:
    return {"id": number, "city": city, "amount": amount}


def ids(shop: Shop, table: str) -> list[int]:
    return sorted(row[0] for row in shop.sql(f"SELECT id FROM {{s}}.{table}"))


def test_each_file_is_read_once(shop: Shop) -> None:
    declare(shop, clicks=clicks(shop))
    model(shop, "by_key")
    model(shop, "appended", head="{{{{ config(materialized='incremental') }}}}")
    first = land(shop, "clicks/day=2026-01-01/a b%20+c[d]{e,f}*?.json", [row(1), row(2)])
    modified = first.stat().st_mtime_ns
    land(shop, "clicks/_writing.json", [row(99)])
    land(shop, "clicks/day=2026-01-01/.hidden", [row(98)])
    shop.dbt("run")
    assert ids(shop, "by_key") == ids(shop, "appended") == [1, 2]
    (file, day), *_ = shop.sql("SELECT DISTINCT _source_file, CAST(day AS STRING) FROM {s}.by_key")
    assert (file, day) == (str(first), "2026-01-01")

    shop.dbt("run")  # nothing is new: nothing is written, and no job runs
    assert ids(shop, "appended") == [1, 2]
    assert shop.script.jobs == 0

    os.utime(first, (1_800_000_000, 1_800_000_000))
    shop.dbt("source", "freshness")
    assert shop.script.ran == []
    (source,) = json.loads((shop.folder / "target" / "sources.json").read_text())["results"]
    assert source["max_loaded_at"].startswith("2027-01-15T08:00:00")
    os.utime(first, ns=(0, modified))

    # An older time of modification hides no file, and an empty one is a file.
    late = land(shop, "clicks/day=2025-12-31/late.json", [row(3), row(1, "Rome")])
    os.utime(late, (1, 1))
    land(shop, "clicks/day=2025-12-31/empty.json", [])
    # In one read with the other files, Spark would silently leave out rows of files in other folders.
    loose = land(shop, "clicks/loose.json", [{**row(5), "day": "2026-02-02"}])
    deeper = land(shop, "clicks/more/day=2026-01-03/shop=7/deeper/e.json", [row(6)])
    shop.dbt("run", "--select", "by_key")
    days = "SELECT _source_file, CAST(day AS STRING) FROM {s}.by_key WHERE id > 4 ORDER BY id"
    assert shop.sql(days) == [(str(loose), "2026-02-02"), (str(deeper), "2026-01-03")]
    consumed = json.loads(shop.log("by_key")[0].summary["arctic.consumed"])
    assert list(consumed) == [f"lake.{shop.schema}.by_key__landing__clicks__files"]
    assert ids(shop, "by_key") == [1, 2, 3, 5, 6]
    assert shop.sql("SELECT city, amount FROM {s}.by_key WHERE id = 1")[0][0] == "Rome"
    shop.dbt("run")
    assert ids(shop, "appended") == [1, 1, 2, 3, 5, 6]

    shop.dbt("run", "--full-refresh", "--select", "appended")
    assert ids(shop, "appended") == [1, 1, 2, 3, 5, 6]
    shown = shop.dbt("show", "--select", "appended", "--output", "json")
    assert shown is not None
    land(shop, "clicks/day=2026-01-02/d.json", [row(4)])
    shop.dbt("compile")
    shop.dbt("run", "--empty")
    # It would append all rows, and the next run again. By key, the next run would be a full refresh.
    shop.dbt("run", "--sample", "3 days")
    assert 4 not in ids(shop, "appended") + ids(shop, "by_key")

    # A wider type and a new field are declared, and the model's on_schema_change applies them.
    wider = {**COLUMNS, "amount": "decimal(20,2)", "more": "string"}
    declare(shop, clicks=clicks(shop, columns=wider))
    shop.model(
        "appended",
        "{{ config(materialized='incremental', on_schema_change='sync_all_columns') }}\n"
        "select id, city, amount, more, day, _source_file\n"
        "from {{ incremental_pull(source('landing', 'clicks')) }}",
    )
    land(shop, "clicks/day=2026-01-02/e.json", [{**row(7, amount=1e15), "more": "x"}])
    shop.dbt("run", "--select", "appended")
    assert ids(shop, "appended") == [1, 1, 2, 3, 4, 5, 6, 7]
    found = shop.sql("SELECT id, CAST(amount AS STRING), more FROM {s}.appended WHERE id IN (4, 7)")
    assert sorted(map(tuple, found)) == [(4, "1.50", None), (7, "1000000000000000.00", "x")]

    # A table that another program has replaced does not record which files its rows are from.
    shop.sql("CREATE OR REPLACE TABLE {s}.appended USING iceberg AS SELECT * FROM {s}.appended")
    told = shop.fail("run", "--select", "appended")
    assert "it is not known what was read of the source landing.clicks" in told
    assert "dbt run --full-refresh --select appended" in told
    assert ids(shop, "appended") == [1, 1, 2, 3, 4, 5, 6, 7]
    # But one that the model itself has filled from elsewhere begins with all files.
    pull = "select id from {{ incremental_pull(source('landing', 'clicks')) }}"
    shop.model(
        "appended",
        "{{ config(materialized='incremental') }}\n"
        f"{{% if is_incremental() %}}{pull}{{% else %}}select 99L as id{{% endif %}}",
    )
    shop.dbt("run", "--select", "appended", "--full-refresh")
    shop.dbt("run", "--select", "appended")
    assert ids(shop, "appended") == [1, 1, 2, 3, 4, 5, 6, 7, 99]


def test_a_file_that_changed_or_is_gone_fails_the_run(shop: Shop) -> None:
    declare(shop, clicks=clicks(shop), again=clicks(shop, changed_files="reread"))
    model(shop, "strict")
    model(shop, "lenient", source="again")
    file = land(shop, "clicks/day=2026-01-01/a.json", [row(1)])
    shop.dbt("run")
    land(shop, "clicks/day=2026-01-01/a.json", [row(1, "Rome"), row(2)])
    told = shop.fail("run")
    assert "AR-310 a file of the source landing.clicks changed" in told
    assert str(file) in told
    assert "--full-refresh --select strict" in told
    assert ids(shop, "strict") == [1]
    assert ids(shop, "lenient") == [1, 2]
    shop.dbt("run", "--full-refresh", "--select", "strict")
    assert ids(shop, "strict") == [1, 2]

    # Away during a full refresh, and back with its old time.
    other = land(shop, "clicks/day=2026-01-01/other.json", [row(3)])
    shop.dbt("run")
    aside = other.rename(shop.folder / "other.json")
    shop.dbt("run", "--full-refresh", "--select", "strict")
    assert ids(shop, "strict") == [1, 2]
    aside.rename(other)
    shop.dbt("run")
    assert ids(shop, "strict") == ids(shop, "lenient") == [1, 2, 3]


def test_a_row_that_does_not_fit_fails_the_run_and_names_the_file(shop: Shop) -> None:
    declare(
        shop,
        clicks=clicks(shop),
        table={
            "from": "files",
            "path": "landing/csv",
            "format": "csv",
            "columns": {"id": "bigint", "city": "string", "amount": "double", "day": "date"},
        },
        undeclared={"from": "files", "path": "landing/clicks", "format": "json"},
    )
    model(shop, "clicked")
    model(shop, "tabular", source="table")
    model(shop, "unknown", source="undeclared")
    shop.model(
        "direct", "{{ config(materialized='table') }} select id from {{ source('landing', 'clicks') }}"
    )
    shop.model("directly", KEYED.format() + " select id from {{ source('landing', 'clicks') }}")
    others = ("--exclude", "unknown", "direct", "directly")
    land(shop, "clicks/day=2026-01-01/a.json", [row(1)])
    shop.file("landing/csv/day=2026-01-01/a.csv", "id,city,amount\n1,Oslo,1.5\n")
    shop.dbt("run", *others)
    assert ids(shop, "tabular") == [1]
    bad = land(shop, "clicks/day=2026-01-01/bad.json", [row(2), {"id": "x2"}])
    swapped = shop.folder / "landing/csv/day=2026-01-01/swapped.csv"
    swapped.write_text("city,id,amount\nRome,2,2.5\n")
    told = shop.refusals("run", *others)
    for name, file in (("clicked", bad), ("tabular", swapped)):
        assert "AR-311" in told[name]
        assert str(file) in told[name]
    assert ids(shop, "clicked") == ids(shop, "tabular") == [1]
    bad.write_text(json.dumps(row(2)) + "\n")  # corrected before it was read
    swapped.write_text("id,city,amount\n2,Rome,2.5\n")
    shop.dbt("run", *others)
    assert ids(shop, "clicked") == ids(shop, "tabular") == [1, 2]
    told = shop.refusals("run", "--select", "unknown", "direct", "directly")
    assert "columns: {amount: double, city: string, id: bigint, day: date}" in told["unknown"]
    for name in ("direct", "directly"):
        assert "AR-306 the source landing.clicks is a folder of files" in told[name]
        assert "{{ incremental_pull(source('landing', 'clicks')) }}" in told[name]


def test_a_run_that_ends_anywhere_reads_no_file_twice_and_loses_none(shop: Shop) -> None:
    declare(shop, clicks=clicks(shop))
    head = "{{{{ config(materialized='incremental') }}}}"
    names = [f"m{at}" for at in range(12)]
    for name in names:
        model(shop, name, head=head)
    land(shop, "clicks/day=2026-01-01/a.json", [row(1)])
    shop.dbt("run")
    land(shop, "clicks/day=2026-01-01/b.json", [row(2)])
    shop.end({name: (at, False) for at, name in enumerate(names)})
    assert not shop.try_dbt("run").success
    shop.end({})
    shop.dbt("run")
    assert {name: ids(shop, name) for name in names} == {name: [1, 2] for name in names}


def test_a_clone_reads_on_from_its_original_and_takes_nothing_from_it(shop: Shop) -> None:
    kept = clicks(shop, on_bad_row="quarantine", required=["id"])
    declare(shop, clicks=kept)
    model(shop, "by_key")
    model(shop, "appended", head="{{{{ config(materialized='incremental') }}}}")
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profile["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))
    first = land(shop, "clicks/day=2026-01-01/a.json", [row(1)])
    shop.dbt("run")
    state = shop.folder / "state"
    state.mkdir()
    shutil.copy(shop.folder / "target" / "manifest.json", state)

    def read(schema: str, name: str) -> tuple[list[int], int]:
        rejected = [*shop.sql(f"SHOW TABLES IN lake.{schema} LIKE '{name}__rejected'")]
        count = shop.sql(f"SELECT count(*) FROM lake.{schema}.{name}__rejected")[0][0] if rejected else 0
        return sorted(row[0] for row in shop.sql(f"SELECT id FROM lake.{schema}.{name}")), count

    first.unlink()
    for at, rejected in enumerate((1, 2)):  # a clone that rejects its first row, and one that has some
        shop.dbt("clone", "--state", str(state), "--target", "ci", "--full-refresh")
        land(shop, f"clicks/day=2026-01-01/b{at}.json", [row(2 + at), {"city": "Oslo"}])
        expected = list(range(1, 3 + at)), rejected
        for target, schema in (("ci", f"{shop.schema}_ci"), ("dev", shop.schema)):
            shop.dbt("run", "--target", target)
            assert read(schema, "by_key") == read(schema, "appended") == expected
    # What the former clone has read, and the original has lost since, is no loss of the next clone.
    for old in (shop.folder / "landing").rglob("*.json"):
        old.unlink()
    land(shop, "clicks/day=2026-01-02/c.json", [row(4)])
    shop.dbt("run", "--full-refresh")
    shop.dbt("clone", "--state", str(state), "--target", "ci", "--full-refresh")
    land(shop, "clicks/day=2026-01-02/d.json", [row(5)])
    shop.dbt("run", "--target", "ci")
    assert read(f"{shop.schema}_ci", "by_key")[0] == read(f"{shop.schema}_ci", "appended")[0] == [4, 5]


def test_avro_and_compressed_files_are_read_and_two_sources_in_one_model(
    shop: Shop, shop_connection: SessionConnection, tmp_path: Path
) -> None:
    add_reader(shop_connection, tmp_path, "avro")
    landing = shop.folder / "landing"
    lines = "".join(json.dumps(row(number)) + "\n" for number in (1, 2)).encode()
    (landing / "clicks/day=2026-01-01").mkdir(parents=True)
    (landing / "clicks/day=__HIVE_DEFAULT_PARTITION__").mkdir()
    (landing / "clicks/day=2026-01-01/a.json.bz2").write_bytes(bz2.compress(lines))
    (landing / "clicks/day=2026-01-01/b.json.gz").write_bytes(gzip.compress(lines))
    zst = landing / "clicks/day=__HIVE_DEFAULT_PARTITION__/c.json.zst"
    with pa.CompressedOutputStream(str(zst), "zstd") as written:
        written.write(lines)
    made = shop_connection.session.sql(
        "SELECT id, 'Lima' AS city, named_struct('a', id) AS more FROM range(3, 5)"
    )
    made.coalesce(1).write.format("avro").save(str(landing / "boxes"))
    boxes = {"id": "bigint", "city": "string", "more": "struct<a: bigint>", "missing": "date"}
    declare(
        shop,
        clicks={**clicks(shop), "positions": True},
        boxes={
            "from": "files",
            "path": "landing/boxes",
            "format": "avro",
            "columns": boxes,
            "positions": True,
        },
    )
    shop.model(
        "both",
        "{{ config(materialized='incremental', incremental_strategy='append') }}\n"
        "select id, city, day, _source_position as at\n"
        "from {{ incremental_pull(source('landing', 'clicks')) }}\n"
        "union all\n"
        "select more.a, city, missing, _source_position\n"
        "from {{ incremental_pull(source('landing', 'boxes')) }}",
    )
    shop.dbt("run")
    shop.dbt("run")
    assert ids(shop, "both") == [1, 1, 1, 2, 2, 2, 3, 4]
    assert all(id_ == at + 2 * (id_ > 2) for id_, at in shop.sql("SELECT id, at FROM {s}.both"))
    found = shop.sql("SELECT DISTINCT city, CAST(day AS STRING) FROM {s}.both")
    assert sorted(map(tuple, found), key=repr) == [("Lima", None), ("Oslo", "2026-01-01"), ("Oslo", None)]


def test_what_ingest_init_writes_loads_the_files_as_they_are(shop: Shop) -> None:
    names = {"id": "id", "zip": "zip", "odd name": "odd name", "amount": "amount"}
    rows = [
        {"id": "1", "zip": "00501", "odd name": 'a "b"; \nc', "amount": "2.50"},
        {"id": "2", "zip": "10001", "odd name": "\\", "amount": "-3.00"},
        {"id": "3", "zip": "", "odd name": "Zo\u00eb, x", "amount": "12345.67"},
    ]
    landing = shop.folder / "landing"
    for name, delimiter, encoding in (
        ("plain", ",", "utf-8"),
        ("other", ";", "latin-1"),
        ("bom", "\t", "utf-8-sig"),
    ):
        text = io.StringIO()
        writer = csv.DictWriter(text, names, delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
        (landing / name).mkdir(parents=True)
        (landing / name / "1.csv.gz").write_bytes(gzip.compress(text.getvalue().encode(encoding)))
    (landing / "array.json").write_text(json.dumps([{"n": 1, "s": {"a": [1, 2.5]}}, {"n": 2, "s": None}]))
    table = pa.table({"id": pa.array([1, 2**32 - 1], pa.uint32()), "x": pa.array([1.5, None])})
    pa.parquet.write_table(table, landing / "columns.parquet")
    pa.orc.write_table(table.cast(pa.schema([("id", pa.int64()), ("x", pa.float64())])), landing / "rows.orc")
    (landing / "log.txt").write_text("line 1\n\nline 3\n")
    words = ["ingest", "init", "landing", "--project-dir", str(shop.folder)]
    written = CliRunner().invoke(main, words)
    assert written.exit_code == 0, written.output
    shop.dbt("build", "--select", "models/landing")
    for name in ("plain", "other", "bom"):
        texts = "CAST(id AS STRING), nvl(zip, ''), `odd name`, CAST(amount AS STRING)"
        found = shop.sql(f"SELECT {texts} FROM {{s}}.{name} ORDER BY id")
        assert [list(row) for row in found] == [list(row.values()) for row in rows], name
    assert [list(row) for row in shop.sql("SELECT n, s.a FROM {s}.array ORDER BY n")] == [
        [1, [1.0, 2.5]],
        [2, None],
    ]
    for name in ("columns", "rows"):
        found = shop.sql(f"SELECT id, x FROM {{s}}.{name} ORDER BY id")
        assert [tuple(row) for row in found] == [(1, 1.5), (2**32 - 1, None)]
    assert shop.sql("SELECT count(*), count(DISTINCT value) FROM {s}.log")[0] == (3, 3)
