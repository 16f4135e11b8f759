"""Hostile descriptions and names through dbt; and no secret of a profile in anything that a run leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop

pytestmark = pytest.mark.usefixtures("dbt_log")

EVIL = "`; DROP TABLE x; -- ' \" \\ ${env:HOME} /* */ %s ü😀"
TEXT = f"{EVIL}\n'''\\'\\u0024 $$"
COLUMN = "a`; -- ' ${env:HOME}"
CANARY = "canary-4711-of-a-profile"


def documented(materialized: str) -> dict[str, Any]:
    config = {
        "materialized": materialized,
        "persist_docs": {"relation": True, "columns": True},
        "tags": [EVIL],
        "meta": {EVIL: EVIL},
        "tblproperties": {EVIL: EVIL},
        **({"unique_key": COLUMN, "buckets": 2} if materialized == "incremental" else {}),
    }
    if materialized == "view":
        del config["tblproperties"]
    columns = [{"name": COLUMN, "description": TEXT, "quote": True}]
    return {"name": f"a_{materialized}", "config": config, "description": TEXT, "columns": columns}


def test_descriptions_and_properties_are_stored_as_they_are(shop: Shop) -> None:
    models = [documented(materialized) for materialized in ("view", "table", "incremental")]
    comment = EVIL.replace("/* */", "")
    project = {"name": "shop", "version": "1.0", "profile": "shop", "query-comment": comment}
    shop.file("dbt_project.yml", yaml.safe_dump(project))
    shop.file("models/hostile.yml", yaml.safe_dump({"version": 2, "models": models}))
    name = COLUMN.replace("`", "``")
    for model in models:
        shop.model(model["name"], f"select 'x' as `{name}`, 1 as b")
    shop.dbt("run")
    shop.dbt("run")  # an incremental model is written to, the others are replaced

    shop.dbt("docs", "generate", "--static")
    docs = json.loads((shop.folder / "target" / "catalog.json").read_text())["nodes"]
    for model in models:
        assert shop.rows(model["name"]) == [("x", 1)]
        entry = shop.catalog.load_view(shop.schema, model["name"])
        shown = entry or shop.catalog.load_table(shop.schema, model["name"])
        assert shown is not None
        assert shown.columns[0].name == COLUMN
        assert shown.columns[0].comment == TEXT
        assert shown.properties["comment"] == TEXT
        if model["name"] != "a_view":
            stored = shop.state(model["name"], "base") if model["name"] == "a_incremental" else shown
            assert stored.properties[EVIL] == EVIL
        assert docs[f"model.shop.{model['name']}"]["columns"][COLUMN]["comment"] == TEXT


class Echo(BaseHTTPRequestHandler):
    """A REST catalog that refuses every login, and records the requests."""

    def answer(self) -> None:
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        told = {"error": "invalid_client", "error_description": f"{asked} {self.headers}"}
        body = json.dumps({**told, "message": asked, "code": 401, "type": "NotAuthorizedException"}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815  # names that the library asks for

    def log_message(self, *arguments: Any) -> None:
        """Nothing: the test's output stays clean."""


@pytest.fixture
def refusing() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def with_secrets(shop: Shop, **more: Any) -> None:
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text())
    profile["shop"]["outputs"]["dev"].update(more)
    path.write_text(yaml.safe_dump(profile))


def telling(folders: list[Path]) -> list[str]:
    return [
        str(path)
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.name != "profiles.yml" and CANARY.encode() in path.read_bytes()
    ]


def places(shop: Shop) -> list[Path]:
    """Wherever a run may leave something: the project, the tables' metadata, Spark's own log."""
    folder = shop.connection.process.folder
    assert folder is not None
    return [shop.folder, shop.warehouse / shop.schema, folder]


DEBUG = ("--log-level", "debug", "--log-level-file", "debug", "--debug")


def test_a_run_leaves_no_secret_of_its_profile_anywhere(shop: Shop, capfd: Any) -> None:
    properties = {"token": CANARY, "adls.sas-token": CANARY, "header.Authorization": f"Bearer {CANARY}"}
    with_secrets(shop, catalog_properties=properties)
    settings = "materialized='incremental', unique_key='a'"
    shop.model(
        "orders", f"{{{{ config({settings}) }}}} select 1 as a, {{{{ adapter.string_literal(target) }}}} as b"
    )
    shop.model("broken", "select a, nothing from {{ ref('orders') }}")
    shop.fail("build", *DEBUG)
    shop.dbt("docs", "generate")
    shop.try_dbt("debug")
    assert shop.rows("orders", "a") == [(1,)]
    assert telling(places(shop)) == []
    assert (shop.folder / "target" / "manifest.json").exists()
    assert "broken" in (shop.folder / "logs" / "dbt.log").read_text()
    assert CANARY not in "".join(capfd.readouterr())


def test_a_catalog_that_refuses_its_secret_is_not_quoted(shop: Shop, refusing: str, capfd: Any) -> None:
    with_secrets(shop, catalog_properties={"type": "rest", "uri": refusing, "credential": f"me:{CANARY}"})
    shop.model("orders", "select 1 as a")
    said = shop.fail("run", *DEBUG)
    said += str(shop.try_dbt("debug"))
    assert "AR-104" in said
    assert CANARY not in said
    assert telling(places(shop)) == []
    assert CANARY not in "".join(capfd.readouterr())


def test_settings_that_cannot_be_changed_any_more_are_told_without_their_secrets(shop: Shop) -> None:
    assert shop.connection.process
    conf = yaml.safe_load((shop.folder / "profiles.yml").read_text())["shop"]["outputs"]["dev"]["spark_conf"]
    with_secrets(shop, spark_conf={**conf, "spark.hadoop.fs.s3a.secret.key": CANARY})
    shop.model("orders", "select 1 as a")
    said = shop.fail("run", *DEBUG)
    assert "spark.hadoop.fs.s3a.secret.key: None is running, ***** is wanted" in said
    assert telling([shop.folder]) == []
