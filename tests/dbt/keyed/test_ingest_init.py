"""``dbt-arctic ingest init --jdbc``: what it writes loads the tables of real databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection
from tests.matrix.components import PASSWORD

from .conftest import Shop
from .database_servers import KINDS, Server, running_server
from .kafka_topics import add_reader


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path: Path, shop_connection: SessionConnection) -> Any:
    with running_server(request.param) as started:
        add_reader(shop_connection, tmp_path, request.param)
        yield started


def log_in(shop: Shop, **login: str) -> None:
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for output in profile["shop"]["outputs"].values():
        output["jdbc"] = {"crm": {"password": PASSWORD, **login}}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")


def init(shop: Shop, *words: str) -> Result:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    return CliRunner().invoke(main, ["ingest", "init", "crm", *words, *folders])


def test_the_written_files_load_the_tables_and_later_their_changes(shop: Shop, server: Server) -> None:
    is_postgres = server.kind == "postgresql"
    schema = "sales" if is_postgres else server.sql("SELECT database()")[0][0]
    partitioned = [
        "CREATE TABLE sales.days (day int) PARTITION BY RANGE (day)",
        "CREATE TABLE sales.days_2026 PARTITION OF sales.days FOR VALUES FROM (0) TO (366)",
    ]
    server.sql(
        *(["CREATE SCHEMA sales", *partitioned] if is_postgres else []),
        f"CREATE TABLE {schema}.orders (id int PRIMARY KEY, total decimal(9,2), updated_at timestamp NULL)",
        f"CREATE TABLE {schema}.order_lines (id int, line int, sku varchar(9), PRIMARY KEY (line, id))",
        f"CREATE TABLE {schema}.visits (at timestamp NULL, page varchar(9))",
        f"CREATE VIEW {schema}.all_orders AS SELECT * FROM {schema}.orders",
        f"INSERT INTO {schema}.orders VALUES (1, 1.50, '2026-01-01 10:00:00'), (2, 20.00, NULL)",
        f"INSERT INTO {schema}.order_lines VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c')",
    )
    log_in(shop)
    words = ["--jdbc", server.url, "--compare-deletes", "--prefix", "crm_"]

    refused = init(shop, *words, "--table", "order")
    assert "no table matches order" in refused.output
    assert f"{schema}.orders" in refused.output
    assert not (shop.folder / "models" / "crm").exists()

    written = init(shop, *words)
    assert written.exit_code == 0, written.output
    assert "all_orders" not in written.output
    assert ("sales.days" in written.output, "days_2026" in written.output) == (is_postgres, False)
    assert "not written: it has no primary key" in written.output
    assert {path.name for path in (shop.folder / "models" / "crm").iterdir()} == {
        "crm.yml",
        "crm_orders.sql",
        "crm_order_lines.sql",
    }
    again = init(shop, *words)
    assert "the project has the file models/crm/crm.yml already" in again.output

    def compare() -> None:
        for name, columns in (("orders", "id, total"), ("order_lines", "id, line, sku")):
            rows = server.sql(f"SELECT {columns} FROM {schema}.{name}")
            assert sorted(map(tuple, shop.sql(f"SELECT {columns} FROM {{s}}.crm_{name}"))) == sorted(rows)

    shop.dbt("build")
    compare()
    server.sql(
        f"DELETE FROM {schema}.orders WHERE id = 1",
        f"INSERT INTO {schema}.orders VALUES (3, 7.25, '2026-01-01 11:00:00')",
        f"UPDATE {schema}.order_lines SET sku = 'z' WHERE id = 2",
    )
    shop.dbt("build")
    compare()

    log_in(shop, url=server.url)
    (shop.folder / "models" / "crm" / "crm.yml").unlink()
    assert "url" not in init(shop, "--jdbc", "--table", "orders", "--dry-run").output


def test_a_source_needs_a_database(shop: Shop) -> None:
    missing = init(shop, "--jdbc")
    assert "the profile has no database crm" in missing.output
    assert "postgresql://" in missing.output
    with_password = init(shop, "--jdbc", "postgresql://me:hunter2@localhost:1/crm")
    assert "contains a password" in with_password.output
    assert "hunter2" not in with_password.output
    assert "needs --kafka" in init(shop, "--topic", "a").output
    followed = init(shop, "--jdbc", "postgresql://me@localhost:1/crm", "--follow")
    assert "use --slot NAME for PostgreSQL" in followed.output
    assert "need --jdbc" in init(shop, "--table", "orders").output
    assert "not --source" in init(shop, "--jdbc", "--source", "crm").output
