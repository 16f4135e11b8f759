"""Messages are as wide as the terminal, and a command in them can be copied."""

from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from dbt_arctic.cli import doctor
from dbt_arctic.cli.main import COMMANDS, main
from dbt_arctic.cli.messages import wrap_error, wrap_message
from dbt_arctic.engine.doctor import Check
from dbt_arctic.errors import ConfigError
from tests.terminals import on_terminal

LONG = "the table was rebuilt with another key since this model has read it, and none of its rows is known"
COMMANDS_IN_TEXTS = [
    "dbt run --full-refresh --select orders customers --vars '{from_day: 2026-01-01, to: x}'",
    "dbt-arctic restore shop.orders --generation 12 --yes --project-dir ../somewhere/else",
    "`CALL lake.system.register_table('shop.orders', '/data/lake/shop/orders/v1.metadata.json')`",
    'dbt-arctic sql "SELECT * FROM lake.shop.orders, lake.shop.customers WHERE id = 1"',
    "pip install 'dbt-arctic[report, something-else]' --upgrade --target ../somewhere/else",
]


@pytest.mark.parametrize("command", COMMANDS_IN_TEXTS)
@pytest.mark.parametrize("before", ["", "rebuild it: ", f"{LONG}: "])
@pytest.mark.parametrize("after", ["", f", or {LONG}", f"; {LONG}. {LONG}"])
def test_a_command_is_in_one_line_and_the_rest_fits(command: str, before: str, after: str) -> None:
    lines = wrap_message("  fix:   ", f"{before}{command}{after}", 60)
    assert [line for line in lines if command in line] != [], lines
    too_wide = [line for line in lines if cell_len(line) > 60 and command not in line]
    assert too_wide == []
    assert [line[:9] for line in lines] == ["  fix:   ", *[" " * 9] * (len(lines) - 1)]
    assert " ".join(line[9:] for line in lines) == f"{before}{command}{after}", "nothing is lost"


def test_of_a_text_with_a_layout_of_its_own_only_the_first_line_is_wrapped() -> None:
    sql = f"== SQL ==\nselect '{LONG}'\n-------^^^"
    assert wrap_message("  why:   ", f"{LONG}\n{sql}", 60)[-3:] == sql.split("\n")
    assert wrap_message("ok  java  ", "", 60) == ["ok  java  "]


def test_an_error_that_fits_is_as_in_a_pipe() -> None:
    error = ConfigError("it is wrong", where="models/orders.sql", why="no reason\n  at all", fix="dbt run")
    assert wrap_error(error, 80) == str(error)
    wide = ConfigError(LONG, where=LONG * 2, why=LONG, fix=LONG)
    lines = wrap_error(wide, 80).split("\n")
    assert [line for line in lines if cell_len(line) > 80] == [f"  where: {LONG * 2}"], "a path stays whole"
    assert " ".join(wrap_error(wide, 80).split()) == " ".join(str(wide).split())


@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_error_is_wrapped_on_a_terminal_and_not_in_a_pipe(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    error = ConfigError(LONG, fix=f"{LONG}: {COMMANDS_IN_TEXTS[0]}")

    @click.command()
    def fail() -> None:
        """Fail."""
        raise error

    monkeypatch.setitem(COMMANDS, "fail", "fail")
    monkeypatch.setattr(main, "get_command", lambda context, name: fail)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    assert main.main(["fail"], standalone_mode=False) == 2
    wrapped = wrap_error(error, 80)
    assert capfd.readouterr().err == f"{wrapped if is_terminal else error}\n"
    assert wrapped != str(error)


def test_what_doctor_finds_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = [
        Check("java", False, LONG, f"{LONG}: {COMMANDS_IN_TEXTS[0]}"),
        Check("class archive", True, LONG),
    ]
    monkeypatch.setattr(doctor, "examine", lambda: iter(checks))
    monkeypatch.setattr(sys, "exit", lambda code: None)
    lines = on_terminal(["doctor"], 80)
    assert [line.strip() for line in lines if len(line) > 80] == [COMMANDS_IN_TEXTS[0]]
    assert " ".join(" ".join(lines).split()).count(LONG) == 3
    piped = CliRunner().invoke(main, ["doctor"]).stdout.splitlines()
    assert piped == [
        f"!!  java               {LONG}",
        f"    fix: {checks[0].fix}",
        f"ok  class archive      {LONG}",
    ]
