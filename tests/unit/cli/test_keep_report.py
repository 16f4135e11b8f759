"""Each action of ``keep`` is one line, and readable on a narrow terminal and in a pipe."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest

from dbt_arctic.adapter.keep_actions import ActionOutcome, Observation
from dbt_arctic.cli import keep_report
from dbt_arctic.cli.keep_report import KeepReport, action_lines, shown_end, shown_models
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import FAILED, OperationResult
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.scheduling.model_lag import NOT_BUILT, LagCause, ModelLag, PendingUpstream
from dbt_arctic.scheduling.scheduler import KeptModel
from dbt_arctic.scheduling.settings import KeepSettings

FILES = PendingUpstream("landing.clicks", "file", 1, 0, None, 31_744)
LOOK = Observation(
    {},
    {
        "clicks": ModelLag("clicks", (FILES,)),
        "by_page": ModelLag("by_page"),
        "new": ModelLag("new", (), NOT_BUILT),
    }
    | {"daily": ModelLag("daily")},
    {"clicks": LagCause(FILES), "by_page": LagCause(FILES, ("clicks",))},
)
MAJOR = Operation("major", Name("lake", "shop", "clicks"), "15% of the rows are pending", 40.0, 1.0)


class Project:
    models = (
        KeptModel("clicks", KeepSettings(is_downstream=True)),
        KeptModel("by_page", KeepSettings(target_lag_s=60)),
        KeptModel("new", KeepSettings(target_lag_s=60)),
        KeptModel("daily", KeepSettings(every_s=86400)),
    )


def report(as_json: bool = False) -> KeepReport:
    return KeepReport(cast(Any, Project()), as_json)


def story(shown: KeepReport) -> None:
    shown.refreshed(ActionOutcome("clicks", "refreshed", 0.91, 1204), LOOK, None)
    shown.refreshed(ActionOutcome("by_page", "failed", 0.4, message="AR-303 A\n  why: b"), LOOK, 20.2)
    shown.refreshed(ActionOutcome("new", "skipped"), LOOK, None)
    shown.refreshed(ActionOutcome("daily", "overtaken", 3.0), LOOK, 1.0)
    shown.refreshed(ActionOutcome("on-run-end-0", "failed", 0.1, message="no"), LOOK, 10.0)
    shown.compacted(OperationResult(MAJOR, "compacted", "3 commits merged", seconds=2.44))
    shown.compacted(OperationResult(MAJOR, FAILED, "AR-202 moved", seconds=2.44))
    shown.shed(MAJOR)
    shown.problem(CatalogUnavailable("the catalog is locked"), 4.0)


def test_an_action_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    story(report())
    day, *lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d UTC", day)
    assert [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in lines] == [
        "refreshed  clicks    1,204 rows    0.9 s  landing.clicks: 1 file, 31.0 kB",
        "failed     by_page                 0.4 s  landing.clicks, through clicks: 1 file, 31.0 kB; "
        "again in 20 s",
        "          AR-303 A",
        "            why: b",
        "skipped    new                            it is not built yet",
        "overtaken  daily                   3.0 s  every 1 d; again in 1 s",
        "failed     on-run-end-0                 0.1 s  again in 10 s",
        "          no",
        "compacted  clicks                  2.4 s  major: 15% of the rows are pending; 3 commits merged",
        "failed     clicks                  2.4 s  major: 15% of the rows are pending",
        "          AR-202 moved",
        "shed       clicks                         major compaction, about 40 s, does not fit between "
        "refreshes; it runs after an hour at the latest, or with dbt-arctic compact",
        "failed                                    again in 4 s",
        "          AR-104 the catalog is locked",
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_report, "terminal_width", lambda: width)
    story(report())
    wide = capsys.readouterr().out
    assert max(map(len, wide.splitlines())) <= width
    monkeypatch.setattr(keep_report, "terminal_width", lambda: None)
    story(report())
    assert re.sub(r"[\s\d]+", "", wide) == re.sub(r"[\s\d]+", "", capsys.readouterr().out)


def test_an_action_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    story(report(as_json=True))
    first, failed, *_, problem = map(json.loads, capsys.readouterr().out.splitlines())
    assert re.fullmatch(r"[\d-]{10} [\d:]{8}\.\d{3}", first.pop("at"))
    assert first == {
        "action": "refreshed",
        "model": "clicks",
        "rows": 1204,
        "seconds": 0.91,
        "why": "landing.clicks: 1 file, 31.0 kB",
        "message": None,
    }
    assert (failed["action"], failed["message"]) == ("failed", "AR-303 A\n  why: b")
    assert problem["seconds"] is None


def test_long_reasons_continue_below() -> None:
    assert action_lines("10:00:00  refreshed  a", "landing.orders: 1 file, 31.0 kB", 50) == [
        "10:00:00  refreshed  a  landing.orders: 1 file,",
        "                        31.0 kB",
    ]
    assert action_lines("10:00:00  refreshed  a", "landing.orders: 1 file", 40) == [
        "10:00:00  refreshed  a",
        "          landing.orders: 1 file",
    ]


def test_the_first_and_the_last_line() -> None:
    settings = {one.model: one.settings for one in Project.models}
    assert shown_models(settings) == "clicks (downstream), by_page (1 min), new (1 min), daily (every 1 d)"
    assert shown_end("", 1, 2, 0, []) == "Ended: 1 refresh, 2 compactions."
    assert shown_end("SIGTERM", 2, 1, 1, ["a"]) == (
        "Ended by SIGTERM: 2 refreshes, 1 compaction, 1 failure. Failing: a."
    )
