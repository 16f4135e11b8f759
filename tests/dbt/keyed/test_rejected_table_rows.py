"""Rows of a database's table that do not fit: they fail the run, are stored in a table, or are counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dbt_arctic.engine.session import SessionConnection

from .conftest import Shop, Terminal
from .database_servers import Server, running_server
from .kafka_topics import add_reader
from .test_database_sources import declare

NOT_A_NUMBER = "the value of balance cannot be read as DECIMAL(38,18)"
NO_NAME = "the required column name is NULL"
TEXT = {"id": "int", "name": "string", "balance": "string", "updated_at": "timestamp"}
KEYED = """{{ config(materialized='incremental', unique_key='id') }}
select id, name, cast(balance as string) as balance, _action
from {{ incremental_pull(source('crm', 'NAME')) }}"""
ONCE = """{{ config(materialized='incremental', incremental_strategy='append') }}
select id, name, cast(balance as string) as balance from {{ incremental_pull(source('crm', 'NAME')) }}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, shop_connection: SessionConnection) -> Iterator[Server]:
    with running_server("postgresql") as made:
        add_reader(shop_connection, tmp_path_factory.mktemp("postgresql"), "postgresql")
        yield made


class Accounts:
    """A table in which a balance can be no number, and a name can be missing."""

    def __init__(self, server: Server) -> None:
        self.server = server
        server.sql(
            "CREATE TABLE accounts (id int PRIMARY KEY, name text, balance numeric, updated_at timestamptz)"
        )

    def put(self, number: int, balance: str, at: str, name: str = "") -> None:
        """Write a row with a time of 2026-01-01. The default name is made of the number; ``-`` is none."""
        named = "NULL" if name == "-" else f"'{name or f'n{number}'}'"
        self.server.sql(
            f"INSERT INTO accounts VALUES ({number}, {named}, '{balance}', '2026-01-01 {at}+00') "
            "ON CONFLICT (id) DO UPDATE SET name = excluded.name, balance = excluded.balance, "
            "updated_at = excluded.updated_at"
        )

    def delete(self, number: int) -> None:
        self.server.sql(f"DELETE FROM accounts WHERE id = {number}")


def raw(number: int, balance: str, at: str, name: str | None = "") -> str:
    made = {
        "id": str(number),
        "name": f"n{number}" if name == "" else name,
        "balance": balance,
        "updated_at": f"2026-01-01 {at}",
    }
    return json.dumps(made, separators=(",", ":"))


def stored(shop: Shop, name: str) -> dict[int, Any]:
    found = shop.sql(f"SELECT id, balance FROM {{s}}.{name}")
    assert len({row[0] for row in found}) == len(found), "a row is there twice"
    return {row[0]: row[1] if row[1] == "NaN" else float(row[1]) for row in found}


def rejected(shop: Shop, name: str) -> dict[int, tuple[str, str | None]]:
    """The error and the values of each rejected row."""
    found = shop.sql(f"SELECT key, error, raw FROM {{s}}.{name}__rejected")
    made = {int(json.loads(key)["id"]): (error, values) for key, error, values in found}
    assert len(made) == len(found), "a row was rejected twice"
    return made


def when(shop: Shop, name: str) -> dict[str, Any]:
    return dict(map(tuple, shop.sql(f"SELECT key, rejected_at FROM {{s}}.{name}__rejected")))


def test_rows_that_do_not_fit_are_those_of_the_last_read(shop: Shop, server: Server) -> None:
    accounts = Accounts(server)
    by_cursor = {"table": "accounts", "cursor": "updated_at", "overlap": "5 seconds", "required": ["NAME"]}
    kept = {**by_cursor, "on_bad_row": "quarantine"}
    sources: dict[str, dict[str, Any]] = {
        "kept": kept,
        "compared": {**kept, "deletes": "compare"},
        "whole": {"table": "accounts", "on_bad_row": "quarantine", "required": ["name"]},
        "dropped": {**by_cursor, "on_bad_row": "drop"},
        "once": {**kept, "overlap": 0},
        "strict": {**by_cursor, "columns": ["id", "name", "updated_at"]},
    }
    declare(shop, server, **sources)
    for name in ("kept", "compared", "whole", "dropped"):
        shop.model(name, KEYED.replace("NAME", name))
    shop.model("once", ONCE.replace("NAME", "once"))
    shop.model("strict", KEYED.replace("NAME", "strict").replace("cast(balance as string) as balance,", ""))
    for number in (1, 2, 3, 4):
        accounts.put(number, f"{number}.5", f"10:00:0{number}")
    accounts.put(5, "NaN", "10:00:05")
    accounts.put(6, "6", "10:00:06", "-")
    accounts.put(9, "NaN", "10:00:07", "-")
    results = {one.node.name: one for one in shop.try_dbt("run").result.results}
    said = str(results.pop("strict").message)
    assert "AR-311" in said
    assert "has NULL in the column name, which the source crm.strict requires" in said
    assert {str(one.status) for one in results.values()} == {"success"}
    (shop.folder / "models" / "strict.sql").unlink()

    wrong: dict[int, tuple[str, str | None]] = {
        5: (NOT_A_NUMBER, raw(5, "NaN", "10:00:05")),
        6: (NO_NAME, raw(6, "6", "10:00:06", None)),
        9: (f"{NOT_A_NUMBER}; {NO_NAME}", raw(9, "NaN", "10:00:07", None)),
    }
    good = {1: 1.5, 2: 2.5, 3: 3.5, 4: 4.5}
    keyed = ("kept", "compared", "whole")
    for name in keyed:
        assert (stored(shop, name), rejected(shop, name)) == (good, wrong), name
    assert rejected(shop, "dropped") == {key: (error, None) for key, (error, _) in wrong.items()}
    assert stored(shop, "dropped") == stored(shop, "once") == good
    ((source, place, at, position),) = shop.sql(
        "SELECT source, location, date_format(modified, 'HH:mm:ss'), position FROM {s}.kept__rejected "
        'WHERE key = \'{"id":"5"}\''.replace('{"', '{{"').replace('"}', '"}}')
    )
    assert (source, place, at, position) == ("crm.kept", "accounts", "10:00:05", 0)
    terminal = Terminal(shop)
    status = {one["table"].rpartition(".")[2]: one for one in terminal.json("status")}
    assert status["kept"]["rejected"] == [{"source": "crm.kept", "rows": 3, "dropped": 0}]
    assert status["dropped"]["rejected"] == [{"source": "crm.dropped", "rows": 0, "dropped": 3}]

    # Rows within the overlap are read again, and those that have not changed are rejected once.
    before = when(shop, "kept")
    accounts.put(7, "7", "10:00:08")
    shop.dbt("run")
    good[7] = 7.0
    for name in keyed:
        assert (stored(shop, name), rejected(shop, name)) == (good, wrong), name
    assert when(shop, "kept") == before
    assert len(rejected(shop, "dropped")) == 3
    shop.dbt("run")
    assert shop.script.jobs == 0

    # Rows are corrected, become wrong, stay wrong, and are deleted; and runs end anywhere.
    accounts.put(5, "5.5", "10:01:00")
    accounts.put(3, "NaN", "10:00:31")
    accounts.put(6, "66", "10:00:32", "-")
    accounts.put(8, "0.1234567890123456789", "10:01:03")
    for number in (2, 9):
        accounts.delete(number)
    told = {one["model"]: one for one in terminal.json("ingest", "plan")}
    assert (told["kept"]["rejected"], told["dropped"]["dropped"], told["kept"]["rows"]) == (3, 3, 6)
    for ends in ((4, 5, 6, 5), (6, 7, 4, 3)):
        shop.end({name: (at, at % 2 == 0) for name, at in zip((*keyed, "once"), ends, strict=True)})
        shop.try_dbt("run", "--select", *keyed, "once")
    shop.end({})
    shop.dbt("run")
    good[5] = 5.5
    of_compared = {key: value for key, value in good.items() if key != 2}
    now = {
        3: (NOT_A_NUMBER, raw(3, "NaN", "10:00:31")),
        6: (NO_NAME, raw(6, "66", "10:00:32", None)),
        8: (NOT_A_NUMBER, raw(8, "0.1234567890123456789", "10:01:03")),
    }
    # A row that is rejected is not deleted, and keeps its earlier state.
    assert (stored(shop, "compared"), rejected(shop, "compared")) == (of_compared, now)
    for name in ("kept", "whole"):
        assert (stored(shop, name), rejected(shop, name)) == (good, {**now, 9: wrong[9]}), name
    assert rejected(shop, "dropped").keys() == {3, 6, 8, 9}
    # A model without a key has each state that it has read.
    states = [values for _, values in (*wrong.values(), *now.values())]
    assert sorted(row[0] for row in shop.sql("SELECT raw FROM {s}.once__rejected")) == sorted(
        map(str, states)
    )
    appended = sorted(map(tuple, shop.sql("SELECT id, balance FROM {s}.once")))
    assert [key for key, _ in appended] == [1, 2, 3, 4, 5, 7]

    # After a fix, a replay takes the rows that fit, unless the same run reads a newer state.
    accounts.put(8, "8.5", "10:02:00")
    declare(
        shop,
        server,
        **{name: {**settings, "columns": TEXT} for name, settings in sources.items() if name != "strict"},
    )
    shop.end({"kept": (7, False)})
    terminal("ingest", "replay", "--select", "kept", code=1)
    shop.end({})
    terminal("ingest", "replay")
    good |= {3: "NaN", 8: 8.5}
    for name in ("kept", "whole"):
        # The last state of a row that was deleted since still lacks a name.
        assert (stored(shop, name), rejected(shop, name).keys()) == (good, {6, 9}), name
    assert rejected(shop, "kept")[9] == (NO_NAME, wrong[9][1])
    of_compared |= {3: "NaN", 8: 8.5}
    assert (stored(shop, "compared"), rejected(shop, "compared").keys()) == (of_compared, {6})
    of_once = sorted(row[0] for row in shop.sql("SELECT id FROM {s}.once"))
    assert of_once == [1, 2, 3, 3, 4, 5, 5, 7, 8, 8]
    terminal("ingest", "replay")
    assert stored(shop, "kept") == good

    # With the policy fail, rejected rows that were corrected in the database leave as well.
    declare(shop, server, kept={**by_cursor, "columns": TEXT}, whole=sources["whole"])
    for name in ("compared", "dropped", "once"):
        (shop.folder / "models" / f"{name}.sql").unlink()
    accounts.put(6, "6.5", "10:03:00")
    shop.dbt("run", "--select", "kept")
    good[6] = 6.5
    assert (stored(shop, "kept"), rejected(shop, "kept").keys()) == (good, {9})
    # Without the value of a column that is read now, a rejected row stays.
    server.sql("ALTER TABLE accounts ADD COLUMN size int")
    wider = {**kept, "required": [], "columns": {**TEXT, "size": "int"}}
    declare(shop, server, kept=wider, whole=sources["whole"])
    terminal("ingest", "replay", "--select", "kept")
    assert (stored(shop, "kept"), rejected(shop, "kept").keys()) == (good, {9})
    # A full refresh begins without rejected rows.
    accounts.put(4, "NaN", "10:03:01")
    shop.dbt("run", "--full-refresh", "--select", "whole")
    assert rejected(shop, "whole").keys() == {3, 4}
    assert stored(shop, "whole").keys() == {1, 5, 6, 7, 8}
