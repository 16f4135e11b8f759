"""How late models are: the oldest change that a model does not contain, wherever it waits."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.keyed.version import Consumed, encode_consumed
from dbt_arctic.scheduling.model_lag import (
    ModelLag,
    PendingUpstream,
    consumed_at_ms,
    late_models,
    problems_of,
    waiting_for,
    waiting_outside,
    with_unknown_upstreams,
)
from dbt_arctic.sources.unread import Unread


def lag(model: str, **since: int | None) -> ModelLag:
    return ModelLag(model, tuple(PendingUpstream(name, "commit", 1, at) for name, at in since.items()))


def test_the_upstream_with_the_oldest_change_makes_a_model_late() -> None:
    reads = {"orders": [], "items": [], "joined": ["orders", "items"], "total": ["joined"]}
    late = late_models(
        [lag("orders", raw=50), lag("items", feed=40), lag("joined", orders=45, items=None), lag("total")],
        reads,
    )
    assert {name: (one.because_of.upstream, one.through) for name, one in late.items()} == {
        "orders": ("raw", ()),
        "items": ("feed", ()),
        "joined": ("feed", ("items",)),
        "total": ("feed", ("items", "joined")),
    }
    assert late_models([lag("orders", raw=None), lag("items")], reads) == {}


@pytest.mark.parametrize("seed", range(40))
def test_a_model_is_late_since_the_oldest_change_of_all_paths(seed: int) -> None:
    choose = random.Random(seed)
    names = [f"m{number}" for number in range(9)]
    reads = {name: [other for other in names[:at] if choose.random() < 0.3] for at, name in enumerate(names)}
    own = {name: choose.choice([None, choose.randrange(100)]) for name in names}
    late = late_models([lag(name, source=own[name]) for name in names], reads)

    def oldest(name: str) -> int | None:
        times = [own[name], *map(oldest, reads[name])]
        return min((at for at in times if at is not None), default=None)

    assert {name: one.since_ms for name, one in late.items()} == {
        name: at for name in names if (at := oldest(name)) is not None
    }
    for name, one in late.items():
        path = [*one.through, name]
        assert own[path[0]] == one.since_ms
        assert all(before in reads[after] for before, after in pairwise(path))


def test_what_waits_is_described_in_the_units_of_its_upstream() -> None:
    assert waiting_for(Lag("lake.s.t", 5, commits=2, rows=7), "t") == PendingUpstream("t", "commit", 2, 5, 7)
    assert waiting_outside(Unread("a.b", "message", 3, 9)) == PendingUpstream("a.b", "message", 3, 9, 3)
    assert waiting_outside(Unread("a.b", "file", 3, 9, 80)) == PendingUpstream("a.b", "file", 3, 9, None, 80)
    gone = ModelLag("m", (waiting_for(Lag("lake.s.t", lost="it was rebuilt"), "t"),), "it is not built yet")
    assert problems_of(gone) == ["it is not built yet", "t: it was rebuilt"]


def test_an_unknown_lag_makes_those_downstream_unknown() -> None:
    reads = {"orders": [], "items": [], "joined": ["orders", "items"], "total": ["joined"]}
    orders = ModelLag("orders", problem="it is not built yet")
    given = [orders, lag("items"), lag("joined", items=5), lag("total")]
    found = {one.model: problems_of(one) for one in with_unknown_upstreams(given, reads)}
    unknown = ["orders: its own lag is unknown"]
    assert found == {"orders": [orders.problem], "items": [], "joined": unknown, "total": unknown}
    assert with_unknown_upstreams([lag("items"), lag("joined")], reads) == [lag("items"), lag("joined")]


def test_a_version_was_consumed_by_the_oldest_commit_that_records_it() -> None:
    def commit(number: int, version: str | None) -> Snapshot:
        read = {"kafka.shop.orders": Consumed("topic:x", version)} if version else {}
        summary = {"arctic.consumed": encode_consumed(read)} if version != "" else {}
        return Snapshot(number, number - 1 or None, number, number * 10, "append", summary)

    history = [
        commit(6, ""),
        commit(5, "offsets:2"),
        commit(4, ""),
        commit(3, "offsets:2"),
        commit(2, "offsets:1"),
    ]
    assert consumed_at_ms(history, "kafka.shop.orders") == 30
    assert consumed_at_ms(history[3:], "kafka.shop.orders") == 30
    assert consumed_at_ms(history, "kafka.shop.items") is None
    assert consumed_at_ms([commit(1, None)], "kafka.shop.orders") is None
