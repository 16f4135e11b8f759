"""Pages about topics and databases are followed, with a real broker and real databases.

All code of a page is used: its files are written, its commands are run, and its output is compared with what
is printed. Only addresses and passwords are those of the test's servers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import certifi
import psycopg
import pymysql
import pytest
import yaml

from dbt_arctic.engine.session import SessionConnection
from tests.avro import encode, framed
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.database_servers import KINDS, Server, run
from tests.dbt.keyed.followed_sources import SourceGuide, spans
from tests.dbt.keyed.kafka_topics import PASSWORD, Broker, Topic, add_reader
from tests.schema_registry import registry
from tests.spark.keyed.change_feed import UNSENT, unscaled

pytestmark = pytest.mark.long

BROKER = "broker.example.com:9092"


@contextmanager
def topic(broker: Broker, name: str, partitions: int = 1) -> Iterator[Topic]:
    """A topic with the name that a page gives to it."""
    made = Topic(broker.servers, broker.admin, broker.producer, broker.opened, partitions, name).create()
    try:
        yield made
    finally:
        made.delete()


def start_over(shop: Shop) -> None:
    """The project has no tables any more."""
    views = {name for _, name, *_ in shop.sql("SHOW VIEWS IN {s}")}
    tables = {name for _, name, *_ in shop.sql("SHOW TABLES IN {s}")} - views
    for kind, names in (("VIEW", views), ("TABLE", tables)):
        for name in sorted(names):
            shop.sql(f"DROP {kind} {{s}}.{name}")


def pulled(columns: str, source: str, *, key: str = "") -> str:
    """A model that has these columns of a source."""
    config = f"unique_key='{key}'" if key else "incremental_strategy='append'"
    return (
        f"{{{{ config(materialized='incremental', {config}) }}}}\n"
        f"select {columns} from {{{{ incremental_pull(source({source})) }}}}"
    )


def order(number: int, status: str = "new") -> dict[str, Any]:
    return {"order_id": number, "status": status, "amount": number + 0.25}


def newest(read: Topic) -> list[tuple[Any, ...]]:
    """The newest message of each key, unless it is a tombstone."""
    values = {message.key: message.value for message in read.messages}
    found = [json.loads(value) for value in values.values() if value is not None]
    return sorted((one["order_id"], one["status"], Decimal(str(one["amount"]))) for one in found)


def test_a_topic_is_loaded(
    shop: Shop,
    kafka_broker: Broker,
    shop_connection: SessionConnection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    add_reader(shop_connection, jars, "avro")
    known = {BROKER: kafka_broker.servers}
    guide = SourceGuide(shop, "load-a-topic", schema="dev", known=known, numbers=True, narrow=False)
    guide.section("")
    monkeypatch.setenv("KAFKA", kafka_broker.servers)
    with topic(kafka_broker, "shop.orders") as orders, topic(kafka_broker, "shop.visits") as visits:
        for number in range(4):
            orders.send(number, order(number))
            visits.send(None, {"page": f"p{number}"})
        generate_the_files_of_topics(guide)
        declare_the_topic(guide, orders)
        log_in_to_the_broker(guide, kafka_broker, monkeypatch)
        lose_messages(guide, orders)
        reject_messages(guide, orders)
        read_the_topic_again(guide, orders)
    with topic(kafka_broker, "shop.orders") as orders, topic(kafka_broker, "shop.others") as others:
        read_avro(guide, orders)
        read_other_values(guide, others)
    guide.finish()


def generate_the_files_of_topics(guide: SourceGuide) -> None:
    shop = guide.shop
    guide.section("Generate the files")
    written = shop.folder / "models" / "shop"
    assert {path.name for path in written.iterdir()} == {"shop.yml", "orders.sql", "visits.sql"}
    (source,) = yaml.safe_load((written / "shop.yml").read_text(encoding="utf-8"))["sources"]
    keys = {table["name"]: table["config"]["meta"]["arctic"].get("key") for table in source["tables"]}
    assert keys == {"orders": ["order_id"], "visits": None}
    assert "unique_key='order_id'" in (written / "orders.sql").read_text(encoding="utf-8")
    assert "'append'" in (written / "visits.sql").read_text(encoding="utf-8")
    shop.dbt("build")
    assert len(shop.rows("orders")) == len(shop.rows("visits")) == 4
    shutil.rmtree(written)
    start_over(shop)


def declare_the_topic(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop
    config = guide.text("incremental_strategy='append'")
    guide.section("Declare the source")
    shop.model(
        "log",
        f"{config}select *, _action as action from {{{{ incremental_pull(source('shop', 'orders')) }}}}",
    )
    shop.dbt("run")
    assert stored_orders(shop) == newest(orders)
    orders.send(2, None)
    orders.send(1, order(1, "paid"))
    shop.dbt("run")
    assert stored_orders(shop) == newest(orders)
    assert shop.rows("log", "_source_offset") == [(offset,) for offset in range(6)]
    shop.dbt("run")
    assert shop.script.jobs == 0
    types = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.log")}
    for name, kind, _ in guide.table("column | type"):
        (column,) = spans(name)
        stored = types["action" if column == "_action" else column]
        assert stored == kind.replace(" ", "").lower(), column
    consumed = json.loads(shop.log("orders")[0].summary["arctic.consumed"])
    assert consumed["kafka.shop.orders"][1] == "offsets:6"
    (shop.folder / "models" / "log.sql").unlink()


def stored_orders(shop: Shop) -> list[tuple[Any, ...]]:
    return sorted(shop.rows("orders", "order_id, status, amount"))


def log_in_to_the_broker(guide: SourceGuide, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's broker has no TLS and one mechanism. Everything else is as on the page."""
    shop, before = guide.shop, (guide.shop.folder / "profiles.yml").read_text(encoding="utf-8")
    text = guide.text("# profiles.yml")
    for page, here in (
        ("SASL_SSL", "SASL_PLAINTEXT"),
        ("SCRAM-SHA-512", "PLAIN"),
        ("/etc/ssl/kafka-ca.pem", certifi.where()),
    ):
        assert page in text
        text = text.replace(page, here)
    guide.write("profiles.yml", text)
    (login,) = (one for one in guide.page_text.split("`") if "ScramLoginModule" in one)
    login = login.replace("scram.Scram", "plain.Plain").replace("...", PASSWORD)
    monkeypatch.setenv("KAFKA", broker.with_login)
    monkeypatch.setenv("DBT_ENV_SECRET_KAFKA", login)
    shop.dbt("run")
    assert shop.script.jobs == 0
    shop.file("profiles.yml", before)
    monkeypatch.setenv("KAFKA", broker.servers)


def lose_messages(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop
    orders.send(7, order(7))
    orders.send(8, order(8))
    guide.set("models/shop.yml", "orders", guide.text("var('on_data_loss'"))
    kept = orders.messages[:-2]
    orders.delete_before(0, 7)
    said = shop.fail("run")
    assert "AR-403" in said
    assert "offsets 6 to 6" in said
    guide.section("When messages are lost")
    assert guide.says("offsets 6 to 6")
    orders.messages = [*kept, *orders.messages]
    assert stored_orders(shop) == newest(orders)


def reject_messages(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop
    for _ in range(8, 1204):
        orders.producer.send(orders.name, key=b"8", value=json.dumps(order(8)).encode())
    guide.set("models/shop.yml", "orders", "{on_bad_row: quarantine, required: [status]}")
    rows = guide.block("Quarantined").text.splitlines()
    raw = {row.split()[1]: row[row.index("{") :] for row in rows if "{" in row}
    for offset in range(1204, 1208):
        text = raw.get(str(offset), json.dumps(order(offset)))
        sent = orders.send(json.loads(text)["order_id"], text, is_seen=str(offset) not in raw)
        assert sent.offset == offset
    guide.section("Messages that do not fit")
    assert stored_orders(shop) == newest(orders)
    terminal = Terminal(shop)
    (status,) = terminal.json("status", "orders")
    assert status["rejected"] == [{"source": "shop.orders", "rows": 2, "dropped": 0}]
    assert [one["rejected"] for one in terminal.json("ingest", "plan")] == [2]
    guide.set("models/shop.yml", "orders", "required: []")
    guide.type_in(["ingest", "replay"])
    left = "position, cast(message.key as string), cast(message.value as string), message.partition"
    bad = raw["1204"]
    assert shop.rows("orders__rejected", left) == [(1204, "9", bad, 0)]
    assert shop.rows("orders WHERE order_id = 3", "status, _source_offset") == [(None, 1207)]


def read_the_topic_again(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop
    orders.delete_before(0, 1205)
    guide.dbt("run", "--full-refresh")
    assert guide.says("offsets 0 to 1204")
    assert [key for (key,) in shop.rows("orders", "order_id")] == [1205, 1206, 3]


FIELDS = [
    {"name": "status", "type": ["null", "string"]},
    {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
    {"name": "changed_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
]


def read_avro(guide: SourceGuide, orders: Topic) -> None:
    """The older schema lacks a field of the page, and the newer one has a field that the page lacks."""
    shop = guide.shop
    older: dict[str, Any] = {"type": "record", "name": "order", "fields": FIELDS[:2]}
    newer = {**older, "fields": [{"name": "note", "type": "string"}, *FIELDS]}
    with registry() as running:
        guide.known["https://registry.example.com:8081"] = running.url
        block = yaml.safe_load(guide.text("format: avro"))["arctic"]
        guide.settings("models/shop.yml", "orders", lambda _: block)
        query = (shop.folder / "models" / "orders.sql").read_text(encoding="utf-8")
        shop.model("orders", query.replace("amount,", "amount, changed_at,"))
        key, first, second = running.add("long"), running.add(older), running.add(newer)
        values: dict[str, Any] = {"status": "new", "amount": Decimal("1.25")}
        later = {**values, "changed_at": 1_000_000, "note": "x"}
        for number, schema, value in ((first, older, values), (second, newer, later)):
            sent = {"key": framed(key, "long", number), "value": framed(number, schema, value)}
            orders.producer.send(orders.name, **sent).get(10)
        guide.dbt("run", "--full-refresh")
    assert shop.rows("orders", "order_id, status, amount, unix_micros(changed_at)") == [
        (first, "new", Decimal("1.25"), None),
        (second, "new", Decimal("1.25"), 1_000_000),
    ]


MOMENT = datetime(1970, 1, 1, 0, 0, 1, 500_000)
AVRO: dict[str, tuple[Any, Any, str, Any]] = {
    **{name: (name, 7, "", 7) for name in ("int", "long")},
    **{name: (name, 1.5, "", 1.5) for name in ("float", "double")},
    "boolean": ("boolean", True, "", True),
    "string": ("string", "x", "", "x"),
    "bytes": ("bytes", b"\0\1", "", b"\0\1"),
    "fixed": ({"type": "fixed", "name": "f", "size": 2}, b"\0\1", "", b"\0\1"),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10},
        *(Decimal("1.0123456789"), "decimal(30,10)", Decimal("1.0123456789")),
    ),
    "date": ({"type": "int", "logicalType": "date"}, 1, "", date(1970, 1, 2)),
    **{
        f"{local}timestamp-{unit}": (
            {"type": "long", "logicalType": f"{local}timestamp-{unit}"},
            *(number, "", MOMENT.replace(tzinfo=None if local else timezone.utc)),
        )
        for unit, number in (("millis", 1500), ("micros", 1_500_000))
        for local in ("", "local-")
    },
    "enum": ({"type": "enum", "name": "e", "symbols": ["p", "q"]}, "q", "", "q"),
    "struct<..>": (
        {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]},
        *({"a": 1}, "struct<a:bigint>", {"a": 1}),
    ),
    "array<..>": ({"type": "array", "items": "long"}, [1, 2], "array<bigint>", [1, 2]),
    "map<string, ..>": ({"type": "map", "values": "long"}, {"k": 1}, "map<string,bigint>", {"k": 1}),
    "a union with null": (["null", "long"], 5, "bigint", 5),
    "any other union": (["long", "string"], "x", "string", '{"member0":null,"member1":"x"}'),
}
"""By what the page calls it: the schema, a value, the type if the page has a part of it, what is stored."""


def avro_types(guide: SourceGuide) -> dict[str, str]:
    """What the page says is to be declared for each type."""
    found: dict[str, str] = {}
    for theirs, ours in guide.table("Avro | declare"):
        types = spans(ours) or [""]
        # Records, arrays and maps have no names of their own.
        names = spans(theirs) or (types if len(types) > 1 else [theirs])
        found |= dict(zip(names, types if len(types) == len(names) else types * len(names), strict=True))
    return found


def read_other_values(guide: SourceGuide, others: Topic) -> None:
    shop = guide.shop
    declared = avro_types(guide)
    assert declared.keys() == AVRO.keys()
    columns = {f"c{at}": AVRO[name][2] or kind for at, (name, kind) in enumerate(declared.items())}
    for (name, kind), column in zip(declared.items(), columns.values(), strict=True):
        assert not kind or column.partition("<")[0].partition("(")[0] in kind, name
    fields = [{"name": f"c{at}", "type": AVRO[name][0]} for at, name in enumerate(declared)]
    schema = {"type": "record", "name": "other", "fields": fields}
    shop.file("schemas/order.avsc", json.dumps(schema))
    value = {f"c{at}": AVRO[name][1] for at, name in enumerate(declared)}
    others.producer.send(others.name, value=encode(schema, value), partition=0).get(10)
    digits = "0.1234567890123456789"
    text = {"note": "string", "exact": "decimal(38, 19)"}
    settings = {"topic": others.name, "format": "avro", "schema": "schemas/order.avsc", "columns": columns}

    def declare(source: str, **own: Any) -> None:
        of_all = {"from": "kafka", "servers": others.servers, **own}
        made = {"name": source, "tables": [{"name": "others", "config": {"meta": {"arctic": of_all}}}]}
        shop.file(f"models/{source}.yml", yaml.safe_dump({"sources": [made]}, sort_keys=False))
        shop.model(source, pulled(", ".join(own["columns"]), f"'{source}', 'others'"))

    declare("binary_values", **settings)
    shop.dbt("run", "--select", "binary_values")
    types = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.binary_values")}
    assert {name: types[name] for name in columns} == columns
    (row,) = shop.sql("SELECT * FROM {s}.binary_values")
    for name, found in zip(declared, row, strict=True):
        assert found == AVRO[name][3], name
    others.delete_before(0, 1)
    others.send(None, f'{{"note": {digits}, "exact": {digits}}}')
    declare("texts", topic=others.name, format="json", columns=text)
    shop.dbt("run", "--select", "texts")
    ((note, exact),) = shop.sql("SELECT note, CAST(exact AS STRING) FROM {s}.texts")
    assert exact == digits
    assert f"`{digits}` loses its last digits" in guide.page_text
    assert note != digits
    assert note.startswith(digits[:15])


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Server:
    kind = "postgres" if request.param == "postgresql" else request.param
    found: Server = request.getfixturevalue(f"{kind}_server")
    return found


@contextmanager
def crm(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The database of the pages, and their user, which may only read it. The owner runs the statements."""
    is_postgres = server.kind == "postgresql"
    url = server.url.replace("/lake", "/crm")

    def connect() -> Any:
        if is_postgres:
            return psycopg.connect(url, password=PASSWORD, autocommit=True)
        made = server.connect()
        made.select_db("crm")
        return made

    word = "PASSWORD" if is_postgres else "IDENTIFIED BY"
    server.sql("CREATE DATABASE crm", f"CREATE USER reader {word} '{PASSWORD}'")
    made = Server(server.kind, url, connect)
    if is_postgres:
        made.sql("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
    else:
        grant(server, "GRANT SELECT ON crm.* TO reader")
    monkeypatch.setenv("DBT_ENV_SECRET_CRM", PASSWORD)
    monkeypatch.setenv("CRM", url.replace("dbt@", "reader@"))
    try:
        yield made
    finally:
        server.sql(f"DROP DATABASE crm{' WITH (FORCE)' if is_postgres else ''}", "DROP USER reader")


def grant(server: Server, *statements: str) -> None:
    """Run statements of MariaDB as root: the user of the tests may not grant something."""
    ((socket,),) = server.sql("SELECT @@socket")
    with closing(pymysql.connect(unix_socket=socket, user="root", autocommit=True)) as connection:
        run(connection, *statements)


def address(server: Server) -> str:
    return server.url.partition("@")[2].partition("/")[0]


def known_names(server: Server) -> dict[str, str]:
    """What the pages have for PostgreSQL, on this server: its address, and databases in place of schemas."""
    if server.kind == "postgresql":
        return {"db.example.com:5432": address(server)}
    page = "postgresql://reader@db.example.com:5432/crm"
    here = {
        name: f"crm.{name.partition('.')[2]}" for name in ("public.*", "public.accounts", "public.events")
    }
    return {page: f"mariadb://reader@{address(server)}/crm", **here}


def put(number: int, balance: str, name: str = "") -> str:
    """The statement that writes an account; ``-`` is no name."""
    named = "NULL" if name == "-" else f"'{name or f'n{number}'}'"
    return (
        f"INSERT INTO accounts (account_id, name, balance, updated_at) VALUES "
        f"({number}, {named}, {balance}, '2026-01-01 10:{number:02}:00')"
    )


def same_rows(shop: Shop, server: Server, name: str, columns: str) -> bool:
    found = sorted(map(tuple, shop.sql(f"SELECT {columns} FROM {{s}}.{name}")), key=repr)
    there = sorted(server.sql(f"SELECT {columns} FROM {name}"), key=repr)
    assert there
    return found == there


def test_tables_of_a_database_are_loaded(shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = SourceGuide(
        shop, "load-a-database-table", schema="dev", known=known_names(server), numbers=True, narrow=False
    )
    guide.section("")
    with crm(server, monkeypatch) as database:
        moment = "timestamptz NOT NULL" if server.kind == "postgresql" else "timestamp NOT NULL"
        balance = "numeric" if server.kind == "postgresql" else "decimal(20,4)"
        database.sql(
            f"CREATE TABLE accounts (account_id int PRIMARY KEY, name text, balance {balance}, "
            f"updated_at {moment})",
            f"CREATE TABLE events (event_id bigint, at {moment}, payload text)",
            *(put(number, f"{number}.25") for number in range(10, 15)),
            "INSERT INTO events VALUES (1, '2026-01-01 10:00:00', 'a'), (2, '2026-01-01 10:00:00', 'b')",
        )
        generate_the_files_of_tables(guide, database)
        declare_the_table(guide, database)
        append_rows(guide, database)
        reject_rows(guide, database)
        compare_deleted_rows(guide, database)
        convert_types(guide, database)
    guide.finish()


def generate_the_files_of_tables(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    guide.write("profiles.yml", guide.text("# profiles.yml"))
    guide.section("Generate the files")
    written = shop.folder / "models" / "crm"
    assert {path.name for path in written.iterdir()} == {"crm.yml", "accounts.sql"}
    (source,) = yaml.safe_load((written / "crm.yml").read_text(encoding="utf-8"))["sources"]
    (table,) = source["tables"]
    declared = yaml.safe_load(guide.real(guide.block("# models/crm.yml").text))
    of_page = declared["sources"][0]["tables"][0]["config"]["meta"]["arctic"]
    assert table["config"]["meta"]["arctic"] == of_page
    shop.dbt("build")
    assert same_rows(shop, database, "accounts", "account_id, name, balance")
    shutil.rmtree(written)
    start_over(shop)


def declare_the_table(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    (url,) = (one for one in guide.page_text.split("`") if one.startswith(f"{database.kind}://reader@"))
    assert re.sub("db.example.com:(5432|3306)", address(database), url) == os.environ["CRM"]
    guide.section("Declare the source")
    shop.dbt("run")
    assert same_rows(shop, database, "accounts", "account_id, name, balance")
    database.sql(put(15, "15.25"), "UPDATE accounts SET name = 'changed' WHERE account_id = 10")
    (planned,) = Terminal(shop).json("ingest", "plan")
    # Rows that are at most five minutes older than the largest value that was read: 10:09 to 10:15.
    assert (planned["rows"], planned["reads_all"]) == (6, False)
    guide.section("What the next run would read")
    database.sql("UPDATE accounts SET updated_at = '2026-01-01 10:15:01' WHERE account_id = 10")
    shop.dbt("run")
    assert same_rows(shop, database, "accounts", "account_id, name, balance")
    shop.dbt("run")
    assert shop.script.jobs == 0


def append_rows(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    guide.add("models/crm.yml", "events", guide.text("cursor: event_id"))
    shop.model("events", guide.text("source('crm', 'events')"))
    shop.dbt("run", "--select", "events")
    database.sql("INSERT INTO events VALUES (3, '2026-01-01 10:00:00', 'c')")
    shop.dbt("run", "--select", "events")
    assert same_rows(shop, database, "events", "event_id, payload")
    refused = guide.text("cursor: event_id").replace(", overlap: 0", "")
    guide.set("models/crm.yml", "events", refused)
    guide.settings("models/crm.yml", "events", lambda known: {k: known[k] for k in known if k != "overlap"})
    assert "overlap: 0" in shop.fail("run", "--select", "events")
    (shop.folder / "models" / "events.sql").unlink()


def reject_rows(guide: SourceGuide, database: Server) -> None:
    """The values of the page: a number that only PostgreSQL has."""
    shop = guide.shop
    if database.kind == "mariadb":
        guide.text("Quarantined")
        return
    shown = re.findall(r"\{.*?\}", guide.block("Quarantined").text)[1::2]
    for row in map(json.loads, shown):
        values = ", ".join("NULL" if value is None else f"'{value}'" for value in row.values())
        database.sql(f"INSERT INTO accounts ({', '.join(row)}) VALUES ({values})")
    said = shop.fail("run")
    assert "AR-311" in said
    assert "balance" in said
    assert "NaN" in said
    guide.set("models/crm.yml", "accounts", "{on_bad_row: quarantine, required: [name]}")
    guide.section("Rows that do not fit")
    terminal = Terminal(shop)
    (status,) = terminal.json("status", "accounts")
    assert status["rejected"] == [{"source": "crm.accounts", "rows": 2, "dropped": 0}]
    assert [one["rejected"] for one in terminal.json("ingest", "plan")] == [2]
    guide.set("models/crm.yml", "accounts", "required: []")
    guide.type_in(["ingest", "replay"])
    assert shop.rows("accounts__rejected", "key") == [('{"account_id":"7"}',)]
    assert shop.rows("accounts WHERE account_id = 9", "name, cast(balance as int)") == [(None, 9)]
    database.sql("DELETE FROM accounts WHERE account_id IN (7, 9)")


def compare_deleted_rows(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    database.sql("ALTER TABLE accounts ADD COLUMN status varchar(9) DEFAULT 'active'")
    guide.set("models/crm.yml", "accounts", "deletes: compare")
    assert "_action" in shop.fail("run")
    shop.model("accounts", guide.text("or _action = 'D'"))
    guide.dbt("run", "--full-refresh")
    database.sql(
        "DELETE FROM accounts WHERE account_id = 12",
        "UPDATE accounts SET status = 'gone', updated_at = '2026-01-01 11:00:00' WHERE account_id = 13",
    )
    shop.dbt("run")
    left = database.sql("SELECT account_id FROM accounts")
    assert [key for (key,) in shop.rows("accounts", "account_id")] == sorted(key for (key,) in left)


COMPLETE = {
    "numeric(p,s)": "numeric(10,2)",
    "decimal(p,s)": "decimal(10,2)",
    "bit(n)": "bit(9)",
    "char(n)": "char(9)",
}
OF_MARIADB = {
    "enum": "enum('a')",
    "set": "set('a')",
    "varchar": "varchar(9)",
    "varbinary": "varbinary(9)",
    "timestamp": "timestamp NULL",
}
"""What a statement writes for a type of the page."""


def shown_types(guide: SourceGuide, head: str) -> dict[str, str]:
    """The types of Spark by the types of the database, in the form of the page."""
    found: dict[str, str] = {}
    for theirs, ours in guide.table(head):
        names = [one for one in spans(theirs) if not one[0].isdigit()]
        types = [one.strip() for one in re.split(r";|\. |, with|, because|, as | or ", ours)[0].split(", ")]
        found |= dict(zip(names, types if len(types) == len(names) else types[:1] * len(names), strict=True))
    return found


def convert_types(guide: SourceGuide, database: Server) -> None:
    """Each type in the left column of the page is read as the type in the right column."""
    shop, is_postgres = guide.shop, database.kind == "postgresql"
    types = shown_types(guide, "PostgreSQL | Spark" if is_postgres else "MariaDB, MySQL | Spark")
    complete = COMPLETE if is_postgres else {**COMPLETE, **OF_MARIADB}
    whole = {name: complete.get(name, name) for name in types}
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(whole.values()))
    extensions = [f"CREATE EXTENSION IF NOT EXISTS {one}" for one in ("citext", "hstore")]
    database.sql(
        *(extensions if is_postgres else ()),
        f"CREATE TABLE typed (id int PRIMARY KEY, {columns})",
        "ALTER TABLE accounts ADD COLUMN is_active boolean, ADD COLUMN valid_to date",
        "UPDATE accounts SET is_active = true, balance = 1.2345 WHERE account_id = 10",
    )
    if is_postgres:
        database.sql("UPDATE accounts SET valid_to = 'infinity' WHERE account_id = 10")
    guide.add("models/crm.yml", "typed", f"table: {'public' if is_postgres else 'crm'}.typed")
    shop.model("typed", pulled("*", "'crm', 'typed'", key="id"))
    guide.set("models/crm.yml", "accounts", guide.text("is_active: boolean"))
    names = "account_id, balance, is_active, valid_to"
    shop.model("accounts", pulled(f"{names}, _action", "'crm', 'accounts'", key="account_id"))
    shop.dbt("run", "--full-refresh")
    stored = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.typed")}
    for at, (name, kind) in enumerate(types.items()):
        expected = kind.replace("(p,s)", "(10,2)").lower()
        assert stored[f"c{at}"] == expected, name
    shown = yaml.safe_load(guide.block("is_active: boolean").text)["columns"]
    described = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.accounts")}
    assert {name: described[name] for name in shown} == shown
    (row,) = shop.sql(f"SELECT {names} FROM {{s}}.accounts WHERE account_id = 10")
    assert row == (10, Decimal("1.2345"), True, "infinity" if is_postgres else None)


def in_production(guide: SourceGuide) -> None:
    """The target of the pages on following has this name, and the password of the page on tables."""
    shop = guide.shop
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    target = profiles["shop"]["outputs"]["dev"]
    of_page = yaml.safe_load(SourceGuide(shop, "load-a-database-table").block("# profiles.yml").text)
    target["jdbc"] = of_page["shop"]["outputs"]["dev"]["jdbc"]
    shop.file("profiles.yml", yaml.safe_dump({"shop": {"target": "prod", "outputs": {"prod": target}}}))


CUSTOMERS = (
    "CREATE TABLE customers (customer_id bigint PRIMARY KEY, name varchar(20), score decimal(10,2))",
    "CREATE TABLE orders (order_id bigint PRIMARY KEY, status varchar(9))",
    "INSERT INTO customers VALUES (1, 'a', 1.5), (2, 'b', NULL), (3, 'c', 3)",
    "INSERT INTO orders VALUES (1, 'new')",
)
CHANGES = (
    "INSERT INTO customers VALUES (4, 'd', 4)",
    "UPDATE customers SET name = 'changed' WHERE customer_id = 2",
    "DELETE FROM customers WHERE customer_id = 3",
    "UPDATE customers SET customer_id = 9 WHERE customer_id = 1",
)


def follow_customers(guide: SourceGuide, database: Server) -> None:
    """The generated files, and then those of the page, follow the table."""
    shop, columns = guide.shop, "customer_id, name, score"
    shop.dbt("build")
    database.sql("UPDATE orders SET status = 'paid'")
    shop.dbt("build")
    assert same_rows(shop, database, "customers", columns)
    assert same_rows(shop, database, "orders", "order_id, status")
    shutil.rmtree(shop.folder / "models" / "crm")
    start_over(shop)
    guide.section("Declare the source")
    shop.dbt("run")
    assert same_rows(shop, database, "customers", columns)
    database.sql(*CHANGES)
    shop.dbt("run")
    assert same_rows(shop, database, "customers", columns)
    head = shop.log("customers")[0].snapshot_id
    database.sql("UPDATE orders SET status = 'new'")
    shop.dbt("run")
    assert shop.log("customers")[0].snapshot_id == head


def test_a_postgresql_database_is_followed(
    shop: Shop, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = known_names(postgres_server)
    guide = SourceGuide(shop, "follow-a-database", known=known, numbers=True, narrow=False)
    guide.section("")
    with crm(postgres_server, monkeypatch) as database:
        database.sql("ALTER USER reader REPLICATION", *CUSTOMERS)
        in_production(guide)
        statements = guide.text("CREATE PUBLICATION").strip().splitlines()
        guide.section("Generate the files")
        (printed,) = guide.printed.values()
        names = [line.strip().replace('"', "") for line in printed.splitlines()]
        assert [line for line in names if line.endswith(";")] == statements
        database.sql(*statements)
        try:
            follow_customers(guide, database)
            keep_every_change(guide, database)
            add_a_table(guide, database)
        finally:
            (drop,) = (one for one in guide.page_text.split("`") if "pg_drop_replication_slot" in one)
            database.sql(drop)
    guide.finish()


def keep_every_change(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    guide.set("models/crm.yml", "customers", guide.text("initial_load: false"))
    shop.model("customer_log", guide.text("incremental_strategy='append'"))
    shop.dbt("run")
    logged = "customer_id, _source_operation, changed_at = _source_changed_at"
    operations = [(1, "update"), (2, "update"), (3, "delete"), (4, "insert"), (9, "update")]
    assert sorted(shop.rows("customer_log", logged)) == [(*one, True) for one in operations]
    stored = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.customer_log")}
    rows = list(guide.table("column | type"))
    shown = {spans(name)[0]: kind.lower() for name, kind, content in rows if "unavailable:" not in content}
    assert len(shown) == len(rows) - 1
    assert {name: stored.get(name) for name in shown} == shown
    database.sql("UPDATE customers SET name = 'waits' WHERE customer_id = 2")
    guide.section("Monitor it")
    planned = {one["model"]: one for one in Terminal(shop).json("ingest", "plan")}
    assert {name: one["changes"] for name, one in planned.items()} == {"customers": 1, "customer_log": 1}
    assert all(one["kept_bytes"] for one in planned.values())
    late = {one["model"]: one["lag_s"] for one in Terminal(shop).json("lag")}
    assert set(late) == {"customers", "customer_log"}
    assert all(late.values())


def add_a_table(guide: SourceGuide, database: Server) -> None:
    shop = guide.shop
    database.sql("CREATE TABLE items (item_id int PRIMARY KEY)", "INSERT INTO items VALUES (1)")
    ((_, added),) = (row for row in guide.table("in the database") if row[0] == "a new table")
    guide.add("models/crm.yml", "items", "table: public.items")
    shop.model("items", pulled("*", "'crm', 'items'", key="item_id"))
    assert "AR-" in shop.fail("run", "--select", "items")
    database.sql(spans(added)[0])
    shop.dbt("run")
    assert same_rows(shop, database, "items", "item_id")
    assert same_rows(shop, database, "customers", "customer_id, name, score")


READ, FAILS = "all rows are read again", "fails"


@dataclass(frozen=True)
class Altered:
    """What happens to a table, and what a page says of it.

    :param row: how the left cell begins.
    :param said: a part of the right cell.
    :param statements: with ``{t}`` for the name of the table.
    :param before: settings of the source, until the statements were run.
    :param after: settings of the source from then on.
    """

    row: str
    said: str
    statements: tuple[str, ...]
    before: str = "{}"
    after: str | None = None

    @property
    def fails(self) -> bool:
        return self.said.startswith((FAILS, "the run fails"))

    @property
    def reads_all(self) -> bool:
        return self.said in (READ, "the rows are deleted")


def alter(*changes: str) -> tuple[str, ...]:
    return tuple(f"ALTER TABLE {{t}} {change}" for change in changes)


SWAPPED = alter("RENAME a TO c", "RENAME b TO a", "RENAME c TO b")
SAME_VALUES = "a type with the same values"
SEVERAL = "columns that were changed several times"
KEY = "a new primary key"
IN_POSTGRES = (
    Altered("`ADD COLUMN` without", "NULL in rows from before", alter("ADD COLUMN c text")),
    Altered("`ADD COLUMN` with", READ, alter("ADD COLUMN c int NOT NULL DEFAULT 3")),
    Altered("`ADD COLUMN` with", READ, alter("ADD COLUMN c int GENERATED ALWAYS AS IDENTITY")),
    Altered(
        *("`ADD COLUMN` with", "With the column in `optional`: NULL in rows from before"),
        alter("ADD COLUMN c int NOT NULL DEFAULT 3"),
        after="optional: [c]",
    ),
    Altered("`DROP COLUMN`", "the column is no longer read", alter("DROP COLUMN a")),
    Altered("`RENAME COLUMN`", READ, SWAPPED),
    Altered("`DROP COLUMN`, and later", READ, alter("DROP COLUMN a", "ADD COLUMN a varchar(10)")),
    Altered(
        *(SAME_VALUES, "nothing"),
        alter("ALTER a TYPE varchar(20)", "ALTER b TYPE text", "ALTER n TYPE numeric(12,2)"),
    ),
    Altered("another type", READ, alter("ALTER i TYPE bigint")),
    Altered("another type", READ, alter("ALTER i TYPE smallint")),
    Altered("another type", READ, alter("ALTER i TYPE int USING i * 10", "ALTER i TYPE bigint USING i * 10")),
    Altered("a value added", "nothing", ("ALTER TYPE m_{t} ADD VALUE 'new'",)),
    Altered("a value of an enum", READ, ("ALTER TYPE m_{t} RENAME VALUE 'ok' TO 'fine'",)),
    Altered(
        *("`SET DEFAULT`", "nothing"),
        (
            *alter("ALTER i SET DEFAULT 4", "ALTER i SET NOT NULL", "ALTER i DROP NOT NULL"),
            *(*alter("ADD CHECK (i > 0)"), "CREATE INDEX by_{t} ON {t} (a)"),
        ),
    ),
    Altered(
        *("`SET DEFAULT`", "nothing"),
        ("VACUUM FULL {t}", "CREATE INDEX by_{t} ON {t} (a)", "CLUSTER {t} USING by_{t}"),
    ),
    Altered("`SET DEFAULT`", READ, (*alter("ALTER i SET DEFAULT 4"), "VACUUM FULL {t}")),
    Altered("a generated column", READ, alter("ALTER g DROP EXPRESSION")),
    Altered("a generated column", "is not read", alter("ALTER i SET DEFAULT 4")),
    Altered("a column added to `columns`", READ, (), before="columns: [id, a]", after="columns: [id, a, i]"),
    Altered(
        *(SEVERAL, READ),
        (
            *(*alter("RENAME a TO c"), "UPDATE {t} SET c = 'between'"),
            *(*alter("RENAME c TO d"), "UPDATE {t} SET d = 'later'"),
        ),
    ),
    Altered(KEY, "fails", alter("DROP CONSTRAINT {t}_pkey", "ADD PRIMARY KEY (k)")),
    Altered(KEY, "fails", alter("RENAME id TO number")),
    Altered(KEY, "fails", alter("ALTER id TYPE bigint")),
    Altered("`TRUNCATE`", "fails with [`AR-312`]", ("TRUNCATE {t}",)),
    Altered("`TRUNCATE`", "the rows are deleted", ("TRUNCATE {t}",), before="truncate: apply"),
    Altered("`DROP TABLE`", "fails", ("DROP TABLE {t}",)),
    Altered(
        *("`DROP TABLE`", "fails"),
        (
            "DROP TABLE {t}",
            "CREATE TABLE {t} (id int PRIMARY KEY)",
            "ALTER PUBLICATION arctic_prod ADD TABLE {t}",
        ),
    ),
    Altered("`RENAME TO`", "fails", alter("RENAME TO {t}_other")),
)
"""A row for each setting or statement that its cells name. ``add_a_table`` has the one of a new table."""


def test_a_change_of_a_postgresql_table_has_the_effect_that_the_page_says(
    shop: Shop, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = SourceGuide(shop, "follow-a-database", known=known_names(postgres_server))
    with crm(postgres_server, monkeypatch) as database:
        database.sql("ALTER USER reader REPLICATION")
        tables = {f"t{at}": one for at, one in enumerate(IN_POSTGRES)}
        for name in tables:
            database.sql(
                f"CREATE TYPE m_{name} AS ENUM ('ok')",
                f"CREATE TABLE {name} (id int PRIMARY KEY, a varchar(10), b varchar(10), n numeric(10,2), "
                f"i int, m m_{name}, k int, g int GENERATED ALWAYS AS (k * 2) STORED)",
                f"INSERT INTO {name} SELECT x, 'a' || x, 'b' || x, x, x, 'ok', x "
                "FROM generate_series(1, 3) x",
            )
        database.sql(
            f"CREATE PUBLICATION arctic_prod FOR TABLE {', '.join(tables)}",
            "SELECT pg_create_logical_replication_slot('arctic_prod', 'pgoutput')",
        )
        try:
            have_the_effects(guide, database, tables, new="a new table")
        finally:
            database.sql("SELECT pg_drop_replication_slot('arctic_prod')")


def have_the_effects(guide: SourceGuide, database: Server, tables: dict[str, Altered], new: str = "") -> None:
    """What the next run will do, and does, is what the page says."""
    shop = guide.shop
    cells = dict(map(tuple, guide.table("in the database")))
    for one in tables.values():
        (found,) = (right for left, right in cells.items() if cell_begins(left, one.row, tables))
        assert one.said in found, one
    rows = {one.row for one in tables.values()}
    assert len(cells) == len(rows) + bool(new), "each row of the page is tried"
    in_production(guide)
    page = yaml.safe_load(guide.block("# models/crm.yml").text)
    page["sources"][0]["tables"] = []
    shop.file("models/crm.yml", yaml.safe_dump(page, sort_keys=False))
    for name, one in tables.items():
        guide.add("models/crm.yml", name, f"{{table: {name}}}")
        guide.set("models/crm.yml", name, one.before)
        model = pulled("*", f"'crm', '{name}'", key="id")
        settings = "sequence_by='_source_sequence', on_schema_change='sync_all_columns', buckets=1"
        shop.model(name, model.replace("unique_key='id'", f"unique_key='id', {settings}"))
    shop.dbt("run")
    for name, one in tables.items():
        database.sql(f"UPDATE {name} SET b = 'before' WHERE id = 1")
        for statement in one.statements:  # VACUUM has a transaction of its own
            database.sql(statement.format(t=name))
        guide.set("models/crm.yml", name, one.after or "{}")
    planned = {one["model"]: one for one in Terminal(shop).json("ingest", "plan")}
    wrong = [
        (one, planned[name])
        for name, one in tables.items()
        if (bool(planned[name]["problem"]), planned[name]["reads_all"] and not planned[name]["problem"])
        != (one.fails, one.reads_all)
    ]
    assert wrong == []
    failing = [name for name, one in tables.items() if one.fails]
    said = shop.refusals("run", "--select", *failing)
    for name in failing:
        (code,) = re.findall(r"AR-\d+", tables[name].said) or ["AR-"]
        assert code in said[name], (tables[name], said[name])
    followed = [name for name in tables if name not in failing]
    shop.dbt("run", "--select", *followed)
    for name in followed:
        described = {column for column, *_ in shop.sql(f"DESCRIBE {{s}}.{name}")}
        columns = sorted(column for column in described if not column.startswith(("_", "#")))
        if "columns" not in tables[name].before:
            assert set(columns) == columns_of(database, name), tables[name]
        listed = ", ".join(f"CAST({column} AS STRING)" for column in columns)
        text = "CHAR" if database.kind == "mariadb" else "text"
        in_text = ", ".join(f"CAST({column} AS {text})" for column in columns)
        found = database.sql(f"SELECT {in_text} FROM {name}")
        if "optional" in (tables[name].after or ""):
            at = columns.index("c")
            found = [(*row[:at], None, *row[at + 1 :]) for row in found]
        assert sorted(map(tuple, shop.sql(f"SELECT {listed} FROM {{s}}.{name}")), key=repr) == sorted(
            found, key=repr
        ), tables[name]


def cell_begins(cell: str, row: str, tables: dict[str, Altered]) -> bool:
    """Whether a left cell is that of a row: no row with a longer beginning fits as well."""
    fitting = [one.row for one in tables.values() if cell.startswith(one.row)]
    return bool(fitting) and max(fitting, key=len) == row


def columns_of(database: Server, name: str) -> set[str]:
    """The columns of a table that are not generated."""
    found = database.sql(
        "SELECT column_name FROM information_schema.columns WHERE is_generated = 'NEVER' "
        f"AND table_name = '{name}'"
    )
    return {column for (column,) in found}


def test_a_mariadb_database_is_followed(
    shop: Shop, mariadb_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"db.example.com:3306": address(mariadb_server)}
    guide = SourceGuide(shop, "follow-a-mariadb-database", known=known, numbers=True, narrow=False)
    guide.section("")
    of_server = dict(
        line.split(" = ") if " = " in line else (line, "ON")
        for line in guide.text("[mariadbd]").strip().splitlines()[1:]
    )
    with crm(mariadb_server, monkeypatch) as database:
        grant(mariadb_server, "REVOKE ALL, GRANT OPTION FROM reader")
        grant(mariadb_server, *guide.text("BINLOG MONITOR").strip().replace("\n", "").split(";")[:-1])
        for name, value in of_server.items():
            (found,) = database.sql(f"SELECT @@{name}")[0]
            # The number of a server is its own. It keeps its log until it ends, which is not long.
            assert (
                name in ("server_id", "binlog_expire_logs_seconds")
                or {"1": "ON"}.get(str(found), str(found)) == value
            )
        in_production(guide)
        database.sql(*CUSTOMERS)
        guide.section("Generate the files")
        (printed,) = guide.printed.values()
        for name in ("binlog_format", "binlog_row_metadata"):
            assert f"{name}={of_server[name]}" in printed
        follow_customers(guide, database)
    guide.finish()


CONNECT = "org.apache.kafka.connect.data.Decimal"
ROW_OF_DEBEZIUM = [
    {"type": "int64", "field": "order_id"},
    {"type": "string", "field": "status"},
    {
        **{"type": "bytes", "name": CONNECT, "field": "amount"},
        "parameters": {"scale": "2", "connect.decimal.precision": "10"},
    },
    {"type": "string", "name": "io.debezium.time.ZonedTimestamp", "field": "changed_at"},
]
"""The types of the columns of the page, as a connector with schemas describes them."""


def event(place: int, operation: str, number: int, status: str = "new") -> dict[str, Any]:
    """What Debezium writes about a row of PostgreSQL."""
    row = {"order_id": number, "status": status, "amount": unscaled(Decimal(number)), "changed_at": None}
    row["changed_at"] = f"2026-01-01T10:00:{place:02}Z"
    sides = [{"type": "struct", "field": side, "fields": ROW_OF_DEBEZIUM} for side in ("before", "after")]
    place_in_log = {"lsn": place, "sequence": json.dumps(["1", str(place)]), "ts_ms": 1_700_000_000_000}
    return {
        "schema": {"type": "struct", "fields": sides},
        "payload": {
            "before": row if operation == "d" else None,
            "after": None if operation in "dt" else row,
            "source": {"connector": "postgresql", "schema": "public", "table": "orders", **place_in_log},
            **{"op": operation, "ts_ms": 1_700_000_000_001},
        },
    }


def key_of(number: int) -> str:
    """The key of a message of Debezium."""
    schema = {"type": "struct", "fields": ROW_OF_DEBEZIUM[:1]}
    return json.dumps({"schema": schema, "payload": {"order_id": number}})


def test_change_events_are_loaded(
    shop: Shop, kafka_broker: Broker, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = SourceGuide(shop, "load-change-events", schema="dev", numbers=True, narrow=False)
    monkeypatch.setenv("KAFKA", kafka_broker.servers)
    with topic(kafka_broker, "shop.public.orders") as orders:
        follow_the_events(guide, orders)
        truncate(guide, orders)
        with crm(postgres_server, monkeypatch) as database:
            load_the_table_first(guide, orders, database)
    guide.finish()


def follow_the_events(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop

    def send(*events: dict[str, Any]) -> None:
        for one in events:
            row = one["payload"]["after"] or one["payload"]["before"]
            orders.send(key_of(row["order_id"]), one)

    send(*(event(number, "r", number) for number in (1, 2, 3)))
    words = ["ingest", "init", "shop", "--kafka", orders.servers, "--topic", orders.name, "--dry-run"]
    printed = guide.type_in(words)
    written = yaml.safe_load(printed.partition("\n# models/shop/orders.sql")[0])["sources"][0]["tables"][0]
    declared = yaml.safe_load(guide.block("# models/shop.yml").text)["sources"][0]["tables"][0]
    of_page, generated = (one["config"]["meta"]["arctic"] for one in (declared, written))
    assert {**generated, "format": "debezium"} == {**of_page, "format": "debezium", "key": ["order_id"]}
    guide.section("Declare the source")
    shop.dbt("run")
    send(event(9, "u", 1, "paid"), event(8, "u", 1, "late"), event(10, "d", 2), event(11, "c", 4))
    send(event(11, "c", 4), event(12, "d", 3), event(13, "c", 30))
    orders.send(key_of(2), None)
    shop.dbt("run")
    rows = "order_id, status, cast(amount as int), unix_seconds(changed_at) % 60"
    stored = [(1, "paid", 1, 9), (30, "new", 30, 13), (4, "new", 4, 11)]
    assert shop.rows("orders", rows) == stored
    send(event(14, "u", 1, UNSENT))
    assert "unavailable: keep" in shop.fail("run")
    guide.set("models/shop.yml", "orders", guide.text("unavailable: keep"))
    shop.dbt("run")
    stored[0] = (1, "paid", 1, 14)
    assert shop.rows("orders", rows) == stored
    types = {name: kind for name, kind, *_ in shop.sql("DESCRIBE {s}.orders")}
    for names, kinds, _ in guide.table("column | type"):
        for name, kind in zip(spans(names), kinds.split(", "), strict=True):
            if name not in ("_source_file", "_source_modified", "_unavailable", "_action"):
                assert types[name] == kind.lower(), name


def truncate(guide: SourceGuide, orders: Topic) -> None:
    shop = guide.shop
    orders.send(None, event(20, "t", 0))
    orders.send(key_of(5), event(21, "c", 5))
    assert "AR-312" in shop.fail("run")
    (command,) = (one for one in guide.page_text.split("`") if one.startswith("dbt run --full-refresh"))
    guide.dbt(*command.split()[1:])
    assert shop.rows("orders", "order_id") == [(5,)]
    orders.send(key_of(1), event(9, "u", 1, "late"))
    orders.send(None, event(20, "t", 0))
    shop.dbt("run")
    assert shop.rows("orders", "order_id") == [(5,)]


def load_the_table_first(guide: SourceGuide, orders: Topic, database: Server) -> None:
    """The topic has what happened since the connector began: row 2 has changed, and row 3 is gone."""
    shop = guide.shop
    database.sql(
        "CREATE TABLE orders (order_id bigint PRIMARY KEY, status text, amount numeric(10,2))",
        "INSERT INTO orders VALUES (1, 'table', 1), (2, 'table', 2), (3, 'table', 3)",
    )
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    profiles["shop"]["outputs"]["dev"]["jdbc"] = {"shop_db": {"password": PASSWORD}}
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    settings = {"from": "jdbc", "url": os.environ["CRM"], "table": "public.orders"}
    table = {"name": "orders", "config": {"meta": {"arctic": settings}}}
    shop.file("models/shop_db.yml", yaml.safe_dump({"sources": [{"name": "shop_db", "tables": [table]}]}))
    guide.settings(
        "models/shop.yml", "orders", lambda known: {k: known[k] for k in known if k != "unavailable"}
    )
    shop.model("orders", guide.text("source('shop_db', 'orders')"))
    orders.delete_before(0, orders.ends()[0])
    orders.send(key_of(2), event(30, "u", 2, "log"))
    orders.send(key_of(3), event(31, "d", 3))
    guide.dbt("run", "--full-refresh")
    assert shop.rows("orders", "order_id, status") == [(1, "table"), (2, "log")]
    database.sql("UPDATE orders SET status = 'not in the log'")
    orders.send(key_of(1), event(32, "u", 1, "log"))
    shop.dbt("run")
    assert shop.rows("orders", "order_id, status") == [(1, "log"), (2, "log")]


CDC_COLUMNS = "{order_id: bigint, status: string, amount: bigint, op: string, changed_at: timestamp}"


def land(shop: Shop, name: str, *rows: tuple[Any, ...]) -> None:
    """A file with changes of orders."""
    texts = []
    for number, status, amount, op, second in rows:
        changed_at = f"2026-01-01 10:00:{second:02}"
        row = {"order_id": number, "status": status, "amount": amount, "op": op, "changed_at": changed_at}
        texts.append(json.dumps(row))
    shop.file(f"landing/{name}.json", "".join(f"{text}\n" for text in texts))


def test_each_row_on_auto_cdc_works(shop: Shop) -> None:
    """The models of the page, and of each setting that a right cell names, get the same changes."""
    guide = SourceGuide(shop, "migrate-from-auto-cdc")
    cells = {spans(left)[0] if spans(left) else left: right for left, right in guide.table("AUTO CDC | ")}
    shop.file(
        "models/landing.yml",
        "sources: [{name: landing, tables: [{name: order_changes, config: {meta: {arctic: "
        f"{{from: files, path: landing, format: json, columns: {CDC_COLUMNS}}}}}}}}}]}}]",
    )
    merged = guide.text("unique_key='order_id', sequence_by='changed_at', delete_when=\"op = 'D'\") }}")
    config, query = merged.split("\n\n")
    history = guide.text("incremental_strategy='history'")
    head = history.partition("\n\n")[0]
    models = {
        "merged": merged,
        "excepted": merged.replace("order_id, status, amount, op, changed_at", "* except (amount)"),
        "historied": history,
        "on_columns": history.replace("ignore_cols=['amount', 'op']", "check_cols=['status']"),
        "renamed": history.replace(
            "'amount', 'op']", "'amount', 'op'], snapshot_meta_column_names={'dbt_valid_from': '__START_AT'}"
        ),
        "partial": f"{config}\n{guide.text('array_compact')}",
        "several": f"{merged}\nunion all\nselect 100L, 'flow', 1L, 'U', timestamp'2026-01-01' "
        "from {{ incremental_pull(source('landing', 'order_changes')) }} where order_id = 1 and amount = 1",
        "once": f"{merged}\n{{% if not is_incremental() %}}\nunion all\n"
        "select id, 'backfill', 0L, 'U', timestamp'2025-01-01' from range(1, 9) as t(id)\n{% endif %}",
    }
    used = {
        "KEYS (id)": ("unique_key=", config),
        "SEQUENCE BY seq": ("sequence_by=", config),
        "APPLY AS DELETE WHEN op = 'D'": ("delete_when=\"op = 'D'\"", config),
        "COLUMNS * EXCEPT (op)": ("* except (", models["excepted"]),
        "STORED AS SCD TYPE 2": ("incremental_strategy='history'", head),
        "TRACK HISTORY ON (a, b)": ("check_cols=[", models["on_columns"]),
        "TRACK HISTORY ON * EXCEPT (c)": ("ignore_cols=[", head),
        "IGNORE NULL UPDATES": ("_unavailable", models["partial"]),
        "several flows into one target": ("union all", models["several"]),
        "AUTO CDC ONCE": ("{% if not is_incremental() %}", models["once"]),
        "FROM source": ("{{ incremental_pull(source('", query),
    }
    # The model's name, the keyed table itself, and what the page on change events has: no settings.
    others = {"the target table", "STORED AS SCD TYPE 1", "APPLY AS TRUNCATE WHEN"}
    assert cells.keys() == {*used, *others}
    for theirs, (setting, text) in used.items():
        assert setting in cells[theirs].replace("['a', 'b']", "["), theirs
        assert setting in text, theirs
    assert "snapshot_meta_column_names" in cells["STORED AS SCD TYPE 2"]
    assert "dbt_valid_from" in cells["STORED AS SCD TYPE 2"]
    for name, text in models.items():
        shop.model(name, text)
    land(shop, "1", (1, "new", 1, "I", 1), (2, "new", 2, "I", 1), (3, "new", 3, "I", 1))
    shop.dbt("run")
    backfilled = dict.fromkeys(range(4, 9), "backfill")
    assert dict(shop.rows("once", "order_id, status")) == {1: "new", 2: "new", 3: "new", **backfilled}
    # Row 1: a late change. Row 2: a delete, and a change from before it. Row 3: only the amount.
    land(shop, "2", (1, "paid", 1, "U", 9), (2, "new", 2, "D", 9), (3, "new", 30, "U", 9))
    shop.dbt("run")
    land(shop, "3", (1, "late", 1, "U", 5), (2, "late", 2, "U", 5))
    shop.dbt("run")
    state = {1: ("paid", 1), 3: ("new", 30)}
    for name in ("merged", "several", "once", "partial"):
        found = {key: (status, amount) for key, status, amount in shop.rows(name, "order_id, status, amount")}
        assert {key: found[key] for key in found if key < 4} == state, name
    assert dict(shop.rows("excepted", "order_id, status")) == {1: "paid", 3: "new"}
    assert (100, "flow") in shop.rows("several", "order_id, status")
    assert [key for (key,) in shop.rows("once", "order_id")] == [1, 3, *range(4, 9)]
    seconds = "order_id, status, amount, second({}) as valid_from, second(dbt_valid_to)"
    intervals = [
        *((1, "late", 1, 5, 9), (1, "new", 1, 1, 5), (1, "paid", 1, 9, None)),
        *((2, "late", 2, 5, 9), (2, "new", 2, 1, 5), (3, "new", 30, 1, None)),
    ]
    for name, start in (
        ("historied", "dbt_valid_from"),
        ("on_columns", "dbt_valid_from"),
        ("renamed", "__START_AT"),
    ):
        assert shop.rows(name, seconds.format(start)) == intervals, name
    land(shop, "4", (1, None, 7, "U", 20), (3, "sent", None, "U", 20))
    shop.dbt("run", "--select", "partial")
    assert shop.rows("partial", "order_id, status, amount") == [(1, "paid", 7), (3, "sent", 30)]
    land(shop, "5", (50, "new", None, "I", 20))
    assert "AR-313" in shop.fail("run", "--select", "partial")
    guide.finish()
