"""Whether a catalog has views follows from its answers, and a view is refused where it has none."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.exceptions import NoSuchNamespaceError

from dbt_arctic.catalog.by_sql import SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.once import Once
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.errors import CatalogUnavailable, ConfigError, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context
from dbt_arctic.store.view_support import require_views

NO_SCHEMA = StatementError("Spark rejected a statement.", why="Namespace does not exist: no_such_schema")
NO_VIEWS = StatementError(
    "Spark rejected a statement.", why="Creating a view is not supported by catalog: lake"
)
NO_ENDPOINT = StatementError(
    "Spark rejected a statement.", why="Server does not support endpoint: POST /v1/{prefix}/views"
)


class Spark:
    """Answers each kind of statement with rows or an error, and notes what was sent."""

    def __init__(self, **answers: Exception) -> None:
        self.answers = answers
        self.ran: list[str] = []

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        self.ran.append(sql)
        answer = self.answers.get(sql.split()[0].lower())
        if answer is not None:
            raise answer
        return []


@pytest.mark.parametrize(
    ("spark", "has_views", "statements"),
    [
        (Spark(show=NO_SCHEMA), True, 1),
        (Spark(create=NO_VIEWS), False, 2),
        (Spark(create=NO_ENDPOINT), False, 2),
        (Spark(create=NO_SCHEMA), True, 2),
        (Spark(), True, 3),  # a catalog that makes schemas by itself: the view is dropped again
    ],
)
def test_the_answers_of_a_catalog_say_whether_it_has_views(
    spark: Spark, has_views: bool, statements: int
) -> None:
    catalog = SparkSqlCatalog("lake", spark)
    readers = [catalog, RemoteCatalog("lake", {"type": "glue"}, catalog, views_by_sql=True), Once(catalog)]
    assert [reader.has_views() for reader in readers] == [has_views] * 3
    assert len(spark.ran) == statements  # read once
    created = [sql for sql in spark.ran if sql.startswith("CREATE")]
    assert all("`dbt_arctic_no_such_schema`" in sql for sql in created)
    assert spark.ran[-1].startswith("DROP VIEW") == (statements == 3)


def test_a_catalog_that_does_not_answer_is_not_one_without_views() -> None:
    lost = SparkSqlCatalog("lake", Spark(show=CatalogUnavailable("The catalog did not answer.")))
    with pytest.raises(CatalogUnavailable):
        lost.has_views()


@pytest.mark.parametrize("step", ["show", "create"])
def test_an_error_that_does_not_name_the_schema_is_no_answer_and_is_not_kept(step: str) -> None:
    failure = StatementError("Spark rejected a statement.", why="OutOfMemoryError: Java heap space")
    spark = Spark(**{"show": failure, "create": failure} if step == "show" else {"create": failure})
    catalog = SparkSqlCatalog("lake", spark)
    with pytest.raises(StatementError, match="heap space"):
        catalog.has_views()
    spark.answers = {"create": NO_VIEWS}
    assert not catalog.has_views()


def test_an_error_of_listing_views_is_settled_by_the_attempt_to_create_one() -> None:
    failure = StatementError("Spark rejected a statement.", why="Listing views takes too long")
    assert not SparkSqlCatalog("lake", Spark(show=failure, create=NO_VIEWS)).has_views()


@pytest.mark.parametrize(
    "message",
    [
        "[SCHEMA_NOT_FOUND] The schema `lake`.`none` cannot be found. SQLSTATE: 42704",
        "NoSuchNamespaceException: none",
        "Namespace 'none' must exist.",
        "NoSuchObjectException: database none not found",
    ],
)
def test_each_way_to_say_that_there_is_no_schema_is_known(message: str) -> None:
    spark = Spark(show=StatementError("Spark rejected a statement.", why=message))
    assert SparkSqlCatalog("lake", spark).has_views()
    assert len(spark.ran) == 1


def test_the_embedded_catalog_has_views_and_needs_no_statement() -> None:
    assert EmbeddedCatalog("lake", "none").has_views()


@pytest.mark.parametrize("what", ["a view", "a clone"])
def test_without_views_a_view_is_refused_before_anything_is_written(what: str) -> None:
    spark = Spark(create=NO_VIEWS)

    def refused(*arguments: Any) -> Any:
        raise AssertionError(f"sent: {arguments}")

    context = Context(SparkSqlCatalog("lake", spark), refused, refused, refused)
    name = Name("lake", "shop", "orders")
    with pytest.raises(ConfigError, match="`lake` has no views") as error:
        require_views(context, name, "orders", what)
    assert "materialized: table" in error.value.fix
    assert len(spark.ran) == 2
    require_views(context, name, "orders")  # a keyed table has a record instead


class Server:
    """What pyiceberg answers for a schema that does not exist."""

    def __init__(self, answer: Exception | None) -> None:
        self.answer = answer
        self.requests = 0

    def list_views(self, namespace: tuple[str, ...]) -> list[tuple[str, ...]]:
        self.requests += 1
        if self.answer is not None:
            raise self.answer
        return []


@pytest.mark.parametrize(
    ("answer", "has_views", "statements"), [(NoSuchNamespaceError(), True, 0), (None, False, 2)]
)
def test_views_of_a_rest_server_need_no_spark(
    answer: Exception | None, has_views: bool, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = Spark(create=NO_VIEWS)
    catalog = RemoteCatalog("lake", {"type": "rest"}, SparkSqlCatalog("lake", spark), views_by_sql=False)
    server = Server(answer)
    monkeypatch.setattr(catalog, "_open", lambda: server)
    assert [catalog.has_views(), catalog.has_views()] == [has_views] * 2
    assert server.requests == 1, "the answer is kept: it is used for each relation that a statement reads"
    assert len(spark.ran) == statements
