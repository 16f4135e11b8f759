"""Commands are found by name, and only then imported."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from unittest.mock import Mock

import click
import pytest
from click.testing import CliRunner

from dbt_arctic.auto.verification_log import Verified
from dbt_arctic.cli.main import COMMANDS, main
from dbt_arctic.cli.options import duration_ms, optional_duration_ms
from dbt_arctic.cli.output import print_json, verification_as_dict
from dbt_arctic.keyed.names import Name


def test_every_command_is_where_the_documentation_says() -> None:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    assert {name: command.name for name, command in found.items() if command} == {
        name: name for name in COMMANDS
    }
    assert main.get_command(context, "statsu") is None


def _groups(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    yield path
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from _groups(found, (*path, name))


@pytest.mark.parametrize("path", list(_groups(main)), ids=" ".join)
def test_the_list_of_commands_is_not_cut_off_at_80_columns(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"], terminal_width=80).output
    commands = shown.partition("Commands:\n")[2].splitlines()
    assert commands
    assert [line for line in commands if line.endswith("...") or len(line) > 80] == []


def test_defaults_and_durations_look_alike_in_the_help_of_all_options() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        for option in command.params:
            shown = option.get_help_record(context) or ("", "")
            assert not re.search(r"\[\d+[smhd]\]|Default:", shown[1]), shown
            takes_duration = option.callback in (duration_ms, optional_duration_ms)
            assert takes_duration == ("DURATION" in shown[0]), (name, shown)


def test_the_error_for_a_misspelled_command_names_the_right_one() -> None:
    wrong = CliRunner().invoke(main, ["stauts"])
    assert (wrong.exit_code, "Did you mean status?" in wrong.output) == (2, True)
    assert "Did you mean" not in CliRunner().invoke(main, ["tables"]).output


def test_the_error_for_a_short_time_names_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_arctic.adapter.project.load_target", lambda *_: Mock())
    for command, option in (("expire", "--older-than"), ("clean", "--files-older-than")):
        wrong = CliRunner().invoke(main, [command, option, "30m"])
        assert (wrong.exit_code, f"Invalid value for {option}" in wrong.output) == (2, True), wrong.output


def test_an_undo_of_a_full_refresh_does_not_ask_if_there_was_none(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Mock(to_write=lambda text: Name("lake", "dev", text))
    monkeypatch.setattr("dbt_arctic.adapter.project.load_target", lambda *_: Mock())
    monkeypatch.setattr("dbt_arctic.adapter.target_session.target_session", lambda *_: nullcontext(session))
    monkeypatch.setattr("dbt_arctic.maintenance.restore._shown", lambda *_: (None, ""))
    refused = CliRunner().invoke(main, ["restore", "orders", "--previous"], input="y\n")
    assert refused.exit_code == 2
    assert refused.output.startswith("AR-301 lake.dev.orders has no previous generation")
    assert "dbt-arctic rollback dev.orders VERSION" in refused.output


def test_a_command_does_not_wait_for_what_it_does_not_use() -> None:
    code = "import sys, dbt_arctic.cli.main; print(any(name in sys.modules for name in ('sqlglot', 'rich')))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "False"


def test_a_crash_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 says that there is something to look at."""

    @click.command()
    def crash() -> None:
        raise RuntimeError("jdbc:postgresql://me:hunter2@host/db does not answer")

    monkeypatch.setattr("dbt_arctic.cli.status.status", crash)
    outcome = CliRunner().invoke(main, ["status"])
    assert outcome.exit_code == 2
    assert "does not answer" in outcome.output
    assert "hunter2" not in outcome.output
    assert CliRunner().invoke(main, ["status", "--no-such-option"]).exit_code == 2
    assert CliRunner().invoke(main, ["status", "--help"]).exit_code == 0


def test_a_verification_has_the_time_of_its_commit_like_all_times_in_json() -> None:
    found = verification_as_dict(Verified(7, 1_800_000_000_000, "different", 40, 2, 1.5))
    assert found["committed"] == "2027-01-15 08:00:00.000"
    assert (found["result"], found["keys"], found["differ"], "committed_ms" in found) == (
        "different",
        40,
        2,
        False,
    )


def test_keys_of_maps_are_text_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json([{"a": {dt.date(2026, 1, 31): [Decimal("1.5")]}}])
    assert json.loads(capsys.readouterr().out) == [{"a": {"2026-01-31": ["1.5"]}}]
