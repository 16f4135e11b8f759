"""The project's own server: which users have access, what its command prints, and how it ends."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.adapter.connections import ArcticConnectionManager
from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_engine
from dbt_arctic.cli.main import main
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.engine.server import (
    Server,
    _state_file,
    read_server,
    start_server,
    stop_server,
    usable_server,
)
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError, ServerError
from tests.connect.conftest import SPARK_CONF, ends_with_this_process

TARGET = {"type": "arctic", "schema": "dev", "master": "local[2]", "driver_memory": "1g", "threads": 2}


def write_project(folder: Path, warehouse: Path, **changes: Any) -> None:
    """A dbt project of one model whose profile means the same Spark as the server's settings."""
    target = {**TARGET, "warehouse": str(warehouse), "spark_conf": SPARK_CONF, **changes}
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models" / "numbers.sql").write_text(
        "{{ config(materialized='incremental', unique_key='id', buckets=2) }} select id from range(3)"
    )
    (folder / "dbt_project.yml").write_text("{name: shop, version: '1.0', profile: shop}")
    (folder / "profiles.yml").write_text(
        yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}})
    )


def command(folder: Path, *arguments: str) -> Result:
    folders = ["--project-dir", str(folder), "--profiles-dir", str(folder)]
    return CliRunner().invoke(main, ["server", *arguments, *folders], catch_exceptions=False)


def credentials(warehouse: Path, **changes: Any) -> ArcticCredentials:
    settings: dict[str, Any] = {
        "database": "lake",
        "schema": "dev",
        "master": "local[2]",
        "driver_memory": "1g",
        "warehouse": str(warehouse),
        "spark_conf": SPARK_CONF,
    }
    return ArcticCredentials.from_dict({**settings, **changes})


def test_the_profile_uses_the_server_of_its_project_and_settings_and_no_other(
    server: Server, server_project: Path, warehouse: Path, tmp_path: Path
) -> None:
    def chosen(folder: Path, profile: ArcticCredentials) -> type:
        return type(choose_engine(profile, str(folder)).engine)

    assert chosen(server_project, credentials(warehouse)) is ConnectEngine
    assert chosen(tmp_path, credentials(warehouse)) is SessionEngine
    assert chosen(server_project, credentials(tmp_path)) is SessionEngine
    assert chosen(server_project, credentials(warehouse, driver_memory="2g")) is SessionEngine
    assert chosen(server_project, credentials(warehouse, catalog_properties={"x": "y"})) is SessionEngine
    assert chosen(server_project, credentials(warehouse, use_server=False)) is SessionEngine


def test_only_its_owner_can_read_what_is_known_of_a_server(server: Server, server_project: Path) -> None:
    state = _state_file(server_project)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert stat.S_IMODE(state.parent.stat().st_mode) == 0o700
    assert server.token in state.read_text()
    command_line = Path(f"/proc/{server.pid}/cmdline")
    if command_line.exists():
        assert server.token not in command_line.read_text()
    assert list(state.parent.glob("*.conf")) == []


def test_a_file_that_describes_no_server_of_ours_is_ignored(
    server: Server, server_project: Path, server_settings: SparkSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = _state_file(server_project)
    kept = state.read_text()
    try:
        # Another process has the number by now: this one.
        state.write_text(json.dumps({**dataclasses.asdict(server), "pid": os.getpid()}))
        assert usable_server(server_project, server_settings) is None
        state.write_text("{}")
        assert read_server(server_project) is None
    finally:
        state.write_text(kept)
    assert usable_server(server_project, server_settings) == server
    monkeypatch.setattr(os, "getuid", lambda: state.stat().st_uid + 1)
    assert read_server(server_project) is None


def test_starting_again_keeps_the_server_and_other_settings_are_refused(
    server: Server, server_project: Path, server_settings: SparkSettings
) -> None:
    assert start_server(server_project, server_settings) == server
    with pytest.raises(ServerError, match="runs with other settings"):
        start_server(server_project, dataclasses.replace(server_settings, driver_memory="2g"))


def test_dbt_runs_on_the_server_and_the_command_reports_it(
    server: Server, server_project: Path, warehouse: Path
) -> None:
    write_project(server_project, warehouse)
    shown = command(server_project, "status")
    assert (shown.exit_code, "target dev" in shown.output) == (0, True), shown.output
    assert str(server.pid) in shown.output
    assert server.token not in shown.output
    outcome = run_dbt(server_project)
    assert [result.message for result in outcome.result.results] == ["BUILD 3 rows"]
    assert [result.message for result in run_dbt(server_project).result.results] == ["UPSERT 3"]
    (engine,) = ArcticConnectionManager._engines.values()
    assert isinstance(engine, ConnectEngine)
    again = command(server_project, "start")
    assert (again.exit_code, str(server.pid) in again.output) == (0, True), again.output


def run_dbt(folder: Path) -> Any:
    before = os.getcwd()
    try:
        outcome = dbtRunner().invoke(
            ["run", "--quiet", "--project-dir", str(folder), "--profiles-dir", str(folder)]
        )
    finally:
        os.chdir(before)
        reset_adapters()
    assert outcome.success, outcome
    return outcome


def test_a_proxy_of_the_environment_is_not_used_for_the_projects_server(
    connect_settings: ConnectSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # without a listener
    monkeypatch.setenv("no_proxy", "")
    with contextlib.closing(ConnectEngine(connect_settings).connect()) as own:
        cursor = own.cursor()
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]


def test_a_project_without_a_server_gets_an_error_that_says_how_to_start_one(
    tmp_path: Path, warehouse: Path
) -> None:
    write_project(tmp_path, warehouse)
    shown = command(tmp_path, "status")
    assert (shown.exit_code, shown.output) == (
        1,
        "This project has no running server. Start one with: dbt-arctic server start\n",
    )
    assert command(tmp_path, "stop").output == "This project has no running server.\n"


@pytest.mark.parametrize("command_name", ["start", "status"])
def test_a_target_with_an_external_server_needs_none(tmp_path: Path, command_name: str) -> None:
    write_project(tmp_path, tmp_path)
    target = {"type": "arctic", "method": "connect", "host": "sc://h", "schema": "dev"}
    profile = {"shop": {"target": "dev", "outputs": {"dev": target}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    shown = command(tmp_path, command_name)
    assert (shown.exit_code, "already uses a server, by method: connect" in shown.output) == (2, True), (
        shown.output
    )


def test_another_target_gets_an_error_that_the_server_is_not_its_own(
    server: Server, server_project: Path, warehouse: Path
) -> None:
    write_project(server_project, warehouse, driver_memory="3g")
    shown = command(server_project, "status")
    assert (shown.exit_code, "settings that differ" in shown.output) == (1, True), shown.output


def test_a_server_whose_process_has_ended_is_forgotten(
    server: Server, server_settings: SparkSettings, tmp_path: Path
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    state = _state_file(tmp_path)
    known = dataclasses.replace(server, pid=ended.pid, log=str(tmp_path / "log"))
    state.write_text(json.dumps(dataclasses.asdict(known)))
    assert read_server(tmp_path) == known
    assert usable_server(tmp_path, server_settings) is None
    assert stop_server(tmp_path) is None
    assert read_server(tmp_path) is None


@pytest.mark.long
def test_a_server_that_was_killed_is_forgotten_and_one_that_runs_is_stopped(tmp_path: Path) -> None:
    settings = SparkSettings(
        catalog="lake", warehouse=str(tmp_path / "lake"), master="local[1]", driver_memory="1g"
    )
    killed = start_server(tmp_path, settings)
    os.kill(killed.pid, signal.SIGKILL)
    os.waitpid(killed.pid, 0)
    assert usable_server(tmp_path, settings) is None
    assert stop_server(tmp_path) is None
    assert read_server(tmp_path) is None
    running = start_server(tmp_path, settings)
    with ends_with_this_process(running.pid):
        assert stop_server(tmp_path) == running
    assert not running.is_alive()
    assert list(Path(running.log).parent.glob(f"{running.id}*")) == []


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    settings = SparkSettings(
        catalog="lake", warehouse=str(tmp_path / "lake"), master="local[1]", driver_memory="1x"
    )
    with pytest.raises(ArcticError, match="driver_memory"):
        start_server(tmp_path, settings)
    assert read_server(tmp_path) is None
