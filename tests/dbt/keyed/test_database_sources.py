"""Tables of PostgreSQL and MariaDB as sources, with real servers on loopback."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection
from tests.matrix.components import PASSWORD

from .conftest import Shop
from .database_servers import KINDS, Server, run, running_server
from .kafka_topics import add_reader
from .test_operator_commands import Terminal

UTC = timezone.utc


@pytest.fixture(scope="module", params=KINDS)
def server(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shop_connection: SessionConnection,
) -> Iterator[Server]:
    with running_server(request.param) as made:
        add_reader(shop_connection, tmp_path_factory.mktemp(request.param), request.param)
        yield made


def declare(shop: Shop, server: Server, password: str = PASSWORD, **tables: dict[str, Any]) -> None:
    """Sources with settings of their own, and the password in the profile."""
    fresh = {"warn_after": {"count": 1, "period": "day"}}
    made = [
        {"name": name, "config": {"meta": {"arctic": one}, "freshness": fresh}}
        for name, one in tables.items()
    ]
    shared = {"from": "jdbc", "url": server.url}
    source = {"name": "crm", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": made}
    shop.file("models/crm.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for output in profile["shop"]["outputs"].values():
        output["jdbc"] = {"crm": {"password": password}}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")


def model(shop: Shop, name: str, table: str, key: str = "id", where: str = "") -> None:
    config = f"unique_key='{key}'" if key else "incremental_strategy='append'"
    taken = "*" if key else "id, name, updated_at"
    shop.model(
        name,
        f"{{{{ config(materialized='incremental', {config}) }}}}\n"
        f"select {taken} from {{{{ incremental_pull(source('crm', '{table}')) }}}} {where}",
    )


POSTGRES_VALUES: list[tuple[str, str, str, Any]] = [
    ("boolean", "true", "boolean", True),
    ("smallint", "-32768", "int", -32768),
    ("bigint", "9223372036854775807", "bigint", 2**63 - 1),
    ("real", "1.5", "float", 1.5),
    ("double precision", "0.1", "double", 0.1),
    ("double precision", "'-Infinity'", "double", float("-inf")),
    (
        "numeric",
        "123456789012345678.123456789012345678",
        "decimal(38,18)",
        "123456789012345678.123456789012345678",
    ),
    ("numeric(10,2)", "12345678.90", "decimal(10,2)", "12345678.90"),
    ("numeric(3,-2)", "12300", "decimal(5,0)", "12300"),
    ("numeric(2,5)", "0.00012", "decimal(5,5)", "0.00012"),
    ("numeric(45,3)", "12345678901234567890.125", "decimal(38,3)", "12345678901234567890.125"),
    ("date", "'2026-02-03'", "date", date(2026, 2, 3)),
    ("timestamp(3)", "'2026-01-02 03:04:05.678'", "timestamp_ntz", datetime(2026, 1, 2, 3, 4, 5, 678000)),
    (
        "timestamptz",
        "'2026-07-02 03:04:05.678901+05:30'",
        "timestamp",
        datetime(2026, 7, 1, 21, 34, 5, 678901, UTC),
    ),
    ("time", "'10:11:12.5'", "string", "10:11:12.5"),
    ("interval", "'1 day 2 hours'", "string", "1 day 02:00:00"),
    ("json", "'{\"a\": 1.50}'", "string", '{"a": 1.50}'),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("bytea", r"'\x00ff'", "binary", b"\x00\xff"),
    ("text", "'it''s \u00e9'", "string", "it's \u00e9"),
    ("char(5)", "'ab'", "string", "ab"),
    ("money", "12.34", "decimal(19,2)", "12.34"),
    ("mood", "'ok'", "string", "ok"),
    ("cents", "5.5", "decimal(12,2)", "5.50"),
    ("oid", "4000000000", "bigint", 4000000000),
    ("bit(3)", "B'101'", "string", "101"),
    ("inet", "'10.0.0.1/8'", "string", "10.0.0.1/8"),
    ("int[]", "ARRAY[1,NULL,3]", "array<int>", [1, None, 3]),
    ("text[]", "ARRAY['a','b\"c',NULL]", "array<string>", ["a", 'b"c', None]),
    ("numeric(5,2)[]", "ARRAY[1.5,2.25]", "array<decimal(5,2)>", [Decimal("1.50"), Decimal("2.25")]),
    (
        "timestamptz[]",
        "ARRAY['2026-01-02 03:04:05+02'::timestamptz]",
        "array<timestamp>",
        [datetime(2026, 1, 2, 1, 4, 5, 0, UTC)],
    ),
    ("boolean[]", "ARRAY[true,false]", "array<boolean>", [True, False]),
    ("date[]", "ARRAY['2020-02-29'::date]", "array<date>", [date(2020, 2, 29)]),
    ("int4range", "'[1,5)'", "string", "[1,5)"),
]
MARIADB_VALUES: list[tuple[str, str, str, Any]] = [
    ("tinyint(1)", "2", "int", 2),
    ("tinyint unsigned", "255", "int", 255),
    ("smallint unsigned", "65535", "int", 65535),
    ("mediumint", "-8388608", "int", -8388608),
    ("int unsigned", "4294967295", "bigint", 2**32 - 1),
    ("bigint", "9223372036854775807", "bigint", 2**63 - 1),
    ("bigint unsigned", "18446744073709551615", "decimal(20,0)", "18446744073709551615"),
    ("year", "2026", "int", 2026),
    ("decimal(10,2)", "12345678.90", "decimal(10,2)", "12345678.90"),
    ("decimal(60,5)", "12345678901234567890.125", "decimal(38,5)", "12345678901234567890.12500"),
    ("float", "1234567.5", "float", 1234567.5),
    ("double", "0.1", "double", 0.1),
    ("char(5)", "'ab'", "string", "ab"),
    ("varchar(7)", "'\u00e9'", "string", "\u00e9"),
    ("longtext", "'x'", "string", "x"),
    ("enum('a','b')", "'b'", "string", "b"),
    ("set('x','y')", "'x,y'", "string", "x,y"),
    ("json", "'{\"a\": 1}'", "string", '{"a": 1}'),
    ("varbinary(9)", "x'00ff'", "binary", b"\x00\xff"),
    ("blob", "x'01'", "binary", b"\x01"),
    ("bit(1)", "b'1'", "bigint", 1),
    ("bit(64)", "18446744073709551615", "decimal(20,0)", "18446744073709551615"),
    ("date", "'2026-02-03'", "date", date(2026, 2, 3)),
    (
        "datetime(6)",
        "'2026-01-02 03:04:05.678901'",
        "timestamp_ntz",
        datetime(2026, 1, 2, 3, 4, 5, 678901),
    ),
    (
        "timestamp(6) null",
        "'2026-01-02 03:04:05.678901'",
        "timestamp",
        datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    ),
    ("time(3)", "'-10:11:12.5'", "string", "-10:11:12.500"),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "string", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("inet6", "'::1'", "string", "::1"),
]
MISFITS = {
    "postgresql": [
        ("numeric", "'NaN'"),
        ("numeric", "0.1234567890123456789"),
        ("date", "'infinity'"),
        ("date", "'0044-03-15 BC'"),
        ("timestamptz", "'-infinity'"),
        ("int[]", "ARRAY[[1,2],[3,4]]"),
    ],
    "mariadb": [("date", "'0000-00-00'"), ("datetime", "'2026-00-00'"), ("decimal(60,0)", f"1{'0' * 40}")],
}


def test_each_type_becomes_what_the_documentation_says(shop: Shop, server: Server) -> None:
    is_postgres = server.kind == "postgresql"
    cases = POSTGRES_VALUES if is_postgres else MARIADB_VALUES
    odd = 'odd "" ` . name' if is_postgres else 'odd `` " . name'
    mark = '"' if is_postgres else "`"
    if is_postgres:
        server.sql("CREATE TYPE mood AS ENUM ('ok')", "CREATE DOMAIN cents AS numeric(12,2)")
    lenient = "SELECT 1" if is_postgres else "SET sql_mode = ''"
    columns = ", ".join(f"c{at} {kind}" for at, (kind, *_) in enumerate(cases))
    values = ", ".join(value for _, value, *_ in cases)
    table = f"{mark}{odd}{mark}"
    server.sql(
        lenient,
        f"CREATE TABLE {table} (id int PRIMARY KEY, {columns}, {table} text)",
        f"INSERT INTO {table} VALUES (1, {values}, 'x')",
    )
    for at, (kind, value) in enumerate(MISFITS[server.kind]):
        server.sql(
            lenient,
            f"CREATE TABLE misfit{at} (id int PRIMARY KEY, v {kind})",
            f"INSERT INTO misfit{at} VALUES (1, {value})",
        )
    misfits = {f"misfit{at}": {} for at in range(len(MISFITS[server.kind]))}
    declare(
        shop,
        server,
        types={"table": table},
        **misfits,
        as_text={"table": "misfit0", "columns": {"v": "string"}},
    )
    model(shop, "types", "types")
    shop.dbt("run")
    described = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.types")}
    (row,) = shop.sql("SELECT * FROM {s}.types")
    for at, (kind, _, spark, value) in enumerate(cases):
        expected = Decimal(value) if spark.startswith("decimal") else value
        assert (described[f"c{at}"], row[at + 1]) == (spark, expected), kind
    assert row[-1] == "x"
    assert described[odd.replace('""', '"').replace("``", "`")] == "string"

    (shop.folder / "models" / "types.sql").unlink()
    for name in misfits:
        model(shop, name, name)
    for name, said in shop.refusals("run").items():
        kind, value = MISFITS[server.kind][int(name.removeprefix("misfit"))]
        assert "AR-311" in said, (kind, value, said)
        assert "cannot be read as" in said
        assert "columns: {v: string}" in said
        (shop.folder / "models" / f"{name}.sql").unlink()
    model(shop, "as_text", "as_text", key="v")

    # A rejected row has all values exactly, also those that do not fit.
    name = odd.replace('""', '"').replace("``", "`")
    whole = f"c0{''.join(f', c{at}' for at in range(1, len(cases)))}"
    typed = ", ".join(f"m{at} {kind}" for at, (kind, _) in enumerate(MISFITS[server.kind]))
    nothing = ", ".join("NULL" for _ in cases)
    numbered = {f"m{at}": misfit for at, misfit in enumerate(MISFITS[server.kind])}
    server.sql(
        lenient,
        f"INSERT INTO {table} SELECT 2, {whole}, NULL FROM {table}",
        f"INSERT INTO {table} VALUES (3, {nothing}, NULL)",
        f"CREATE TABLE misfits (id int PRIMARY KEY, {typed})",
        *(f"INSERT INTO misfits (id, {m}) VALUES ({m[1:]}, {value})" for m, (_, value) in numbered.items()),
    )
    texts = ", ".join(f"cast({m} as string) as {m}" for m in numbered)
    head = "{{{{ config(materialized='incremental', unique_key='id') }}}}"
    rows = head + " select id, {} from {{{{ incremental_pull(source('crm', '{}')) }}}}"
    kept = {"table": table, "on_bad_row": "quarantine"}
    misfit = {"table": "misfits", "on_bad_row": "quarantine"}
    declare(
        shop,
        server,
        as_text={"table": "misfit0", "columns": {"v": "string"}},
        kept={**kept, "required": [name]},
        misfits=misfit,
    )
    shop.model("kept", rows.format(whole, "kept"))
    shop.model("misfits", rows.format(texts, "misfits"))
    shop.dbt("run")
    assert len(shop.sql("SELECT * FROM {s}.as_text")) == 1
    assert [row[0] for row in shop.sql("SELECT id FROM {s}.kept")] == [1]
    assert not shop.sql("SELECT * FROM {s}.misfits")
    found = shop.sql("SELECT key, error FROM {s}.misfits__rejected")
    assert {json.loads(key)["id"]: error.split(" cannot")[0] for key, error in found} == {
        m[1:]: f"the value of {m}" for m in numbered
    }
    as_string = {**misfit, "columns": {"id": "int", **dict.fromkeys(numbered, "string")}}
    declare(shop, server, kept=kept, misfits=as_string)
    (shop.folder / "models" / "as_text.sql").unlink()
    shop.model("texts", rows.format(texts, "misfits"))
    shop.dbt("run", "--select", "texts")
    Terminal(shop)("ingest", "replay")
    assert shop.rows("misfits") == shop.rows("texts")
    first, again, empty = shop.rows("kept")
    assert list(first[1:]) == list(again[1:])
    assert set(empty[1:]) == {None}


class Accounts:
    """A table whose rows have the time of their last change, and what a model of it must have."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name = server, name
        kind = "timestamptz" if server.kind == "postgresql" else "timestamp(6) NULL"
        server.sql(f"CREATE TABLE {name} (id int PRIMARY KEY, name varchar(20), updated_at {kind})")

    def put(self, number: int, name: str, at: str) -> str:
        """The statement that writes a row with a time of 2026-01-01."""
        zone = "+00" if self.server.kind == "postgresql" else ""
        return f"INSERT INTO {self.name} VALUES ({number}, '{name}', '2026-01-01 {at}{zone}')"

    def change(self, number: int, name: str, at: str) -> list[str]:
        return [f"DELETE FROM {self.name} WHERE id = {number}", self.put(number, name, at)]

    def run(self, *statements: str) -> None:
        self.server.sql(*self.utc, *statements)

    @property
    def utc(self) -> list[str]:
        return [] if self.server.kind == "postgresql" else ["SET time_zone = '+00:00'"]

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.server.sql(f"SELECT id, name FROM {self.name}"))


def stored(shop: Shop, name: str) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, shop.sql(f"SELECT id, name FROM {{s}}.{name}")))


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """What happens between the plan of a run and its read."""
    acts: dict[str, Callable[[], None]] = {}
    create = SessionConnection.create_source_view

    def wrapped(connection: SessionConnection, name: str, source: Any) -> None:
        create(connection, name, source)
        acts.get("now", lambda: None)()

    monkeypatch.setattr(SessionConnection, "create_source_view", wrapped)
    return acts


def test_a_model_has_the_rows_of_its_table(
    shop: Shop, server: Server, between: dict[str, Callable[[], None]], dbt_log: None
) -> None:
    accounts = Accounts(server, "accounts")
    by_cursor = {"table": "accounts", "cursor": "updated_at"}
    declare(
        shop,
        server,
        accounts={**by_cursor, "partitions": 3},
        whole={"table": "accounts"},
        compared={**by_cursor, "deletes": "compare"},
        once={**by_cursor, "overlap": 0},
    )
    keyed = ("accounts", "whole", "compared")
    for name in keyed:
        model(shop, f"m_{name}", name)
    model(shop, "m_once", "once", key="")
    shop.dbt("run")  # an empty table
    assert not any(stored(shop, f"m_{name}") for name in (*keyed, "once"))

    accounts.run(*(accounts.put(number, f"n{number}", f"10:00:0{number}") for number in range(1, 9)))
    expected = accounts.rows()
    (late_by,) = Terminal(shop).json("lag", "m_accounts", "--max", "0s", code=1)
    assert (late_by["because_of"], late_by["problem"]) == ("crm.accounts", None)

    def change() -> None:
        accounts.run(*accounts.change(1, "meanwhile", "10:10:00"), *accounts.change(9, "new", "10:10:01"))
        between.clear()

    between["now"] = change
    shop.dbt("run", "--select", "m_accounts")
    if server.kind == "postgresql":  # concurrent statements read the state that was looked at
        assert stored(shop, "m_accounts") == expected
    shop.dbt("run")
    assert stored(shop, "m_once") == accounts.rows()
    for name in keyed:
        assert stored(shop, f"m_{name}") == accounts.rows()

    shop.dbt("run")  # nothing is new: no job
    assert shop.script.jobs == 0
    Terminal(shop).json("lag", "m_accounts", "m_whole", "m_compared", "--max", "0s")

    # A transaction that becomes visible late, below the largest value, and within the overlap.
    with contextlib.closing(server.connect()) as late:
        run(late, *accounts.utc, "BEGIN", accounts.put(20, "late", "10:06:00"))
        accounts.run(accounts.put(21, "soon", "10:10:30"))
        shop.dbt("run", "--exclude", "m_once")
        assert stored(shop, "m_accounts") == accounts.rows()
        run(late, "COMMIT")
    shop.dbt("run", "--exclude", "m_once")
    for name in keyed:
        assert stored(shop, f"m_{name}") == accounts.rows(), name

    # What reads without a commit consumes nothing.
    accounts.run(*accounts.change(2, "changed", "10:11:00"), "DELETE FROM accounts WHERE id = 3")
    shop.dbt("compile")
    shop.dbt("run", "--empty")
    shop.dbt("show", "--inline", "select * from {{ incremental_pull(source('crm', 'accounts')) }}")
    shop.dbt("source", "freshness", "--select", "source:crm.accounts")
    assert shop.script.ran == []
    (fresh,) = json.loads((shop.folder / "target" / "sources.json").read_text())["results"]
    assert fresh["max_loaded_at"].startswith("2026-01-01T10:11:00")
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    said = CliRunner().invoke(main, ["ingest", "plan", "--json", *folders])
    assert said.exit_code == 0, said.output
    planned = {one["model"]: one for one in json.loads(said.output)}
    assert planned["m_accounts"]["rows"] == len(
        server.sql(
            "SELECT 1 FROM accounts WHERE updated_at >= '2026-01-01 10:05:30"
            + ("+00'" if server.kind == "postgresql" else "'")
        )
    )
    assert planned["m_compared"]["deletes"]
    assert "without cursor" not in said.output
    shop.dbt("run", "--exclude", "m_once")
    assert stored(shop, "m_compared") == accounts.rows()
    assert stored(shop, "m_accounts") == sorted([*accounts.rows(), (3, "n3")])

    # A run that ends at any of its statements consumes nothing, or everything.
    for at in range(0, 9, 3):
        accounts.run(*accounts.change(4, f"round {at}", f"10:12:0{at}"))
        shop.end({f"m_{name}": (at, at % 2 == 0) for name in (*keyed, "once")})
        shop.try_dbt("run", "--exclude", "m_whole")
        shop.end({})
    shop.dbt("run")
    assert stored(shop, "m_compared") == accounts.rows()
    appended = shop.sql("SELECT id, name FROM {s}.m_once")
    assert len(appended) == len(set(map(tuple, appended)))

    # A rollback rewinds the progress; a full refresh reads all.
    state = shop.catalog.load_table(shop.schema, "m_once")
    assert state is not None
    earlier = state.history()[1].snapshot_id
    before = sorted(map(tuple, appended))
    shop.sql(f"CALL lake.system.rollback_to_snapshot('{shop.schema}.m_once', {earlier})")
    shop.dbt("run", "--select", "m_once")
    assert {key for key, _ in stored(shop, "m_once")} == {key for key, _ in before} - {3} | {
        key for key, _ in stored(shop, "m_once")
    } & {3}
    shop.dbt("run", "--full-refresh", "--select", "m_accounts")
    assert stored(shop, "m_accounts") == accounts.rows()

    # A clone reads on from where its original is.
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profile["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))
    kept = shop.folder / "state"
    kept.mkdir()
    shutil.copy(shop.folder / "target" / "manifest.json", kept)
    shop.dbt("clone", "--state", str(kept), "--target", "ci", "--select", "m_compared")
    accounts.run(*accounts.change(5, "cloned", "10:13:00"), "DELETE FROM accounts WHERE id = 6")
    shop.dbt("run", "--select", "m_compared", "--target", "ci")
    found = shop.sql(f"SELECT id, name FROM lake.{shop.schema}_ci.m_compared")
    assert sorted(map(tuple, found)) == accounts.rows()

    consumed = json.loads(shop.log("m_accounts")[0].summary["arctic.consumed"])
    assert list(consumed) == ["database.crm.accounts"]
    written = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in [*(shop.folder / "target").rglob("*"), *(shop.folder / "logs").rglob("*")]
        if path.is_file() and path.suffix != ".msgpack"
    )
    assert PASSWORD not in written
    assert PASSWORD not in str(shop.state("m_accounts", "change")) + str(shop.state("m_accounts", "base"))


def test_errors_say_what_to_do(shop: Shop, server: Server) -> None:
    accounts = Accounts(server, "customers")
    accounts.run(accounts.put(1, "a", "10:00:00"))
    good = {"table": "customers", "cursor": "updated_at"}
    cases: dict[str, tuple[dict[str, Any], str, str]] = {
        "no_table": ({"table": "nowhere"}, "AR-306", "there is no table"),
        "no_cursor": ({"table": "customers", "cursor": "changed"}, "AR-301", "has no column changed"),
        "no_order": (
            {"table": "customers", "cursor": "name"},
            "AR-301",
            "the column name cannot be a cursor",
        ),
        "no_column": ({**good, "columns": ["id", "other"]}, "AR-301", "has no column other"),
        "no_type": ({**good, "columns": {"id": "date"}}, "AR-301", "cannot be read as date"),
        "too_long": (
            {**good, "overlap": 5, "cursor": "id", "partition_column": "name"},
            "AR-301",
            "whole numbers",
        ),
        "elsewhere": (
            {**good, "url": server.url.rsplit(":", 1)[0] + ":1/lake"},
            "AR-106",
            "cannot be reached",
        ),
        "hunter": (
            {**good, "url": server.url.replace("dbt@", "dbt:hunter22@")},
            "AR-301",
            "contains a password",
        ),
        "twice": (good, "AR-301", "has no unique_key"),
    }
    declare(shop, server, **{name: settings for name, (settings, *_) in cases.items()})
    for name in cases:
        model(shop, name, name, key="" if name == "twice" else "id")
    for name, said in shop.refusals("run").items():
        _, code, text = cases[name]
        assert code in said, said
        assert text in said, said
        assert "fix:" in said
        assert "hunter22" not in said
        (shop.folder / "models" / f"{name}.sql").unlink()

    # A login that is refused, and rows without a cursor.
    declare(shop, server, "wrong password", customers=good)
    model(shop, "m_customers", "customers")
    said = shop.refusals("run")["m_customers"]
    assert "AR-106" in said
    declare(shop, server, customers={**good, "deletes": "compare"})
    shop.model(
        "m_customers",
        "{{ config(materialized='incremental', unique_key='id') }}\n"
        "select id, name from {{ incremental_pull(source('crm', 'customers')) }}",
    )
    assert "does not return _action" in shop.refusals("run")["m_customers"]
    model(shop, "m_customers", "customers")
    assert "wrong password" not in said
    accounts.run("INSERT INTO customers VALUES (2, 'b', NULL)")
    declare(shop, server, customers=good)
    assert "AR-311" in shop.refusals("run")["m_customers"]
    declare(shop, server, customers={**good, "null_cursor": "read"})
    shop.dbt("run")
    accounts.run("UPDATE customers SET name = 'c' WHERE id = 2")
    shop.dbt("run")
    assert stored(shop, "m_customers") == [(1, "a"), (2, "c")]
    if server.kind == "postgresql":  # created again
        accounts.run("DROP TABLE customers")
        Accounts(server, "customers").run(accounts.put(3, "d", "10:00:01"))
        assert "AR-403" in shop.refusals("run")["m_customers"]
        declare(shop, server, customers={**good, "on_recreated": "continue"})
        shop.dbt("run")
        assert stored(shop, "m_customers") == [(1, "a"), (2, "c"), (3, "d")]
