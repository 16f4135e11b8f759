"""Values that are equal and of two types are not the same in an expression: a text, a hash, a quotient."""

from __future__ import annotations

from typing import Any

import pytest

from tests.extent import first
from tests.spark.keyed.auto import Model
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


DIGITS = [
    "SELECT id, amount / months AS monthly FROM (SELECT id, amount, 12 AS months FROM {0}) AS t",
    "SELECT id, amount / months AS monthly FROM (SELECT id, amount, -7 AS months FROM {0}) AS t",
    "WITH t AS (SELECT id, amount, 12 AS months FROM {0}) SELECT id, amount / months AS monthly FROM t",
    "SELECT id, 12 AS months, amount / months AS monthly FROM {0}",
    "SELECT id, amount / months AS monthly FROM (SELECT id, amount, (12) AS months FROM {0}) AS t",
    "SELECT id, amount / months AS monthly FROM (SELECT id, amount, 12L AS months FROM {0}) AS t",
    "SELECT id, 12L AS months, amount / months AS monthly, amount / -12L AS less FROM {0}",
    "SELECT id, sum(amount / 12L) AS s, sum(amount / cast(12 AS bigint)) AS t FROM {0} GROUP BY id",
]


@pytest.mark.parametrize(
    "sql",
    first(1, DIGITS),
    ids=["subquery", "negative", "cte", "lateral", "parentheses", "suffix", "lateral suffix", "sum"],
)
def test_a_number_that_a_column_stands_for_has_the_digits_of_its_type(orders: Orders, sql: str) -> None:
    model = Model(orders, "id", sql.format(orders.name.sql))
    model.refresh()
    orders.upsert([row(1, "100.01"), row(9, "77.77")])
    assert follows(model).startswith("INCREMENTAL")


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


# Branches that are columns are cast as Spark casts them. Of computed ones the planner does not know the type.
OF_TWO_TYPES = [
    f"SELECT k, sum(x / 3) AS s, count(*) AS n FROM {PARTS} GROUP BY k",
    f"SELECT cast(x AS string) AS k, count(*) AS n FROM {PARTS} GROUP BY 1",
    "SELECT concat('v', x) AS k, 1 AS one "
    "FROM (SELECT id AS x FROM {0} UNION SELECT amount AS x FROM {0}) AS u",
    "SELECT k, sum(x / 3) AS s, count(*) AS n FROM (SELECT k, amount AS x FROM {0} "
    "UNION ALL SELECT k, amount * 1.000 AS x FROM {0}) AS u GROUP BY k",
    f"SELECT v AS k, count(*) AS n FROM {PARTS} LATERAL VIEW explode(array(cast(x AS string))) e AS v "
    "GROUP BY 1",
    f"SELECT o.k, count(*) AS n FROM {{0}} AS o WHERE EXISTS (SELECT 1 FROM {PARTS} "
    "WHERE cast(u.x AS string) = concat(o.id, '.00')) GROUP BY o.k",
    "SELECT k, sum(amount / n) AS s, count(*) AS c FROM (SELECT k, amount, 1 AS n FROM {0} "
    "UNION ALL SELECT k, amount, id + 1 AS n FROM {0}) AS u GROUP BY k",
]


OF_COMPUTED = (OF_TWO_TYPES[3], OF_TWO_TYPES[6])


@pytest.mark.parametrize(
    "sql",
    first(1, OF_TWO_TYPES),
    ids=["sums", "keys", "distinct", "computed", "lateral", "exists", "divisor"],
)
def test_an_expression_over_a_union_of_two_types_has_the_type_of_both(orders: Orders, sql: str) -> None:
    model = Model(orders, "k", sql.format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    assert follows(model).startswith("FULL" if sql in OF_COMPUTED else "INCREMENTAL")


def test_what_is_null_in_one_part_has_the_type_of_the_other(orders: Orders) -> None:
    sold, back = "SELECT k, amount, NULL AS back FROM {0}", "SELECT k, NULL, amount FROM {0} WHERE id > 3"
    values = "sum((coalesce(amount, 7) - coalesce(back, 0)) / 3) AS s, count(*) AS n"
    sql = f"SELECT k, {values} FROM ({sold} UNION ALL {back}) AS u GROUP BY k"
    model = Model(orders, "k", sql.format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    assert follows(model).startswith("INCREMENTAL")


def test_plain_columns_of_such_a_union_are(orders: Orders) -> None:
    summed = f"SELECT k, sum(x) AS s, max(x) AS m, count(x) AS n FROM {PARTS} WHERE x > 1 GROUP BY k"
    model = Model(orders, "k", summed.format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    assert follows(model).startswith("INCREMENTAL")


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
    ("type_", "ends"),
    [
        ("timestamp", ("0001-01-01 00:00:00", "9999-12-31 23:59:59")),
        ("date", ("0001-01-01", "+10000-01-01")),
    ],
)
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
def test_times_that_python_lacks(shop: Any, type_: str, ends: tuple[str, str], value: str) -> None:
    """A value that means "always", or is a mistake, in a key or between the selected values."""
    orders = shop.table(types={**TYPES, "until": "string"})
    orders.build([{**row(number), "until": ends[number % 2]} for number in range(6)])
    until = f"CAST(until AS {type_.upper()})"
    model = Model(
        orders,
        "until",
        f"SELECT {until} AS until, count(*) AS n, {value} FROM {orders.name.sql} GROUP BY {until}",
    )
    model.refresh()
    for number in range(2):
        orders.upsert([{**row(number, "900.00"), "until": ends[1]}, {**row(9), "until": ends[0]}])
        assert model.refresh().startswith("INCREMENTAL")
        ((wrong,),) = model.session.query(
            f"SELECT count(*) FROM ((SELECT * FROM {model.name.sql} EXCEPT ALL {model.sql}) UNION ALL "
            f"({model.sql} EXCEPT ALL SELECT * FROM {model.name.sql}))"
        )
        assert not wrong


QUOTIENTS = [
    # As a hidden column, in a state, and computed from visible columns of the model.
    "SELECT k, sum(amount) / max(CAST(id + 3 AS SMALLINT)) * 1000 AS r FROM {0} GROUP BY k",
    "SELECT k, sum(amount) / CAST(k + 3 AS SMALLINT) * 1000 AS r FROM {0} GROUP BY k, "
    "CAST(k + 3 AS SMALLINT) HAVING count(*) > 0",
    "SELECT k, count(*) AS n, sum(amount) AS s, count(amount) AS c, max(CAST(id + 3 AS SMALLINT)) AS m, "
    "sum(amount) / max(CAST(id + 3 AS SMALLINT)) * 1000 AS r FROM {0} GROUP BY k",
]


@pytest.mark.parametrize(
    "sql",
    first(2, QUOTIENTS),
)
def test_quotients_by_small_integers_have_their_digits(orders: Orders, sql: str) -> None:
    model = Model(orders, "k", sql.format(orders.name.sql))
    model.refresh()
    orders.upsert([row(1, "100.01"), row(8, "7.77")])
    follows(model)


OF_MANY_DIGITS = {
    "ones": ("k", "SELECT k, sum(1) AS n, sum(0) AS z FROM {0} GROUP BY k"),
    "a number of 32 bits with its sign": (
        "k",
        "SELECT hash(m, id) AS k, bool_or(k > 1) AS b FROM (SELECT k, id, -2147483648 AS m FROM {0}) AS u "
        "GROUP BY hash(m, id)",
    ),
    "beyond 64 bits": (
        "k",
        "SELECT k, count(*) AS n, sum(id + large) AS s, count(id + large) AS c "
        "FROM (SELECT k, id, 100000000000000000000 AS large FROM {0}) AS u GROUP BY k",
    ),
    "an interval by a number": (
        "k",
        "SELECT k, CAST(avg((day - DATE'2020-01-01') * id) AS STRING) AS a "
        "FROM (SELECT k, id, CAST(date_add(DATE'2020-01-01', k) AS DATE) AS day FROM {0}) AS u GROUP BY k",
    ),
}


@pytest.mark.parametrize("case", first(2, OF_MANY_DIGITS))
def test_a_number_has_the_type_that_spark_gives_it(orders: Orders, case: str) -> None:
    key, sql = OF_MANY_DIGITS[case]
    model = Model(orders, key, sql.format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    choice = follows(model)
    assert choice == "INCREMENTAL (sums)" if case == "ones" else choice.startswith("INCREMENTAL")


def test_a_part_of_a_union_does_not_divide_as_the_whole_does(orders: Orders) -> None:
    """Of 0.19, Spark counts two digits, and of 1.19 three."""
    parts = "SELECT k, amount * 0.19 AS q FROM {0} UNION ALL SELECT k, amount * 1.19 AS q FROM {0}"
    sql = f"SELECT k, count(*) AS n, sum(1000 / q) AS s, count(1000 / q) AS c FROM ({parts}) AS u GROUP BY k"
    model = Model(orders, "k", sql.format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    assert follows(model) == "FULL (unsupported)"


def test_what_has_64_bits_in_one_part_divides_otherwise(orders: Orders) -> None:
    parts = "SELECT k, k + 1 AS v FROM {0} UNION ALL SELECT k, id + 1 AS v FROM {0}"
    values = "count(*) AS n, sum(3 / ceil(v, 0)) AS s, count(3 / ceil(v, 0)) AS c"
    model = Model(orders, "k", f"SELECT k, {values} FROM ({parts}) AS u GROUP BY k".format(orders.name.sql))
    model.refresh()
    orders.apply([row(7, "1.00"), row(8, "7.00")], [{"id": 1}])
    assert follows(model) == "FULL (unsupported)"
