"""Pages on kinds of models: their code, commands, tables and limits are as they are written there."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from dbt.task import run

from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.followed_pages import Guide
from tests.pages import HOW_TO, section, table

pytestmark = pytest.mark.long

CODE = re.compile(r"`([^`]+)`")


def python_model(shop: Shop, name: str, body: str, before: str = "") -> None:
    head = "def model(dbt, session):\n    dbt.config(materialized='table')\n    "
    shop.file(f"models/{name}.py", f"{before}{head}{body}\n")


def test_models_are_written_in_python(shop: Shop) -> None:
    orders = "select * from values {} as t(order_id, customer_id, amount, ordered_at)"
    today = "current_date()"
    first = [
        f"(1, 1, 5.00, {today} - interval 9 days)",
        f"(2, 1, 6.00, {today} - interval 3 days)",
        f"(3, 1, 7.00, timestamp({today}))",
    ]
    shop.source("raw_orders", orders.format(", ".join(first)))
    shop.model("orders", "{{ config(materialized='table') }} select * from {{ source('raw', 'raw_orders') }}")
    Guide(shop, "python-models").follow()
    shop.dbt("run")
    spent = f"customer_id, datediff({today}, day), cast(spent as double)"
    assert shop.rows("spending", spent) == [(1, 0, 7), (1, 3, 6), (1, 9, 5)]
    # Of the days that are not read again, the first sums stay.
    changed = [row.replace(".00", "0.00") for row in first] + [f"(4, 1, 1.00, timestamp({today}))"]
    shop.source("raw_orders", orders.format(", ".join(changed)))
    shop.dbt("run")
    assert shop.rows("spending", spent) == [(1, 0, 71), (1, 3, 60), (1, 9, 5)]


RETURNED = {
    "a PySpark DataFrame": "session.range(2)",
    "a pandas DataFrame": (
        "pd.DataFrame({'id': [0, 1], 'ratio': [0.5, float('nan')], 'at': [pd.Timestamp(0), pd.NaT], "
        "'note': ['x', None], 'kind': pd.Categorical(['a', 'b'])}, index=[7, 8])"
    ),
    "a pandas-on-Spark DataFrame": "session.range(2).pandas_api()",
    "an Arrow table": "pa.table({'id': pa.array([0, 1], 'uint32'), 'large': pa.array([0, 1], 'uint64')})",
    "an object with an Arrow interface (Polars, DuckDB)": (
        "duckdb.sql('select range::uint32 id from range(2)')"
    ),
}
PYTHON_MISTAKES = (
    ("Settings", "dbt.config(packages=['no-such-package>=2']); return session.range(1)"),
    ("Errors", "\n    return dbt.nothing"),
    ("Errors", "return session.range(3).select(udf(lambda x: 1 // (x - 1), 'bigint')('id').alias('x'))"),
)


def test_python_models_return_what_the_page_says(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    # pandas-on-Spark warns if it sets this one itself, and a warning is an error here.
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", "1")
    page = HOW_TO / "python-models.md"
    returned = [kind for cell, _ in table(page, "returned").rows for kind in cell.split(", or ")]
    assert returned == [*RETURNED]
    imports = (
        "import duckdb\nimport pandas as pd\nimport pyarrow as pa\n"
        "from pyspark.sql.functions import udf\n\n\n"
    )
    for number, frame in enumerate(RETURNED.values()):
        python_model(shop, f"m{number}", f"return {frame}", imports)
    full = "dbt.config(materialized='incremental', incremental_strategy='auto', unique_key='id')"
    python_model(shop, "automatic", f"{full}\n    return session.range(2)")
    (rounded,) = re.findall(r"`(\.dt\..*?)`", section(page, "What a model may return"))
    nanoseconds = "pd.Series([pd.Timestamp(1001)])"
    python_model(shop, "rounded", f"return pd.DataFrame({{'at': {nanoseconds}{rounded}}})", imports)
    shop.dbt("run")
    assert shop.rows("rounded", "unix_micros(at)") == [(1,)]
    for number in range(len(RETURNED)):
        assert shop.rows(f"m{number}", "id") == [(0,), (1,)]
    assert shop.rows("m1", "ratio, at, note, kind")[1] == (None, None, None, "b")
    pandas, arrow, duck = (shop.sql(f"DESCRIBE {{s}}.m{number}") for number in (1, 3, 4))
    assert [row[0] for row in pandas] == ["id", "ratio", "at", "note", "kind"], "without the index"
    assert [row[:2] for row in arrow] == [("id", "bigint"), ("large", "decimal(20,0)")]
    assert [row[:2] for row in duck] == [("id", "bigint")]
    shop.dbt("run", "--select", "automatic")
    assert shop.recorded["automatic"]["strategy"] == "full", "it is computed in full each time"

    for path in (shop.folder / "models").glob("*.py"):
        path.unlink()
    expected = {}
    for number, (heading, body) in enumerate(PYTHON_MISTAKES):
        python_model(shop, f"e{number}", body, imports)
        codes = re.findall(r"AR-\d+", section(page, heading))
        earlier = [one for one, _ in PYTHON_MISTAKES[:number]].count(heading)
        expected[f"e{number}"] = codes[earlier]
    (refused,) = re.findall(r"every strategy except `(\w+)`", section(page, "How the result is written"))
    python_model(
        shop,
        "interval",
        f"dbt.config(materialized='incremental', incremental_strategy='{refused}', event_time='id', "
        "batch_size='day', begin='2026-01-01')\n    return session.range(1)",
    )
    python_model(shop, "nanos", f"return pd.DataFrame({{'at': {nanoseconds}}})", imports)
    said = shop.refusals("run")
    assert {name: code for name, code in expected.items() if code not in said[name]} == {}
    assert "pip install 'no-such-package>=2'" in said["e0"]
    assert "models/e1.py, line 10" in said["e1"]
    assert 'models/e2.py", line 9' in said["e2"]
    assert "AR-308" in said["nanos"]


def started_at(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    """What dbt calls now, up to which it runs the batches of a model."""
    now = dt.datetime.fromisoformat(f"{day} 12:00:00+00:00")
    monkeypatch.setattr(run, "get_invocation_started_at", lambda: now)


def days(shop: Shop, found: Any) -> list[str]:
    """The days whose batches have run."""
    (result,) = (one for one in found.results if one.node.name == "orders")
    return [f"{start:%Y-%m-%d}" for start, _ in result.batch_results.successful]


def test_data_is_processed_by_interval(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = HOW_TO / "microbatch.md"
    guide = Guide(shop, "microbatch")
    keyed = guide.text("config(")
    plain = keyed.replace(",\n    unique_key='order_id'", "")
    assert plain != keyed
    shop.file("models/raw_orders.yml", "models: [{name: raw_orders, config: {event_time: ordered_at}}]")
    shop.model("raw_orders", "select * from {{ source('raw', 'raw_events') }}")
    shop.model("orders", keyed)
    shop.model("plain", plain)

    def upstream(*rows: tuple[int, str, str]) -> None:
        values = ", ".join(f"({key}, timestamp'{at}', {amount})" for key, at, amount in rows)
        shop.source("raw_events", f"select * from values {values} as t(order_id, ordered_at, amount)")

    def both() -> list[Any]:
        return [shop.rows(name, "order_id, day(ordered_at), amount") for name in ("orders", "plain")]

    first, march, retry = (re.findall(CODE, row[0])[0].split()[1:] for row in table(page, "command").rows)
    # "dbt run": on the first run all batches since `begin`, later the latest one and one before it.
    upstream((1, "2024-01-01 10:00", "1"), (2, "2024-01-02 10:00", "2"), (3, "2024-01-03 10:00", "3"))
    started_at(monkeypatch, "2024-01-03")
    assert days(shop, shop.dbt(*first)) == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert both() == [[(1, 1, 1), (2, 2, 2), (3, 3, 3)]] * 2
    # A row has moved from the second to the third day, and the rows of another day have changed.
    upstream((1, "2024-01-01 10:00", "9"), (2, "2024-01-03 10:00", "9"), (3, "2024-01-03 10:00", "9"))
    third = ["--event-time-start", "2024-01-03", "--event-time-end", "2024-01-04"]
    shop.dbt(*first, *third)
    assert both() == [[(1, 1, 1), (2, 3, 9), (3, 3, 9)], [(1, 1, 1), (2, 2, 2), (2, 3, 9), (3, 3, 9)]]
    assert days(shop, shop.dbt(*first)) == ["2024-01-02", "2024-01-03"], "the latest batch and `lookback`"
    assert both() == [[(1, 1, 1), (2, 3, 9), (3, 3, 9)]] * 2
    # March again, of which a batch fails: NULL is no key. The other batches are kept.
    upstream((4, "2024-03-01 00:00", "4"), ("null", "2024-03-20 10:00", "5"), (6, "2024-03-31 23:59", "6"))
    shop.model("plain", "select 1 as id")
    outcome = shop.try_dbt(*march)
    assert not outcome.success
    assert days(shop, outcome.result) == [f"2024-03-{day:02}" for day in range(1, 32) if day != 20]
    upstream((4, "2024-03-01 00:00", "0"), (5, "2024-03-20 10:00", "5"), (6, "2024-03-31 23:59", "0"))
    shop.dbt(*retry)
    assert shop.rows("orders", "order_id, amount") == [(1, 1), (2, 9), (3, 9), (4, 4), (5, 5), (6, 6)]

    # What the page says is refused.
    settings = keyed.split("config(")[1].split(")")[0].strip().replace("\n", " ")
    code = f"def model(dbt, session):\n    dbt.config({settings})\n    return dbt.ref('raw_orders')\n"
    shop.file("models/python.py", code)
    pull = "{{ incremental_pull(source('raw', 'raw_events')) }}"
    shop.model("text", keyed.replace(", ordered_at", ", string(ordered_at) as ordered_at"))
    shop.model("pulled", keyed.replace("{{ ref('raw_orders') }}", pull))
    shop.model("sequence", keyed.replace("unique_key=", "sequence_by='ordered_at', unique_key="))
    shop.model("orders", plain)
    capsys.readouterr()
    refused = {
        "python": "a Python model cannot have the strategy 'microbatch'",
        "text": "event_time is ordered_at, which is of type string",
        "sequence": "sequence_by cannot be used with the strategy 'microbatch'",
        "orders": "the model creates a plain table, but a keyed table of its name exists",
        "pulled": "incremental_pull() cannot be used with the strategy 'microbatch'",
    }
    monkeypatch.setenv("DBT_LOG_LEVEL_FILE", "debug")
    assert {*shop.refusals(*first, *third, "--select", *refused)} == {*refused}
    said = capsys.readouterr().out
    assert [name for name, words in refused.items() if words not in said] == ["pulled"]
    assert refused["pulled"] in (shop.folder / "logs" / "dbt.log").read_text(encoding="utf-8")
