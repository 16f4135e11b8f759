"""Python models of one's own: what they may return, where they fail, and that they are written as SQL is."""

from __future__ import annotations

from tests.dbt.keyed.conftest import Shop

KEYED = """

def double(value):
    return value * 2


def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id", delete_when="amount < 0", buckets=2)
    orders = dbt.source("raw", "raw_orders")
    if dbt.is_incremental:
        orders = orders.where("id > 1")
    from pyspark.sql.functions import udf
    return orders.withColumn("twice", udf(double, "bigint")("amount"))
"""

PANDAS = """
import datetime
import pandas


def model(dbt, session):
    dbt.config(materialized="table")
    return pandas.DataFrame({
        "id": [1, 2],
        3: ["a", None],
        "kind": pandas.Categorical(["x", "y"]),
        "small": pandas.array([1, None], dtype="UInt8"),
        "at": [datetime.datetime(2020, 1, 1), None],
        "ratio": [0.5, float("nan")],
    })
"""

ARROW = """
import pyarrow


def model(dbt, session):
    dbt.config(materialized="table")
    return pyarrow.table({"id": [1, 2]})
"""


def test_a_keyed_python_model_is_updated_by_one_append(shop: Shop) -> None:
    shop.source("raw_orders", "select * from values (1L, 10L), (2L, 20L), (3L, 30L) as t(id, amount)")
    shop.file("models/orders.py", KEYED)
    shop.dbt("run")
    assert shop.rows("orders") == [(1, 10, 20), (2, 20, 40), (3, 30, 60)]
    shop.source("raw_orders", "select * from values (1L, 99L), (2L, 21L), (3L, -1L) as t(id, amount)")
    shop.dbt("run")
    assert shop.rows("orders") == [(1, 10, 20), (2, 21, 42)]
    written = [statement for statement in shop.script.ran if "__change_1" in statement]
    assert len(written) == 1
    assert "INSERT INTO" in written[0]


def test_pandas_and_arrow_frames_become_tables(shop: Shop) -> None:
    shop.file("models/frame.py", PANDAS)
    shop.file("models/arrow.py", ARROW)
    shop.dbt("run")
    found = shop.sql("SELECT id, `3`, kind, small, date(at), ratio FROM {s}.frame ORDER BY id")
    assert [tuple(map(str, row)) for row in found] == [
        ("1", "a", "x", "1", "2020-01-01", "0.5"),
        ("2", "None", "y", "None", "None", "None"),
    ]
    assert shop.rows("arrow") == [(1,), (2,)]


MISTAKES = [
    ("\n    return dbt.nothing", ("AR-308", "models/m{}.py, line 6", "AttributeError")),
    ("return 5", ("AR-308", "returned int", "pandas")),
    ("return dbt.source('raw', 'missing')", ("AR-308", "models/m{}.py, line 5", "TABLE_OR_VIEW_NOT_FOUND")),
    ("return spark.newSession().range(3)", ("AR-308", "another Spark session")),
    (
        "dbt.config(submission_method='job_cluster'); return session.range(1)",
        ("AR-301", "submission_method is 'job_cluster'"),
    ),
    (
        "dbt.config(packages=['no-such-package>=2']); return session.range(1)",
        ("AR-301", "pip install 'no-such-package>=2'"),
    ),
    (
        "dbt.config(packages=['pyspark<3']); return session.range(1)",
        ("AR-301", "pip install 'pyspark<3'"),
    ),
]


def test_a_mistake_names_its_line(shop: Shop) -> None:
    start = "\n\ndef model(dbt, session):\n    dbt.config(materialized='table')\n    "
    for number, (body, _) in enumerate(MISTAKES):
        shop.file(f"models/m{number}.py", f"{start}{body}\n")
    said = shop.refusals("run")
    for number, (_, told) in enumerate(MISTAKES):
        assert [words for words in told if words.format(number) not in said[f"m{number}"]] == []


def test_an_error_on_sparks_rows_names_the_line_too(shop: Shop) -> None:
    code = (
        "from pyspark.sql.functions import udf\n\n"
        "def broken(value):\n    return 1 // (value - 1)\n\n"
        "def model(dbt, session):\n    dbt.config(materialized='table')\n"
        "    return session.range(3).select(udf(broken, 'bigint')('id').alias('x'))\n"
    )
    shop.file("models/m.py", code)
    said = shop.fail("run")
    assert "AR-201" in said
    assert "models/m.py" in said
    assert "line 4" in said
