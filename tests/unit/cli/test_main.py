"""Commands are found by name, and only then imported."""

from __future__ import annotations

import subprocess
import sys

import click

from dbt_arctic.cli.main import COMMANDS, main


def test_every_command_is_where_it_is_said_to_be() -> None:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    assert {name: command.name for name, command in found.items() if command} == {
        name: name for name in COMMANDS
    }
    assert main.get_command(context, "statsu") is None


def test_a_command_does_not_wait_for_what_it_does_not_use() -> None:
    code = "import sys, dbt_arctic.cli.main; print(any(name in sys.modules for name in ('sqlglot', 'rich')))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "False"
