"""The short form of ``make soak-sources`` and ``make soak-cdc``, and wrong protocols that stories find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.brokers.api import TopicOffsets
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.sources import file_pull, kafka_pull
from dbt_arctic.sources.kafka_offsets import OffsetPlan
from tests.dbt.keyed.database_servers import Server
from tests.dbt.keyed.kafka_topics import Broker
from tests.dbt.sources import soak_cdc
from tests.dbt.sources.project import Parts
from tests.dbt.sources.soak import play
from tests.extent import extent


@pytest.fixture
def parts(
    shop_connection: SessionConnection, shop_warehouse: Path, kafka_broker: Broker, postgres_server: Server
) -> Parts:
    return Parts(shop_connection, shop_warehouse, kafka_broker, postgres_server)


@pytest.mark.parametrize("seed", extent([2], [2, 3, 6, 7, 11, 12]))
def test_each_table_has_what_there_is_outside_whatever_ends_a_run(parts: Parts, seed: int) -> None:
    story, difference = play(parts, seed, extent(16, 60), processes=extent(0.0, 0.05))
    assert not difference, difference
    assert story.steps


@pytest.mark.parametrize("seed", extent([9], [5, 6, 8, 9, 10, 11]))
def test_a_model_has_the_rows_of_the_table_that_it_follows(parts: Parts, seed: int) -> None:
    story, difference = soak_cdc.play(parts, None, seed, extent(24, 80), processes=extent(0.0, 0.1))
    assert not difference, difference
    assert story.steps


@pytest.mark.parametrize("seed", extent([6], [6, 13, 20, 27]))
def test_a_model_has_the_rows_of_the_table_of_mariadb_that_it_follows(
    parts: Parts, mariadb_server: Server, seed: int
) -> None:
    story, difference = soak_cdc.play(parts, mariadb_server, seed, extent(24, 80), processes=extent(0.0, 0.1))
    assert not difference, difference
    assert story.told[0] == "a story of followed"


def _ends_looked_up_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is committed ends later than what is read, if a message comes in between."""
    plan = kafka_pull.plan_offsets

    def twice(source: Any, topic: TopicOffsets, last: Any, model: str) -> OffsetPlan:
        first = plan(source, topic, last, model)
        later = plan(source, topic._replace(ends=tuple(one + 1 for one in topic.ends)), last, model)
        return OffsetPlan(first.ranges, later.consumed, first.warnings)

    monkeypatch.setattr(kafka_pull, "plan_offsets", twice)


def _offsets_apart_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets have a place of their own, as in a checkpoint folder, which a rollback does not reach."""
    place: dict[tuple[str, str], Any] = {}
    plan = kafka_pull.KafkaPlanner.plan

    def apart(planner: Any, expected: Any, model: str, purpose: Any) -> Any:
        key = model, planner.source.topic
        known = {**expected, planner.upstream.dotted: place[key]} if expected and key in place else expected
        planned = plan(planner, known, model, purpose)
        place[key] = planned.pull.consumed
        return planned

    monkeypatch.setattr(kafka_pull.KafkaPlanner, "plan", apart)


def _late_files_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is new if it is newer than the newest one that was read."""
    new_files = file_pull.new_files

    def by_time(source: Any, present: Any, listed: Any, consumed: Any, model: str) -> Any:
        newest = max((file.modified_ms for file in consumed or ()), default=-1)
        found = new_files(source, present, listed, consumed, model)
        return [file for file in found if file.modified_ms > newest]

    monkeypatch.setattr(file_pull, "new_files", by_time)


@pytest.mark.long
@pytest.mark.parametrize("mutant", [_ends_looked_up_twice, _offsets_apart_from_rows, _late_files_skipped])
def test_a_wrong_protocol_is_found(
    parts: Parts, mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(play(parts, seed, 60)[1] for seed in range(2, 8))
