"""The reader through pyiceberg, against a REST catalog that answers from a dictionary."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from dbt_arctic.catalog.api import CatalogColumn, RelationEntry, ViewState
from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.errors import CatalogUnavailable, OnlyBySpark, UnknownRelation, VersionUnavailable

if TYPE_CHECKING:
    from tests.unit.catalog.conftest import HandmadeWarehouse

ENDPOINTS = [
    f"{method} /v1/{{prefix}}/namespaces{rest}"
    for method, rest in [
        ("GET", ""),
        ("GET", "/{namespace}/tables"),
        ("GET", "/{namespace}/tables/{table}"),
        ("GET", "/{namespace}/views"),
        ("GET", "/{namespace}/views/{view}"),
    ]
]


class RestServer:
    """Answers by path; 404 with the error type that Iceberg's REST specification names."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/v1/config": {"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS}
        }
        self.before_each: Callable[[str], object] = lambda path: None
        self.status, self.refusal = 404, "NoSuchNamespaceException"
        answers, server = self.answers, self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.before_each(self.path)
                answer = answers.get(self.path.partition("?")[0])
                missing = {"error": {"message": "no", "type": server.refusal, "code": server.status}}
                body = json.dumps(missing if answer is None else answer).encode()
                self.send_response(server.status if answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Nothing: pytest's output is for tests."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def open_rest(rest: RestServer, uri: str = "", views_by_sql: bool = False, **spark: Any) -> RemoteCatalog:
    """The reader, with a Spark that answers ``spark`` by the first two words of a statement."""

    def run(sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = spark["_".join(sql.split()[:2])]
        return rows

    properties = {"type": "rest", "uri": uri or rest.uri}
    return RemoteCatalog("lake", properties, SparkSqlCatalog("lake", run), views_by_sql=views_by_sql)


def test_a_server_that_forbids_what_does_not_exist_lacks_it(rest: RestServer, catalog: RemoteCatalog) -> None:
    rest.status, rest.refusal = 403, "ForbiddenException"
    assert catalog.list_relations("none") == catalog.list_names("none") == []
    for schema in ("none", "a"):
        assert catalog.load_table(schema, "none") is None
        assert catalog.load_view(schema, "none") is None
    assert catalog.has_views()
    assert catalog.load_table("a", "t") is not None


@pytest.mark.parametrize("path", ["/tables/t", "/tables"])
def test_a_table_that_is_listed_and_forbidden_is_not_missing(
    rest: RestServer, catalog: RemoteCatalog, path: str
) -> None:
    rest.status, rest.refusal = 403, "ForbiddenException"
    del rest.answers[f"/v1/namespaces/a{path}"]
    del rest.answers["/v1/namespaces/a/views/v"]
    with pytest.raises(CatalogUnavailable, match="Forbidden"):
        catalog.load_table("a", "t" if path == "/tables/t" else "u")
    with pytest.raises(CatalogUnavailable, match="Forbidden"):
        catalog.load_view("a", "v")


@pytest.fixture
def rest() -> Iterator[RestServer]:
    server = RestServer()
    yield server
    server.close()


@pytest.fixture
def catalog(rest: RestServer, handmade: HandmadeWarehouse) -> RemoteCatalog:
    """A schema ``a`` with a table ``t`` and a view ``v``."""
    fields = [handmade.column(1, "id", "long", "the key", required=True)]
    table = handmade.table(
        "a",
        "t",
        schemas=[{"type": "struct", "schema-id": 0, "fields": fields}],
        properties={"k": "v"},
        last_sequence_number=1,
        last_updated_ms=1000,
        last_column_id=1,
        next_row_id=0,
        partition_specs=[{"spec-id": 0, "fields": []}],
        default_spec_id=0,
        last_partition_id=999,
        sort_orders=[{"order-id": 0, "fields": []}],
        default_sort_order_id=0,
        current_snapshot_id=7,
        snapshots=[
            {
                "snapshot-id": 7,
                "sequence-number": 1,
                "timestamp-ms": 1000,
                "manifest-list": str(handmade.folder / "none.avro"),
                "summary": {"operation": "append", "arctic.txn": "9"},
                "first-row-id": 0,
                "added-rows": 1,
            }
        ],
        refs={"main": {"snapshot-id": 7, "type": "branch"}},
    )
    view = json.loads(gzip.decompress(handmade.view("a", "v", {"p": "q"}).read_bytes()))
    view |= {
        "view-uuid": "1643fd5e-1a41-4fee-bee1-f3c6a16493df",
        "version-log": [{"timestamp-ms": 1, "version-id": 1}],
    }
    view["versions"][0] |= {"timestamp-ms": 1, "summary": {}, "default-namespace": ["a"]}
    rest.answers |= {
        "/v1/namespaces": {"namespaces": [["b"], ["a"]]},
        "/v1/namespaces/a/tables": {"identifiers": [{"namespace": ["a"], "name": "t"}]},
        "/v1/namespaces/a/views": {"identifiers": [{"namespace": ["a"], "name": "v"}]},
        "/v1/namespaces/a/tables/t": {
            "metadata-location": str(table),
            "metadata": json.loads(table.read_text()),
            "config": {},
        },
        "/v1/namespaces/a/views/v": {"metadata-location": "x", "metadata": view, "config": {}},
    }
    return open_rest(rest)


def test_schemas_and_relations_are_listed(catalog: RemoteCatalog) -> None:
    assert catalog.list_schemas() == ["a", "b"]
    assert catalog.list_relations("a") == [
        RelationEntry("a", "t", "table"),
        RelationEntry("a", "v", "view", {"p": "q"}),
    ]
    assert catalog.list_relations("nowhere") == []


def test_a_table_is_read_as_the_embedded_catalog_reads_it(
    catalog: RemoteCatalog, handmade: HandmadeWarehouse
) -> None:
    from dbt_arctic.catalog.embedded import EmbeddedCatalog

    assert catalog.load_table("a", "t") == EmbeddedCatalog("lake", handmade.folder).load_table("a", "t")
    assert catalog.load_table("a", "nothing") is None


def test_a_table_whose_server_names_no_location_is_read_each_time(
    rest: RestServer, catalog: RemoteCatalog
) -> None:
    answer = rest.answers["/v1/namespaces/a/tables/t"]
    for location in (None, ""):
        answer["metadata-location"] = location
        for value in ("before", "after"):
            answer["metadata"]["properties"] = {"k": value}
            table = catalog.load_table("a", "t")
            assert table is not None
            assert table.properties["k"] == value


def test_a_view_is_read(catalog: RemoteCatalog) -> None:
    columns = (CatalogColumn("id", "int", "a number"),)
    view = catalog.load_view("a", "v")
    assert view is not None
    assert view.location
    assert replace(view, location="") == ViewState("a", "v", {"p": "q"}, columns, "SELECT 1 AS id")
    assert catalog.load_view("a", "nothing") is None


def test_files_that_cannot_be_read_are_an_error_that_names_them(
    catalog: RemoteCatalog, handmade: HandmadeWarehouse
) -> None:
    with pytest.raises(CatalogUnavailable) as caught:
        catalog.data_files("a", "t", 7, "id")
    assert caught.value.where == str(handmade.folder / "none.avro")


@pytest.mark.usefixtures("catalog")
def test_views_are_read_by_spark_if_pyiceberg_has_none(rest: RestServer) -> None:
    reader = open_rest(
        rest,
        views_by_sql=True,
        SHOW_VIEWS=[("a", "by_sql", False), ("", "temporary", True)],
        SHOW_TBLPROPERTIES=[("p", "q"), ("provider", "iceberg")],
    )
    assert reader.list_relations("a") == [
        RelationEntry("a", "by_sql", "view", {"p": "q"}),
        RelationEntry("a", "t", "table"),
    ]


def test_a_table_beyond_pyiceberg_is_read_by_sql(catalog: RemoteCatalog, rest: RestServer) -> None:
    fields = rest.answers["/v1/namespaces/a/tables/t"]["metadata"]["schemas"][0]["fields"]
    fields.append({"id": 2, "name": "v", "type": "variant", "required": False})
    reader = open_rest(
        rest,
        SHOW_SCHEMAS=[("a",)],
        SHOW_TABLES=[("a", "t", False)],
        SELECT_1=[(1,)],
        DESCRIBE_QUERY=[("id", "bigint", None), ("v", "variant", None)],
    )
    assert reader.columns_at("a", "t", 7) == {
        "id": CatalogColumn("id", "bigint"),
        "v": CatalogColumn("v", "variant"),
    }


@pytest.mark.parametrize("is_reached", [True, False])
def test_a_table_in_hdfs_is_read_by_sql(
    catalog: RemoteCatalog, rest: RestServer, monkeypatch: pytest.MonkeyPatch, is_reached: bool
) -> None:
    """REST returns the metadata itself; the client of Hive reads them from HDFS."""
    rest.answers["/v1/namespaces/a/tables/t"]["metadata"]["location"] = "hdfs://namenode/a/t"
    if not is_reached:

        def load(*name: Any) -> None:
            raise OSError("Unable to load libjvm\n  dlopen(/usr/lib/jvm/libjvm.so) failed")

        monkeypatch.setattr(RestCatalog, "load_table", load)
    reader = open_rest(
        rest,
        SHOW_SCHEMAS=[("a",)],
        SHOW_TABLES=[("a", "t", False)],
        SELECT_1=[(1,)],
        DESCRIBE_QUERY=[("id", "bigint", None)],
    )
    assert reader.columns_at("a", "t", 7) == {"id": CatalogColumn("id", "bigint")}
    with pytest.raises(OnlyBySpark):
        reader.arrow_table("a", "t")


def test_a_view_beyond_pyiceberg_is_read_by_sql(catalog: RemoteCatalog, rest: RestServer) -> None:
    fields = rest.answers["/v1/namespaces/a/views/v"]["metadata"]["schemas"][0]["fields"]
    fields.append({"id": 2, "name": "v", "type": "variant", "required": False})
    reader = open_rest(
        rest,
        SHOW_SCHEMAS=[("a",)],
        SHOW_VIEWS=[("a", "v", False)],
        DESCRIBE_TABLE=[("id", "int", None), ("v", "variant", None)],
        SHOW_TBLPROPERTIES=[("p", "q")],
        SHOW_CREATE=[("CREATE VIEW a.v (id, v) AS SELECT 1 AS id, v FROM t",)],
    )
    view = reader.load_view("a", "v")
    assert view is not None
    assert (view.properties, [column.type for column in view.columns]) == ({"p": "q"}, ["int", "variant"])
    assert [entry.name for entry in reader.list_relations("a")] == ["t", "v"]


def test_a_listing_is_loaded_with_several_requests_at_once(catalog: RemoteCatalog, rest: RestServer) -> None:
    together = threading.Barrier(2)
    rest.before_each = lambda path: together.wait(20) if path.endswith(("/t", "/v")) else None
    listed = [RelationEntry("a", "t", "table"), RelationEntry("a", "v", "view")]
    loaded = catalog.load_all("a", listed)
    rest.before_each = lambda path: None
    assert loaded == [catalog.load_table("a", "t"), catalog.load_view("a", "v")]
    assert None not in loaded
    assert catalog.load_all("a", [*listed, RelationEntry("a", "gone", "table")]) == [*loaded, None]


def test_what_pyiceberg_cannot_read_of_a_listing_is_read_by_the_thread_that_asks(
    catalog: RemoteCatalog, rest: RestServer
) -> None:
    fields = rest.answers["/v1/namespaces/a/views/v"]["metadata"]["schemas"][0]["fields"]
    fields.append({"id": 2, "name": "v", "type": "variant", "required": False})
    threads: set[int] = set()

    def spark(sql: str) -> list[tuple[Any, ...]]:
        threads.add(threading.get_ident())
        return [("a", "v", False)] if sql.startswith("SHOW VIEWS") else []

    reader = RemoteCatalog(
        "lake", {"type": "rest", "uri": rest.uri}, SparkSqlCatalog("lake", spark), views_by_sql=False
    )
    listed = [RelationEntry("a", "t", "table"), RelationEntry("a", "v", "view")]
    assert reader.load_all("a", listed) == [catalog.load_table("a", "t"), None]
    assert threads == {threading.get_ident()}


def test_a_server_without_views_has_none(catalog: RemoteCatalog, rest: RestServer) -> None:
    rest.answers["/v1/config"]["endpoints"] = [one for one in ENDPOINTS if "views" not in one]
    reader = open_rest(rest)
    assert reader.load_view("a", "v") is None
    assert [entry.name for entry in reader.list_relations("a")] == ["t"]


def test_columns_of_a_snapshot(catalog: RemoteCatalog) -> None:
    assert catalog.columns_at("a", "t", 7) == {
        "id": CatalogColumn("id", "bigint", "the key", nullable=False, field_id=1)
    }
    with pytest.raises(VersionUnavailable):
        catalog.columns_at("a", "t", 8)
    with pytest.raises(UnknownRelation):
        catalog.columns_at("a", "nothing", 7)


def test_a_catalog_that_does_not_answer_is_an_error_without_its_password() -> None:
    server = RestServer()
    server.close()
    uri = server.uri.replace("http://", "http://ada:secret@")
    with pytest.raises(CatalogUnavailable, match="did not answer") as caught:
        open_rest(server, uri=uri).list_schemas()
    assert "secret" not in caught.value.where
