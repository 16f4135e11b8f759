"""The page on automatic models: its models, commands, logs and errors are as they are written there."""

from __future__ import annotations

import json
import math
import re

import pytest

from dbt_arctic.auto import plan_table, stages, verify_refresh
from dbt_arctic.planner.algebra.render import Sources
from dbt_arctic.planner.delta.plan import Incremental, affected_sql
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.followed_pages import Guide, form
from tests.pages import HOW_TO, blocks, section, table

pytestmark = pytest.mark.long

PAGE = HOW_TO / "automatic-models.md"
UPSTREAMS = {
    "lines": ("['order_key', 'line_number']", "raw_lines"),
    "orders": ("'order_key'", "raw_orders"),
    "customers": ("'customer_key'", "raw_customers"),
}
HEAD = "{{{{ config(materialized='incremental', incremental_strategy='auto', unique_key='{}') }}}}\n"
MODELS = {
    "best_customers": HEAD.format("customer_key")
    + "select customer_key, sum(price) as spent from {{ ref('order_lines') }} "
    "group by customer_key having sum(price) > (select max(price) * 2 from {{ ref('lines') }})",
    "sales_by_day": HEAD.format("order_date")
    + "select order_date, count(*) as orders from {{ ref('orders') }} group by order_date",
    "diced": "\n"
    + HEAD.format("order_key").replace("(", "(\n").replace(") }}", "\n) }}")
    + "select order_key,\n  rand() as dice from {{ ref('orders') }}",
}
LOG = re.compile(r"shop\.(\w+) \.* \[(.*) in [\d.]+s\]")
OWN_FIELDS = {"_message", "code"}


def lines(shop: Shop, price: str, keys: str = "explode(sequence(1L, 30L))") -> None:
    """Three lines of each order, whose prices are an expression of the key and the number."""
    shop.source(
        "raw_lines",
        f"select key as order_key, number as line_number, cast({price} as decimal(10, 2)) as price "
        f"from (select {keys} as key) cross join (select explode(sequence(1, 3)) as number)",
    )


def shop_of_the_page(shop: Shop, guide: Guide) -> None:
    names = [{"name": name} for name in ("raw_lines", "raw_orders", "raw_customers")]
    shop.file(
        "models/sources.yml",
        json.dumps({"sources": [{"name": "raw", "schema": shop.schema, "tables": names}]}),
    )
    for name, (key, source) in UPSTREAMS.items():
        config = f"{{{{ config(materialized='incremental', unique_key={key}) }}}}"
        shop.model(name, f"{config} select * from {{{{ source('raw', '{source}') }}}}")
    lines(shop, "key + number")
    shop.source(
        "raw_orders",
        "select key as order_key, key % 5 as customer_key, date'2026-01-01' + int(key % 3) as order_date "
        "from (select explode(sequence(1L, 30L)) as key)",
    )
    shop.source(
        "raw_customers",
        "select key as customer_key, if(key < 2, 'home', 'work') as segment, concat('c', key) as name, "
        "cast(10 as decimal(10, 2)) as credit from (select explode(sequence(0L, 4L)) as key)",
    )


def message_on_page(heading: str, name: str) -> str:
    """What dbt's log shows of a model in a section, without times and numbers."""
    found = dict(LOG.findall(section(PAGE, heading) if heading else FIRST))
    return form(found[name], numbers=False)


FIRST = PAGE.read_text(encoding="utf-8").split("\n## ")[0]


def test_models_refresh_themselves(shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = Guide(shop, "automatic-models")
    shop_of_the_page(shop, guide)
    for name, text in MODELS.items():
        shop.model(name, text)
    for part in ("models/order_lines.sql", "models/segments.sql", "models/over_credit.sql"):
        shop.model(part.split("/")[1][:-4], guide.text(f"-- {part}"))
    log = shop.folder / "logs" / "dbt.log"
    with monkeypatch.context() as logged:
        logged.setenv("DBT_LOG_LEVEL_FILE", "debug")
        shop.dbt("run")
    text = " ".join(log.read_text(encoding="utf-8").split())
    advice = " ".join(guide.text("Arctic adapter: ").split())
    assert advice in text

    # The prices of some lines grow, and with them the greatest price.
    lines(shop, "99 + number", "explode(array(3L, 9L))")
    shop.dbt("run", "--select", "lines", "order_lines", "best_customers", "sales_by_day")
    for name in ("order_lines", "best_customers", "sales_by_day"):
        message = form(shop.recorded[name]["_message"], numbers=False)
        assert message == message_on_page("", name), name
    fields = [name for row in table(PAGE, "field").rows for name in re.findall(r"`(\w+)`", row[0])]
    recorded = {*shop.recorded["order_lines"]} - OWN_FIELDS
    assert recorded == {*fields} - {"verified", "reason"}, "it was incremental, without `verify`"
    shop.dbt("run")
    expected = shop.sql(
        "SELECT customer_key, sum(price) FROM {s}.lines JOIN {s}.raw_orders USING (order_key) "
        "GROUP BY customer_key ORDER BY 1"
    )
    assert shop.rows("over_credit", "customer_key, revenue") == expected
    assert shop.rows("segments", "segment, orders") == [("home", 36), ("work", 54)]
    state = re.findall(r"`<model>(__\w+)`", section(PAGE, "Sums, averages and first rows"))[0]
    assert shop.rows(f"segments{state}", "segment") == [("home",), ("work",)]

    lines(shop, "key + number", "explode(array(3L, 9L))")
    shop.dbt("run", "--select", "lines")
    guide.follow_section("See the plan before a run")
    check_plan(type_in)


def check_plan(type_in: Terminal) -> None:
    plans = {plan["model"].split(".")[-1]: plan for plan in type_in.json("plan")}
    plan = plans["order_lines"]
    words = section(PAGE, "See the plan before a run")
    keys = re.findall(r"^\* `(\w+)`", words, re.M)
    assert {*keys} <= {*plan}
    (stage,) = re.findall(r"refresh \((`name`.*?)\)", words)
    assert {*re.findall(r"`(\w+)`", stage)} == {*plan["stages"][0]}
    (same,) = re.findall(r"`--json` has (.*?) in `explanation`", " ".join(words.split()))
    explained = {name.replace("falls back", "falls_back_if") for name in re.findall(r"`(.*?)`", same)}
    assert explained <= {*plan["explanation"]}
    printed = type_in("plan", "--explain")
    labels = [row[0].strip("`") for row in table(PAGE, "line").rows]
    assert [label for label in labels if not re.search(rf"^ *{label}(?:\s|$)", printed, re.M)] == [], printed
    states = plans["segments"]["states"]
    assert {*re.findall(r"`(\w+)`", words.split("`states`")[1].split("which is null")[0])[:4]} <= {*states[0]}


def test_automatic_models_are_checked_and_verify_themselves(
    shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine, refreshes and verifications of seconds are no reason to do without one.
    monkeypatch.setattr(verify_refresh, "_SHORT_S", math.inf)
    monkeypatch.setattr(plan_table, "slower", lambda took, changed: None)
    guide = Guide(shop, "automatic-models")
    shop_of_the_page(shop, guide)
    shop.model("order_lines", guide.text("-- models/order_lines.sql"))
    shop.model("best_customers", MODELS["best_customers"])
    config = guide.text("'verify'").replace("'0.1%'", "'100%'")
    assert "100%" in config
    summed = (
        "select customer_key as customer_id, sum(price) as total from {{ ref('order_lines') }} group by 1"
    )
    shop.model("revenue", config + summed)
    shop.dbt("run")
    (block,) = (one for one in blocks(PAGE) if one.heading == "Check the results" and one.commands)
    (command,) = block.commands
    *_, best, dots, last = command.shown.splitlines()
    assert (best.split(":")[0], dots) == ("best_customers", "...")
    ways = re.compile(r"\w+: \d+ (?:incremental|full \([\w-]+\))(?:, \d+ (?:incremental|full \([\w-]+\)))*")
    printed = type_in(*command.arguments, "--rounds", "2").splitlines()
    refreshed = [line for line in printed if line.startswith(("order_lines:", "best_customers:", "revenue:"))]
    assert len(refreshed) == 3
    assert [line for line in [*refreshed, best] if not ways.fullmatch(line)] == []
    assert sum(int(count) for count in re.findall(r"\d+", best)) == int(command.words[-1]), "one a round"
    assert f"{command.words[-1]} rounds, 0 differences" in last
    assert form(last, numbers=False) == form(printed[-1], numbers=False)

    lines(shop, "99 + number", "explode(array(3L, 9L))")
    shop.dbt("run")
    heading = "Let a model check its own refreshes"
    assert form(shop.recorded["revenue"]["_message"], numbers=False) == message_on_page(heading, "revenue")
    assert "keys" not in shop.recorded["revenue"], "changes were added to sums"
    check_difference(shop, type_in, monkeypatch, guide)


def check_difference(shop: Shop, type_in: Terminal, monkeypatch: pytest.MonkeyPatch, guide: Guide) -> None:
    """A refresh that recomputes one key only is found, and the next run corrects it."""
    config = guide.text("'verify'").replace("'0.1%'", "'100%'")
    greatest = (
        "select customer_key as customer_id, max(double(price)) as total from {{ ref('order_lines') }} "
    )
    shop.model("revenue", f"{config}{greatest} group by customer_key")
    shop.dbt("run", "--select", "revenue")
    new = "select 31L as order_key, 20L as customer_key, date'2026-01-01' as order_date"
    shop.source("raw_orders", new)
    lines(shop, "500 + number", "explode(array(3L, 5L, 31L))")
    shop.dbt("run", "--select", "+order_lines")

    def too_few(plan: Incremental, sources: Sources) -> str:
        return f"SELECT * FROM (\n{affected_sql(plan, sources)}\n) ORDER BY 1 LIMIT 1"

    with monkeypatch.context() as wrong:
        wrong.setattr(stages, "affected_sql", too_few)
        said = shop.fail("run", "--select", "revenue")
    # A key that is missing here was not in the table before, and is not verified.
    page = [line for line in guide.text("AR-330").split("...")[0].splitlines() if "is missing" not in line]
    found = said.partition("models/revenue.sql)")[2]
    lines_of = [form(text, numbers=False) for text in ("\n".join(page), found)]
    assert lines_of[1].startswith(lines_of[0]), said
    heading = "Let a model check its own refreshes"
    assert "keys differ" in type_in("history", "revenue")
    (full,) = re.findall(r"its log shows `(.*?)`", section(PAGE, heading))
    shop.dbt("run", "--select", "revenue")
    assert full in shop.recorded["revenue"]["_message"]
    greatest = "SELECT customer_key, max(double(price)) FROM {s}.order_lines GROUP BY 1"
    assert shop.rows("revenue") == sorted(shop.sql(greatest), key=repr)
