"""A model is planned with the settings of the session that executes the plan, only as often as needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter.auto_api import AutoApi
from dbt_arctic.adapter.impl import ArcticAdapter
from dbt_arctic.auto.session_settings import session_text
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.keyed.names import Name

OURS = {"spark.sql.session.timeZone": "UTC", "spark.sql.variable.substitute": "false"}
OTHER = {**OURS, "spark.sql.legacy.sizeOfNull": "false"}


class Handle:
    """A connection. ``reads``: how often the settings of its session were read.

    :param new: the settings that a new session has, as far as they are known; ``None`` if a session has to
        be opened to know them.
    """

    def __init__(self, new: dict[str, str] | None, *, is_open: bool = False) -> None:
        self._new, self.is_open, self.reads = new, is_open, 0

    def conf(self, *, start: bool = True) -> dict[str, str]:
        if self._new is not None and not start and not self.is_open:
            return self._new
        self.is_open = True
        self.reads += 1
        return OTHER


@pytest.mark.parametrize(
    ("handle", "action", "planned", "reads"),
    [
        (Handle(OURS), "incremental", [OURS, OTHER], 1),
        (Handle(OTHER), "incremental", [OTHER], 1),
        (Handle(OURS), "nothing", [OURS], 0),
        (Handle(OURS, is_open=True), "incremental", [OTHER], 1),
        (Handle(None), "incremental", [OTHER], 1),
    ],
    ids=["other settings", "the same", "nothing to execute", "open", "opened to know them"],
)
def test_a_plan_has_the_settings_of_its_session(
    handle: Handle, action: str, planned: list[dict[str, str]], reads: int
) -> None:
    sessions: list[str] = []

    def planned_with(session: str, *of: Any) -> Any:
        sessions.append(session)
        return SimpleNamespace(session=session, plan=SimpleNamespace(action=action))

    adapter = SimpleNamespace(_handle=lambda: handle, _defined=lambda: (), _planned_with=planned_with)
    unused: Any = None
    found = AutoApi._planned(
        cast(Any, adapter), unused, Name("lake", "shop", "m"), {}, "SELECT 1", False, False
    )
    assert sessions == [session_text(conf) for conf in planned]
    assert cast(Any, found).session == sessions[-1]
    assert handle.reads == reads


def test_what_macros_define_is_remembered_for_the_session_and_run_as_it_is() -> None:
    ran: list[dict[str, Any]] = []
    adapter: Any = object.__new__(ArcticAdapter)
    handles = [Handle(OURS), Handle(OURS)]
    here = SimpleNamespace(handle=handles[0])
    adapter.connections = SimpleNamespace(
        execute=lambda **given: ran.append(given), get_thread_connection=lambda: here
    )
    statement = "-- of a macro\nDECLARE  x INT"
    for sql in ("SELECT declare FROM t", statement):
        adapter.execute(sql, False, fetch=True)
    assert [one["sql"] for one in ran] == ["SELECT declare FROM t", statement]
    assert all(one["fetch"] and not one["auto_begin"] for one in ran)
    assert adapter._defined() == ["declare x int"]
    here.handle = handles[1]
    assert adapter._defined() == ()
    assert "execute" in ArcticAdapter._available_
    assert list(ArcticAdapter._parse_replacements_["execute"]()[1]) == []


def test_sessions_with_the_same_settings_share_rows_except_on_a_server() -> None:
    here: Any = SimpleNamespace(_handle=SessionEngine(SparkSettings("lake", "lake")).connect)
    rows = AutoApi._shared_rows(here, "a")
    assert rows is not None
    assert rows.settings == "a"
    assert AutoApi._shared_rows(here, "a") is rows
    assert AutoApi._shared_rows(here, "b") is not rows
    assert AutoApi._shared_rows(cast(Any, SimpleNamespace(_handle=lambda: Handle(OURS))), "a") is None
