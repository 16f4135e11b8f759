"""``dbt-arctic lag`` for people: a model without a lag and one with an unknown lag are shown differently."""

from __future__ import annotations

import pytest

from dbt_arctic.cli.lag import _as_dict, _show, is_too_late
from dbt_arctic.scheduling.model_lag import NO_VERSIONS, LagCause, ModelLag, PendingUpstream
from dbt_arctic.sources.unread import Positions, RefreshSize

NOW = 1_800_000_000_000


def test_no_lag_and_an_unknown_lag_are_words(capsys: pytest.CaptureFixture[str]) -> None:
    position = {"positions": Positions("0/16B3748", "0/16B9000"), "full_refresh": RefreshSize("row", 7, 2048)}
    waiting = PendingUpstream("orders", "commit", 1, NOW - 5_400_000, 1, **position)
    unknown_size = PendingUpstream("clicks", "message", full_refresh=RefreshSize("message", 9))
    late, current, unknown = (
        ModelLag("late", (waiting,)),
        ModelLag(
            "current", (unknown_size, PendingUpstream("orders", "commit", full_refresh=RefreshSize("row")))
        ),
        ModelLag("plain", (), NO_VERSIONS),
    )
    _show((late, current), {"late": LagCause(waiting)}, NOW)
    assert [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["late", "1 h 30 min", "orders", "1 commit, 1 row", "0/16B3748 of 0/16B9000", "7 rows, 2.0 kB", ""],
        ["current", "none", "", "", "", "9 messages; ? rows", ""],
    ]
    _show((current, unknown), {}, NOW)
    shown = {line.split("\t")[0]: line.split("\t")[1] for line in capsys.readouterr().out.splitlines()[1:]}
    assert shown == {"current": "none", "plain": "?"}
    assert [is_too_late(one, None, NOW, 0) for one in (current, unknown)] == [False, True]


def test_all_problems_of_a_model_are_shown_with_the_lag_that_is_known() -> None:
    late = PendingUpstream("orders", "commit", 1, NOW - 5_000, 1)
    lost = PendingUpstream("clicks", "message", problem="the topic does not exist")
    model = ModelLag("late", (late, lost), NO_VERSIONS, ("other",))
    shown = _as_dict(model, LagCause(late), NOW)
    said = f"{NO_VERSIONS}; clicks: the topic does not exist; other: its own lag is unknown"
    assert (shown["lag_s"], shown["problem"]) == (5.0, said)
    assert _as_dict(ModelLag("current"), None, NOW)["problem"] is None


def test_a_long_position_is_cut_off_only_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    read, end = ",".join(["10"] * 12), "1,2,3,4,5,6,7,8,9,10"
    waiting = PendingUpstream("clicks", "message", 1, NOW, positions=Positions(read, end))
    late = ModelLag("late", (waiting,))
    _show((late,), {"late": LagCause(waiting)}, NOW)
    assert f"\t10,10,10,10,10,10,.. of {end}\t" in capsys.readouterr().out
    (shown,) = _as_dict(late, None, NOW)["upstreams"]
    assert (shown["position"], shown["end"]) == (read, end)
