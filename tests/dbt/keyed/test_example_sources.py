"""The example project's first layer reads the same rows from files and from Kafka topics."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from dbt.cli.main import dbtRunner

from tests.extent import extent

from .conftest import Shop
from .kafka_topics import Broker

PROJECT = Path(__file__).resolve().parents[3] / "example_project"
sys.path.insert(0, str(PROJECT))

from feed import topics  # noqa: E402
from feed.land import LandingFolder  # noqa: E402
from feed.tables import TABLES  # noqa: E402
from feed.topics import LandingTopics  # noqa: E402
from feed.write import write_feed  # noqa: E402

MODELS = extent(["orders", "partsupp"], [table.name for table in TABLES])
"""In the short form: keys of one and of two columns, and every type of the columns."""


def run(shop: Shop, *arguments: str) -> Any:
    options = ["--project-dir", str(PROJECT), "--profiles-dir", str(shop.folder), "--quiet"]
    options += ["--target-path", str(shop.folder / "target"), "--log-path", str(shop.folder / "logs")]
    return dbtRunner().invoke(["run", "--select", *(f"ods_{name}" for name in MODELS), *arguments, *options])


def rows(shop: Shop) -> dict[str, Counter[tuple[Any, ...]]]:
    return {name: Counter(map(tuple, shop.sql(f"SELECT * FROM {{s}}_ods.ods_{name}"))) for name in MODELS}


def test_topics_give_the_rows_that_files_give(
    shop: Shop, kafka_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = shop.folder / "feed"
    write_feed(feed, scale=0.001, rounds=1)
    by_topics = LandingTopics(feed, kafka_broker.servers)
    by_topics.start_over()
    assert by_topics.last_round() == -1
    loaded = by_topics.land_round(0)
    assert (loaded > 0, by_topics.land_round(0), by_topics.last_round()) == (True, 0, 0)

    monkeypatch.setenv("SHOP_DIR", str(shop.folder))
    monkeypatch.delenv("SHOP_KAFKA", raising=False)
    by_files = LandingFolder(feed, shop.folder / "landing")
    assert by_files.land_round(0) == loaded
    done = run(shop)
    assert done.success, shop.messages(done)
    before = rows(shop)
    changed = by_files.land_round(1)
    done = run(shop)
    assert done.success, shop.messages(done)
    after = rows(shop)
    assert all(after[name] != before[name] for name in MODELS)
    deleted = {row[0] for row in before["orders"]} - {row[0] for row in after["orders"]}
    assert deleted

    # A table of rows from files does not continue with messages: it is built again.
    monkeypatch.setenv("SHOP_KAFKA", kafka_broker.servers)
    refused = run(shop)
    assert "pulls from kafka.raw.orders for the first time" in shop.messages(refused)
    assert rows(shop) == after
    done = run(shop, "--full-refresh")
    assert done.success, shop.messages(done)
    assert rows(shop) == before

    # A round that was interrupted is completed.
    calls, value = count(), topics._value

    def ends(row: dict[str, Any]) -> bytes:
        if next(calls) == changed // 2:
            raise KeyboardInterrupt
        return value(row)

    with monkeypatch.context() as patched:
        patched.setattr(topics, "_value", ends)
        with pytest.raises(KeyboardInterrupt):
            by_topics.land_round(1)
    assert by_topics.last_round() == 0
    assert 0 < by_topics.land_round(1) < changed
    assert (by_topics.land_round(1), by_topics.last_round()) == (0, 1)
    assert sum(by_topics._messages().values()) == loaded + changed
    done = run(shop)
    assert done.success, shop.messages(done)
    assert rows(shop) == after
