"""Rows of files that do not fit: they fail the run, are stored in a table, or are counted."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from dbt_arctic.adapter.process_modes import REPLAYING
from dbt_arctic.cli.main import main

from .conftest import Shop
from .test_file_sources import declare, model

COLUMNS = {"id": "bigint", "city": "string", "amount": "decimal(10,2)", "day": "date"}
GOOD = [{"id": 1, "city": "Oslo", "amount": 1.5}, {"id": 2, "city": "Rome", "amount": 2.5}]
BAD = [
    '{"id": 3, "city": "Bonn", "amount": "much"}',
    "no json",
    '{"id": "x4", "city": "Kiev", "amount": [4]}',
    '{"city": "Lyon", "amount": 5, "extra": 1}',
    "[1]",
]
"""The fourth one is valid, but has no key."""
ERRORS = [
    "the value of amount is not a decimal(10,2)",
    "the row is not a valid JSON object",
    "the value of id is not a bigint; the value of amount is not a decimal(10,2)",
    "the required column id is missing or NULL",
    "the row is not a valid JSON object",
]
APPENDED = "{{{{ config(materialized='incremental') }}}}"


def source(policy: str, path: str = "clicks", **settings: Any) -> dict[str, Any]:
    return {
        "from": "files",
        "path": f"landing/{path}",
        "format": "json",
        "columns": COLUMNS,
        "required": ["id"],
        "on_bad_row": policy,
        **settings,
    }


def arctic(shop: Shop, *arguments: str) -> Any:
    """Run a command of ``dbt-arctic``; returns the JSON that it prints, or the text."""
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    result = CliRunner().invoke(main, [*arguments, *folders])
    assert result.exit_code == 0, result.output + repr(result.exception)
    return json.loads(result.stdout) if "--json" in arguments else result.stdout


def land_texts(shop: Shop, path: str, texts: list[str]) -> str:
    shop.file(f"landing/{path}", "".join(f"{text}\n" for text in texts))
    return str(shop.folder / "landing" / path)


def rejected(shop: Shop, name: str) -> list[tuple[Any, ...]]:
    columns = "location, position, error, raw, row_count"
    return sorted(map(tuple, shop.sql(f"SELECT {columns} FROM {{s}}.{name}__rejected")), key=repr)


def ids(shop: Shop, name: str) -> list[int]:
    return sorted(row[0] for row in shop.sql(f"SELECT id FROM {{s}}.{name}"))


def test_rows_that_do_not_fit_are_stored_counted_or_fail_the_run(shop: Shop) -> None:
    declare(
        shop,
        kept=source("quarantine"),
        dropped=source("drop"),
        strict=source("fail", required=[]),
        needed=source("fail", path="needed"),
        table=source("quarantine", path="csv", format="csv", required=["city"]),
    )
    for name in ("kept", "dropped"):
        model(shop, name, source=name, head=APPENDED)
    for name in ("table", "strict", "needed"):
        model(shop, name, source=name)
    shop.file(
        "macros/gone.sql",
        "{% macro gone(schema, name) %}"
        "{% do adapter.drop_relation(adapter.get_relation('lake', schema, name)) %}{% endmacro %}",
    )
    mixed = [json.dumps(GOOD[0]), *BAD[:2], "", json.dumps(GOOD[1]), *BAD[2:]]
    file = land_texts(shop, "clicks/day=2026-01-01/a.json", mixed)
    land_texts(shop, "needed/day=2026-01-01/a.json", [json.dumps(GOOD[0]), BAD[3]])
    rows = ["id,city,amount", "1,Oslo,1.5", "2,Rome", '3,"Bonn",much', "4,,4.0", "", "5,Lyon,5.0"]
    table = land_texts(shop, "csv/day=2026-01-01/a.csv", rows)

    outcome = shop.try_dbt("run")
    told = {result.node.name: str(result.message) for result in outcome.result.results}
    assert f"row 2 of {file} does not fit the columns of its source: {ERRORS[0]}" in told["strict"]
    assert f"the row is {BAD[0]}" in told["strict"]
    assert (
        "a.json does not fit the columns of its source: the required column id is missing" in told["needed"]
    )
    assert "landing/needed/day=2026-01-01/a.json, row 2" in told["needed"]
    assert ids(shop, "kept") == ids(shop, "dropped") == [1, 2]
    assert ids(shop, "table") == [1, 5]
    expected = [
        (file, at, error, raw, 1) for at, error, raw in zip((2, 3, 5, 6, 7), ERRORS, BAD, strict=True)
    ]
    # Of a row that could be parsed, only the declared columns are known.
    expected[3] = (*expected[3][:3], '{"city":"Lyon","amount":5.00}', 1)
    assert rejected(shop, "kept") == sorted(expected, key=repr)
    assert rejected(shop, "dropped") == sorted(
        [
            (file, None, ERRORS[0], None, 1),
            (file, None, ERRORS[1], None, 2),
            (file, None, ERRORS[2], None, 1),
            (file, None, ERRORS[3], None, 1),
        ],
        key=repr,
    )
    assert rejected(shop, "table") == [
        (table, 2, "the row is not a valid line of 3 values", "2,Rome", 1),
        (table, 3, "the value of amount is not a decimal(10,2)", '3,"Bonn",much', 1),
        (table, 4, "the required column city is missing or NULL", "4,,4.00", 1),
    ]

    by_table = {entry["table"].rpartition(".")[2]: entry for entry in arctic(shop, "status", "--json")}
    assert by_table["kept"]["rejected"] == [{"source": "landing.kept", "rows": 5, "dropped": 0}]
    assert by_table["dropped"]["rejected"] == [{"source": "landing.dropped", "rows": 0, "dropped": 5}]
    assert by_table["kept__rejected"]["rejected"] == []

    listed = arctic(shop, "expire", "--dry-run", "--json")
    names = {one["table"].rpartition(".")[2] for one in listed}
    assert {"kept", "kept__rejected", "kept__landing__kept__files"} <= names

    # A run without bad rows leaves the rejected ones, and a full refresh finds them again.
    land_texts(shop, "clicks/day=2026-01-01/b.json", ['{"id": 9}'])
    shop.dbt("run", "--select", "kept")
    assert ids(shop, "kept") == [1, 2, 9]
    shop.dbt("run", "--full-refresh", "--select", "kept")
    assert rejected(shop, "kept") == sorted(expected, key=repr)
    state = shop.catalog.load_table(shop.schema, "kept")
    assert state is not None
    assert len(json.loads(state.history()[0].summary["arctic.consumed"])) == 2

    # Erasing a key has to remove the rejected rows, and dropping a model drops them.
    told = arctic(shop, "erase", "table", "--key", "id=1", "--dry-run", "--json")
    assert {"kind": "rejected", "what": "table__rejected"}.items() <= told["in_the_way"][0].items()
    shop.dbt("run-operation", "gone", "--args", json.dumps({"schema": shop.schema, "name": "dropped"}))
    tables = [entry.name for entry in shop.catalog.list_names(shop.schema)]
    assert "kept__rejected" in tables
    assert not {"dropped", "dropped__rejected"} & set(tables)


def test_a_replay_takes_the_rows_that_fit_now_once(shop: Shop) -> None:
    declare(
        shop,
        clicks=source("quarantine", positions=True),
        table=source("quarantine", path="csv", format="csv", options={"sep": ";"}, positions=True),
    )
    model(shop, "appended", head=APPENDED)
    shop.model(
        "both",
        "{{ config(materialized='incremental') }}\n"
        "select id, city, day, _source_file, _source_position as at\n"
        "from {{ incremental_pull(source('landing', 'clicks')) }}\n"
        "union all\n"
        "select id, city, day, _source_file, _source_position\n"
        "from {{ incremental_pull(source('landing', 'table')) }}",
    )
    day = "day=2026-01-01"
    file = land_texts(shop, f"clicks/{day}/a.json", [json.dumps(GOOD[0]), *BAD])
    table = land_texts(shop, f"csv/{day}/a.csv", ["id;city;amount", "7;Graz;x", "8;Wien;1"])
    plan = {(one["model"], one["source"]): one for one in arctic(shop, "ingest", "plan", "--json")}
    assert plan["appended", "landing.clicks"]["files"] == 1
    assert plan["appended", "landing.clicks"]["reads_all"]
    shop.dbt("run")
    assert ids(shop, "both") == [1, 8]
    found = arctic(shop, "ingest", "plan", "--json", "--select", "both")
    assert [(one["source"], one["files"], one["rejected"]) for one in found] == [
        ("landing.clicks", 0, 5),
        ("landing.table", 0, 1),
    ]

    # The types are corrected, and a run that ends before the commit has replayed nothing.
    text = {**COLUMNS, "amount": "string"}
    declare(
        shop,
        clicks=source("quarantine", columns=text, positions=True),
        table=source(
            "quarantine", path="csv", format="csv", options={"sep": ";"}, columns=text, positions=True
        ),
    )
    shop.end({"appended": (6, False)})
    with REPLAYING.on():
        assert not shop.try_dbt("run", "--select", "appended").success
    shop.end({})
    assert ids(shop, "appended") == [1]
    shop.model(
        "appended",
        "{{ config(materialized='incremental', on_schema_change='sync_all_columns') }} "
        "select id, day, _source_file from {{ incremental_pull(source('landing', 'clicks')) }}",
    )
    land_texts(shop, f"clicks/{day}/b.json", ['{"id": 20}'])
    words = arctic(shop, "ingest", "replay").split()
    assert words[-8:] == ["both", "landing.clicks", "5", "4", "both", "landing.table", "1", "0"]
    assert ids(shop, "appended") == [1, 3, 20]
    assert ids(shop, "both") == [1, 3, 7, 8, 20]
    again = shop.sql("SELECT id, city, CAST(day AS STRING), _source_file, at FROM {s}.both WHERE id < 9")
    assert sorted(map(tuple, again)) == [
        (1, GOOD[0]["city"], "2026-01-01", file, 1),
        (3, "Bonn", "2026-01-01", file, 2),
        (7, "Graz", "2026-01-01", table, 1),
        (8, "Wien", "2026-01-01", table, 2),
    ]
    left = [(row[1], row[2]) for row in rejected(shop, "appended")]
    assert sorted(left) == [
        (3, ERRORS[1]),
        (4, "the value of id is not a bigint"),
        (5, ERRORS[3]),
        (6, ERRORS[4]),
    ]
    arctic(shop, "ingest", "replay")
    assert ids(shop, "both") == [1, 3, 7, 8, 20]
    status = {one["table"].rpartition(".")[2]: one for one in arctic(shop, "status", "--json")}
    assert status["both"]["rejected"] == [{"source": "landing.clicks", "rows": 4, "dropped": 0}]

    # A file that was corrected and is read again has no rejected rows of its earlier version.
    declare(
        shop,
        clicks=source("quarantine", columns=text, changed_files="reread"),
        table=source("quarantine", path="csv", format="csv", options={"sep": ";"}, columns=text),
    )
    land_texts(shop, f"clicks/{day}/a.json", [json.dumps(GOOD[0]), BAD[1], '{"id": 30}'])
    shop.dbt("run", "--select", "appended")
    assert [(row[1], row[2]) for row in rejected(shop, "appended")] == [(2, ERRORS[1])]
    assert ids(shop, "appended") == [1, 1, 3, 20, 30]


def test_a_run_that_ends_anywhere_rejects_no_row_twice_and_loses_none(shop: Shop) -> None:
    declare(shop, kept=source("quarantine", required=[]))
    ends = (4, 5, 6, 8)
    names = [f"m{at}" for at in ends]
    for name in names:
        model(shop, name, source="kept", head=APPENDED)
    land_texts(shop, "clicks/day=2026-01-01/a.json", [json.dumps(GOOD[0]), BAD[0]])
    shop.dbt("run")
    land_texts(shop, "clicks/day=2026-01-01/b.json", [BAD[1], json.dumps(GOOD[1])])
    shop.end({name: (at, at % 2 == 0) for name, at in zip(names, ends, strict=True)})
    assert not shop.try_dbt("run").success
    shop.end({})
    shop.dbt("run")
    for name in names:
        assert ids(shop, name) == [1, 2], name
        assert [row[3] for row in rejected(shop, name)] == [BAD[0], BAD[1]], name
    shop.sql("DROP TABLE {s}.m4__rejected")  # the user's decision: its rows are gone
    land_texts(shop, "clicks/day=2026-01-01/c.json", [BAD[2], json.dumps({"id": 3})])
    shop.dbt("run", "--select", "m4")
    assert (ids(shop, "m4"), [row[3] for row in rejected(shop, "m4")]) == ([1, 2, 3], [BAD[2]])
