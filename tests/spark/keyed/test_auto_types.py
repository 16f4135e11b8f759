"""Values that are equal and of two types are not the same in an expression: a text, a hash, a quotient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.extent import LONG, extent, first
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Killed, Orders

TYPES = {"id": "bigint", "k": "int", "amount": "decimal(10,2)"}


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table(types=TYPES)
    made.build([row(number) for number in range(6)])
    return made


def row(number: int, amount: str = "200.00") -> dict[str, Any]:
    return {"id": number, "k": number % 3, "amount": amount}


def follows(model: Model) -> str:
    """Refreshes, compares with the query, and returns the strategy."""
    choice = model.refresh()
    assert model.rows() == model.rows(model.sql)
    return choice


@pytest.mark.modelled
@pytest.mark.parametrize("key", first(1, ["md5(cast(c.id AS string))", "hash(c.id)"]))
def test_a_column_does_not_stand_for_one_of_another_type(shop: Any, orders: Orders, key: str) -> None:
    other = shop.table("profiles", {"cust": "decimal(38,10)", "plan": "int"}, unique_key="cust", buckets=2)
    other.build([{"cust": f"{number}", "plan": number} for number in range(6)])
    join = f"FROM {orders.name.sql} AS c JOIN {other.name.sql} AS p ON p.cust = c.id"
    model = Model(orders, "k", f"SELECT {key} AS k, p.plan AS plan {join}")
    model.refresh()
    other.upsert([{"cust": "5", "plan": 50}, {"cust": "9", "plan": 90}])
    assert follows(model).startswith("INCREMENTAL")
    other.delete([{"cust": "3"}])
    follows(model)


PARTS = "(SELECT k, id AS x FROM {0} UNION ALL SELECT k, amount AS x FROM {0}) AS u"


@dataclass(frozen=True)
class ModelCase:
    """A model by its key and SQL, and how it is refreshed."""

    key: str
    sql: str
    refresh: str = "INCREMENTAL"
    long: bool = False
    """Whether it is in the long form only."""


FULL = "FULL (unsupported)"
MODELS = {
    # A number that a column stands for has the digits of its type.
    "subquery": ModelCase(
        "id", "SELECT id, amount / months AS monthly FROM (SELECT id, amount, 12 AS months FROM {0}) AS t"
    ),
    "negative": ModelCase(
        "id",
        "SELECT id, amount / months AS monthly FROM (SELECT id, amount, -7 AS months FROM {0}) AS t",
        long=True,
    ),
    "cte": ModelCase(
        "id",
        "WITH t AS (SELECT id, amount, 12 AS months FROM {0}) SELECT id, amount / months AS monthly FROM t",
        long=True,
    ),
    "lateral": ModelCase("id", "SELECT id, 12 AS months, amount / months AS monthly FROM {0}", long=True),
    "parentheses": ModelCase(
        "id",
        "SELECT id, amount / months AS monthly FROM (SELECT id, amount, (12) AS months FROM {0}) AS t",
        long=True,
    ),
    "suffix": ModelCase(
        "id",
        "SELECT id, amount / months AS monthly FROM (SELECT id, amount, 12L AS months FROM {0}) AS t",
        long=True,
    ),
    "lateral suffix": ModelCase(
        "id",
        "SELECT id, 12L AS months, amount / months AS monthly, amount / -12L AS less FROM {0}",
        long=True,
    ),
    "sum": ModelCase(
        "id",
        "SELECT id, sum(amount / 12L) AS s, sum(amount / cast(12 AS bigint)) AS t FROM {0} GROUP BY id",
        long=True,
    ),
    # An expression over a union of two types has the type of both. Columns in its branches are cast as Spark
    # casts them. Of a computed decimal, the planner does not know the digits.
    "sums of both": ModelCase("k", f"SELECT k, sum(x / 3) AS s, count(*) AS n FROM {PARTS} GROUP BY k"),
    "keys of both": ModelCase(
        "k", f"SELECT cast(x AS string) AS k, count(*) AS n FROM {PARTS} GROUP BY 1", long=True
    ),
    "distinct": ModelCase(
        "k",
        "SELECT concat('v', x) AS k, 1 AS one "
        "FROM (SELECT id AS x FROM {0} UNION SELECT amount AS x FROM {0}) AS u",
        long=True,
    ),
    "computed": ModelCase(
        "k",
        "SELECT k, sum(x / 3) AS s, count(*) AS n FROM (SELECT k, amount AS x FROM {0} "
        "UNION ALL SELECT k, amount * 1.000 AS x FROM {0}) AS u GROUP BY k",
        FULL,
        long=True,
    ),
    "a lateral view": ModelCase(
        "k",
        f"SELECT v AS k, count(*) AS n FROM {PARTS} LATERAL VIEW explode(array(cast(x AS string))) e AS v "
        "GROUP BY 1",
        long=True,
    ),
    "exists": ModelCase(
        "k",
        f"SELECT o.k, count(*) AS n FROM {{0}} AS o WHERE EXISTS (SELECT 1 FROM {PARTS} "
        "WHERE cast(u.x AS string) = concat(o.id, '.00')) GROUP BY o.k",
        long=True,
    ),
    "divisor": ModelCase(
        "k",
        "SELECT k, sum(amount / n) AS s, count(*) AS c FROM (SELECT k, amount, 1 AS n FROM {0} "
        "UNION ALL SELECT k, amount, id + 1 AS n FROM {0}) AS u GROUP BY k",
        long=True,
    ),
    "plain columns": ModelCase(
        "k",
        f"SELECT k, sum(x) AS s, max(x) AS m, count(x) AS n FROM {PARTS} WHERE x > 1 GROUP BY k",
        long=True,
    ),
    "null in one part": ModelCase(
        "k",
        "SELECT k, sum((coalesce(amount, 7) - coalesce(back, 0)) / 3) AS s, count(*) AS n FROM ("
        "SELECT k, amount, NULL AS back FROM {0} UNION ALL SELECT k, NULL, amount FROM {0} WHERE id > 3"
        ") AS u GROUP BY k",
    ),
    # A part of a union divides differently from the whole: 0.19 has two digits for Spark, and 1.19 three.
    # tests/planner/test_union_types.py has these two.
    "numbers in both parts": ModelCase(
        "k",
        "SELECT k, count(*) AS n, sum(1000 / q) AS s, count(1000 / q) AS c FROM ("
        "SELECT k, amount * 0.19 AS q FROM {0} UNION ALL SELECT k, amount * 1.19 AS q FROM {0}"
        ") AS u GROUP BY k",
        FULL,
        long=True,
    ),
    "64 bits in one part": ModelCase(
        "k",
        "SELECT k, count(*) AS n, sum(3 / ceil(v, 0)) AS s, count(3 / ceil(v, 0)) AS c FROM ("
        "SELECT k, k + 1 AS v FROM {0} UNION ALL SELECT k, id + 1 AS v FROM {0}) AS u GROUP BY k",
    ),
    # Quotients by small integers: in hidden columns, in a state, and computed from what the model shows.
    "quotient": ModelCase(
        "k", "SELECT k, sum(amount) / max(CAST(id + 3 AS SMALLINT)) * 1000 AS r FROM {0} GROUP BY k", ""
    ),
    "quotient of a state": ModelCase(
        "k",
        "SELECT k, sum(amount) / CAST(k + 3 AS SMALLINT) * 1000 AS r FROM {0} GROUP BY k, "
        "CAST(k + 3 AS SMALLINT) HAVING count(*) > 0",
        "",
    ),
    "quotient of what is shown": ModelCase(
        "k",
        "SELECT k, count(*) AS n, sum(amount) AS s, count(amount) AS c, max(CAST(id + 3 AS SMALLINT)) AS m, "
        "sum(amount) / max(CAST(id + 3 AS SMALLINT)) * 1000 AS r FROM {0} GROUP BY k",
        "",
        long=True,
    ),
    # A number has the type that Spark gives it.
    "ones": ModelCase("k", "SELECT k, sum(1) AS n, sum(0) AS z FROM {0} GROUP BY k", "INCREMENTAL (sums)"),
    "a number of 32 bits with its sign": ModelCase(
        "k",
        "SELECT hash(m, id) AS k, bool_or(k > 1) AS b FROM (SELECT k, id, -2147483648 AS m FROM {0}) AS u "
        "GROUP BY hash(m, id)",
    ),
    "beyond 64 bits": ModelCase(
        "k",
        "SELECT k, count(*) AS n, sum(id + large) AS s, count(id + large) AS c "
        "FROM (SELECT k, id, 100000000000000000000 AS large FROM {0}) AS u GROUP BY k",
        long=True,
    ),
    "an interval by a number": ModelCase(
        "k",
        "SELECT k, CAST(avg((day - DATE'2020-01-01') * id) AS STRING) AS a "
        "FROM (SELECT k, id, CAST(date_add(DATE'2020-01-01', k) AS DATE) AS day FROM {0}) AS u GROUP BY k",
        long=True,
    ),
}


def test_numbers_have_the_digits_and_types_that_spark_gives_them(orders: Orders) -> None:
    """Models over one table, with one change for all."""
    models = {}
    for name, told in MODELS.items():
        if LONG or not told.long:
            models[name] = Model(orders, told.key, told.sql.format(orders.name.sql))
            models[name].name = models[name].name.sibling(name.replace(" ", "_"))
            models[name].refresh()
    changed = [row(1, "100.01"), row(7, "1.00"), row(8, "7.77"), row(9, "77.77")]
    orders.apply(changed, [{"id": 2}])
    for name, model in models.items():
        assert follows(model).startswith(MODELS[name].refresh), name


def test_a_column_that_was_made_wider_and_nothing_written_since(shop: Any, unbuilt: Orders) -> None:
    name = f"{unbuilt.name.schema}.measured"
    unbuilt.session.query(f"CREATE TABLE lake.{name} (id INT, f FLOAT) USING iceberg")
    unbuilt.session.query(f"INSERT INTO lake.{name} VALUES (1, 0.1), (2, 0.5)")
    model = Model(unbuilt, "id", f"SELECT id, cast(f AS string) AS s FROM lake.{name}")
    model.refresh()
    unbuilt.session.query(f"ALTER TABLE lake.{name} ALTER COLUMN f TYPE double")
    follows(model)
    unbuilt.session.query(f"INSERT INTO lake.{name} VALUES (3, 0.1)")
    follows(model)


def test_a_column_of_a_keyed_table_that_was_made_wider_by_a_run_that_was_cut_off(shop: Any) -> None:
    """The view has the new type, and so has what is computed of rows that no commit has written since."""
    old = shop.table("measured", {"id": "bigint", "f": "float"}, on_schema_change="sync_all_columns")
    old.build([{"id": 1, "f": 0.1}, {"id": 2, "f": 0.5}])
    old.upsert([{"id": 2, "f": 0.7}])
    model = Model(old, "id", f"SELECT id, cast(f AS string) AS s FROM {old.name.sql}")
    model.refresh()
    session, new = shop.session(), old.with_types({"id": "bigint", "f": "double"})

    def cut_off(step: str) -> None:
        if step == "upsert":
            raise Killed(step)

    session.statements.before = cut_off
    with pytest.raises(Killed):
        new.on(session).upsert([{"id": 3, "f": 0.1}])
    assert new.table.types["f"] == "double"
    follows(model)
    new.upsert([{"id": 3, "f": 0.1}])
    follows(model)


def test_rows_that_were_rewritten_before_the_upgrade_to_version_3_are_not_new(unbuilt: Orders) -> None:
    name = f"{unbuilt.name.schema}.events"
    query = unbuilt.session.query
    query(f"CREATE TABLE lake.{name} (id INT, v INT) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    query(f"INSERT INTO lake.{name} VALUES (1, 10), (2, 20)")
    query(f"INSERT INTO lake.{name} VALUES (3, 30)")
    model = Model(unbuilt, "k", f"SELECT id % 2 AS k, sum(v) AS s, count(*) AS n FROM lake.{name} GROUP BY 1")
    model.refresh()
    query(f"INSERT INTO lake.{name} VALUES (4, 40)")
    query(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
    query(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('format-version' = '3')")
    query(f"INSERT INTO lake.{name} VALUES (5, 50)")
    follows(model)


@pytest.mark.parametrize(("version", "again"), first(2, [("2", False), ("1", True), ("2", True)]))
def test_rows_that_were_added_before_the_upgrade_to_version_3_are_not_lost(
    unbuilt: Orders, version: str, again: bool
) -> None:
    name = f"{unbuilt.name.schema}.events"
    query = unbuilt.session.query
    properties = f"TBLPROPERTIES ('format-version' = '{version}')"
    query(f"CREATE TABLE lake.{name} (id INT, v INT) USING iceberg {properties}")
    query(f"INSERT INTO lake.{name} VALUES (1, 10)")
    model = Model(unbuilt, "k", f"SELECT id % 2 AS k, sum(v) AS s, count(*) AS n FROM lake.{name} GROUP BY 1")
    model.refresh()
    query(f"INSERT INTO lake.{name} VALUES (2, 20)")
    query(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('format-version' = '3')")
    if again:
        query(f"INSERT INTO lake.{name} VALUES (3, 30)")
    follows(model)
    query(f"INSERT INTO lake.{name} VALUES (4, 40)")
    follows(model)


def test_bytes_that_are_no_text_and_zeros_below_zero_are_told_apart(unbuilt: Orders) -> None:
    name = f"{unbuilt.name.schema}.raw"
    query = unbuilt.session.query
    properties = "TBLPROPERTIES ('format-version' = '2')"
    query(f"CREATE TABLE lake.{name} (id INT, f DOUBLE, s STRING, g INT) USING iceberg {properties}")
    latin = "CAST(X'636166E9' AS STRING)"
    query(f"INSERT INTO lake.{name} VALUES (1, CAST('-0.0' AS DOUBLE), {latin}, 1), (2, 0.0D, 'a', 10)")
    text = Model(unbuilt, "s", f"SELECT s, count(*) AS n, median(id) AS m FROM lake.{name} GROUP BY s")
    zero = "CAST(f AS STRING)"
    sums = f"SELECT {zero} AS k, sum(g) AS s, count(*) AS c FROM lake.{name} GROUP BY {zero}"
    zeros = Model(unbuilt, "k", sums)
    zeros.name = zeros.name.sibling("zeros")
    for model in (text, zeros):
        model.refresh()
    query(f"UPDATE lake.{name} SET g = 2 WHERE id = 1")
    assert follows(zeros).startswith("INCREMENTAL")
    query(f"INSERT INTO lake.{name} VALUES (3, CAST('-0.0' AS DOUBLE), {latin}, 5)")
    for model in (text, zeros):
        assert follows(model).startswith("INCREMENTAL")


@pytest.mark.parametrize(
    "value",
    first(
        1,
        [
            "sum(amount) AS s, count(amount) AS c, max(amount) AS m",
            "count(DISTINCT k) AS s",
            "median(k) AS s",
        ],
    ),
)
def test_times_that_python_lacks(shop: Any, value: str) -> None:
    """A value that means "always", or is a mistake, in a key or between the selected values."""
    orders = shop.table(types={**TYPES, "until": "string", "day": "string"})
    ends = ("0001-01-01 00:00:00", "9999-12-31 23:59:59")
    days = ("0001-01-01", "+10000-01-01")

    def ended(number: int, end: int, amount: str = "200.00") -> dict[str, Any]:
        return {**row(number, amount), "until": ends[end], "day": days[end]}

    orders.build([ended(number, number % 2) for number in range(6)])
    until, day = "CAST(until AS TIMESTAMP)", "CAST(day AS DATE)"
    columns = f"{until} AS until, {day} AS day, count(*) AS n, {value}"
    model = Model(
        orders, ["until", "day"], f"SELECT {columns} FROM {orders.name.sql} GROUP BY {until}, {day}"
    )
    model.refresh()
    for number in range(extent(1, 2)):
        orders.upsert([ended(number, 1, "900.00"), ended(9, 0)])
        assert model.refresh().startswith("INCREMENTAL")
        ((wrong,),) = model.session.query(
            f"SELECT count(*) FROM ((SELECT * FROM {model.name.sql} EXCEPT ALL {model.sql}) UNION ALL "
            f"({model.sql} EXCEPT ALL SELECT * FROM {model.name.sql}))"
        )
        assert not wrong
