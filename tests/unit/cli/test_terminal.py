"""The width of a table is that of a real terminal."""

from __future__ import annotations

import click
import pytest

from dbt_arctic.cli.main import COMMANDS, main
from dbt_arctic.cli.output import print_table, terminal_width
from tests.terminals import on_terminal

NAME = "analytics_production.customer_order_amounts"
WHY = "a read costs 3.1 times as much as it could, and a fifth of the rows is pending"


@click.command()
def show() -> None:
    """Print the width and a table."""
    click.echo(str(terminal_width()))
    print_table({"table": "name", "why": "text", "rows": "number"}, [[NAME, WHY, "1,000"]])


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_is_as_wide_as_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "show", "show")
    monkeypatch.setattr(main, "get_command", lambda context, name: show)
    width, *lines = on_terminal(["show"], columns)
    assert int(width) == columns
    assert max(map(len, lines)) <= columns
    assert any(NAME in line and "1,000" in line for line in lines)
    assert set(WHY.split()) <= {word for line in lines for word in line.split()}
