"""Which run owns a build, and when its lease ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import CommitConflict
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.store import lease, process
from dbt_arctic.store.context import Context, RunStatement
from dbt_arctic.store.process import Process, is_running, started, this_process

NOW = 1_800_000_000_000
TABLE = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(2, "base-2", "change-2"),
    key=("id",),
    layout=Layout(2, "id", (), ("id",)),
    columns=(Column("id", "bigint"),),
)


def context(**changes: Any) -> Context:
    made = Context(None, lambda *of: -1, lambda sql: [], lambda sql: [], "run-1", lambda: NOW)  # type: ignore[arg-type]
    return replace(made, **changes)


def base(holder: Process, renewed_ms: int | None = None) -> TableState:
    taken = replace(lease.new_lease(context(), timeout_s=60), holder=holder)
    properties = {"arctic.of": "lake.shop.orders", "arctic.id": "base-2", **taken.to_properties()}
    if renewed_ms is not None:
        properties[lease.PROPERTY_RENEWED] = str(renewed_ms)
    return TableState("shop", "orders__base_2", "", properties, (), (), None, {})


def change(finished: bool, at_ms: int) -> TableState:
    properties = {} if finished else {"write.metadata.metrics.default": "none"}
    commit = Snapshot(1, None, 1, at_ms, "append", {})
    return TableState("shop", "orders__change_2", "", properties, (), (commit,), 1, {"main": 1})


def ended() -> Process:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        mark = started(child.pid)
        assert mark
    assert started(child.pid) == ""
    return replace(this_process(), pid=child.pid, started=mark)


def test_a_process_is_distinguished_from_an_ended_one_and_from_a_later_one_with_its_number() -> None:
    here = this_process()
    assert is_running(here) is True
    boot = here.started.partition(":")[0]
    assert boot
    assert is_running(replace(here, started=f"{boot}:another time")) is False
    assert is_running(ended()) is False
    assert is_running(replace(here, host="elsewhere")) is None
    assert is_running(replace(here, space="another container")) is None
    # Another machine of the same name, or this one before it was started again: it is unknown which.
    assert is_running(replace(ended(), started="another-boot:7")) is None


def test_without_a_known_start_of_the_machine_only_a_running_process_is_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_boot", lambda: "")
    process._process.cache_clear()
    try:
        assert is_running(this_process()) is True
        assert is_running(ended()) is None
    finally:
        process._process.cache_clear()


def test_ps_tells_the_start_of_a_process_where_there_are_no_files_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "_PROC", tmp_path)
    shown = {"ps": "S    Mon Nov 30 15:10:57 2026", "sysctl": "a-boot"}
    monkeypatch.setattr(process, "_output", lambda command, *_: shown[command])
    process._boot.cache_clear()
    try:
        assert started(7) == "a-boot:Mon Nov 30 15:10:57 2026"
        shown["ps"] = "Z    Mon Nov 30 15:10:57 2026"
        assert started(7) == ""
        shown["ps"] = ""
        assert started(7) == ""
    finally:
        process._boot.cache_clear()


def test_a_process_that_ended_and_was_not_waited_for_does_not_run() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert started(child.pid) == ""


def test_a_lease_of_this_process_is_held_while_its_build_is_active() -> None:
    mine = base(this_process())
    assert lease.build_in_progress(2, mine, None, NOW) is None
    assert lease.was_interrupted(mine, None)
    with lease.held_lease(context(), TABLE, lease.new_lease(context(), 60)):
        found = lease.build_in_progress(2, mine, None, NOW)
        assert found is not None
        assert not lease.was_interrupted(mine, None)
        assert "run-1" in found.lease.description
        with pytest.raises(RuntimeError), lease.held_lease(context(), TABLE, found.lease):
            raise RuntimeError
    assert lease.build_in_progress(2, mine, None, NOW) is None


def test_a_lease_of_a_process_that_has_ended_is_over_at_once() -> None:
    assert lease.build_in_progress(2, base(ended()), None, NOW) is None
    assert lease.was_interrupted(base(ended()), change(finished=False, at_ms=NOW))
    assert not lease.was_interrupted(base(ended()), change(finished=True, at_ms=NOW)), "maybe shown"


def test_a_lease_of_another_host_is_over_when_it_was_not_renewed() -> None:
    other = replace(this_process(), host="elsewhere")
    assert lease.build_in_progress(2, base(other), None, NOW + 60_000) is not None
    assert lease.build_in_progress(2, base(other), None, NOW + 60_001) is None
    assert lease.build_in_progress(2, base(other, NOW + 50_000), None, NOW + 110_000) is not None
    assert not lease.was_interrupted(base(other), None), "nobody knows"


def test_a_finished_build_is_active_until_it_must_have_been_published() -> None:
    with lease.held_lease(context(), TABLE, lease.new_lease(context(), 60)):
        found = lease.build_in_progress(2, base(this_process()), change(True, NOW - 60_000), NOW)
        assert found is not None
        assert found.finished
        assert lease.build_in_progress(2, base(this_process()), change(True, NOW - 60_001), NOW) is None


def test_a_table_without_a_valid_lease_has_no_owner() -> None:
    for text in (None, "", "{}", "[1]", '{"holder": 1}'):
        properties = {} if text is None else {lease.PROPERTY_LEASE: text}
        strange = replace(base(this_process()), properties=properties)
        assert lease.build_in_progress(2, strange, None, NOW) is None
        assert not lease.was_interrupted(strange, None)


def test_a_lease_is_renewed_during_a_long_statement_and_a_failed_renewal_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    renewed = threading.Event()

    def run(step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        ran.append(f"{step} {threading.current_thread().name}")
        if len(ran) == 1:
            raise CommitConflict("others were faster")
        renewed.set()
        return None

    @contextmanager
    def beside() -> Iterator[RunStatement]:
        yield run

    monkeypatch.setattr(lease, "RENEWALS", 60_000)
    with lease.held_lease(context(second_connection=beside), TABLE, lease.new_lease(context(), 60)):
        assert renewed.wait(20)
    assert set(ran) == {"renew_lease arctic-lease"}
    assert "arctic-lease" not in {thread.name for thread in threading.enumerate()}
    assert "'arctic.lease-renewed-ms' = '1800000000000'" in lease.renew_statement(TABLE, NOW)
