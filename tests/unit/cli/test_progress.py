"""A progress bar is for terminals: it shows rows and steps there, and nothing to a program."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dbt_arctic.cli.progress import Bar, counting, progress, report_start, watched
from dbt_arctic.store.context import Context


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    screen = io.StringIO()
    monkeypatch.setattr(
        "dbt_arctic.cli.progress.Console", lambda stderr: Console(file=screen, force_terminal=True, width=120)
    )
    monkeypatch.delenv("CI", raising=False)
    return screen


def test_a_terminal_shows_the_current_step(terminal: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("compact", total=2) as bar:
        bar.now("major sales.orders", "40,500 pending rows, 9.7 MB")
        bar.echo("done with one")
        bar.advance()
    assert "40,500 pending rows, 9.7 MB" in terminal.getvalue()
    assert capsys.readouterr().out == "done with one\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_a_program_sees_nothing(
    quiet: bool,
    terminal: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if not quiet:
        monkeypatch.setenv("CI", "true")
    with progress("compact", quiet=quiet) as bar:
        bar.now("major sales.orders")
        bar.echo("to stderr", err=True)
    assert terminal.getvalue() == ""
    assert capsys.readouterr() == ("", "to stderr\n")


def test_where_stderr_is_a_file_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("compact") as bar:
        bar.now("major")
    assert capsys.readouterr() == ("", "")


def test_a_failure_leaves_the_terminal_as_it_was(terminal: io.StringIO) -> None:
    with pytest.raises(ValueError, match="no"), progress("compact"):
        raise ValueError("no")
    assert terminal.getvalue().endswith(("\x1b[?25h\r\x1b[1A\x1b[2K", "\x1b[?25h", "\x1b[2K"))


def test_each_statement_is_shown_with_the_rows_so_far(terminal: io.StringIO) -> None:
    ran: list[str] = []

    def run(step: str, sql: str, table: object = None) -> int | None:
        ran.append(sql)
        return 1200 if step == "hide_rows" else None

    told: list[str] = []
    with progress("erase") as bar:
        bar.now = lambda what, told_=None: told.append(f"{what}: {told_}")  # type: ignore[method-assign]
        context = watched(
            Context(catalog=None, run=run, query_schema=lambda sql: [], query=lambda sql: []), bar
        )  # type: ignore[arg-type]
        assert [context.run(step, step) for step in ("hide_rows", "expire")] == [1200, None]
    assert ran == ["hide_rows", "expire"]
    assert told == ["hide rows: statement 1", "expire: statement 2, 1,200 rows so far"]


def test_files_are_counted_and_requested_once_each() -> None:
    told: list[int] = []
    size_of = counting(told.append, len)
    assert [size_of("x" * number) for number in range(120)] == list(range(120))
    assert told == [50, 100]


def test_a_bar_says_how_many(terminal: io.StringIO) -> None:
    with progress("verify", total=1) as bar:
        assert isinstance(bar, Bar)
        bar.show_count("file", 1250)
    assert "1,250 files" in terminal.getvalue()


def test_the_start_of_spark_is_in_the_bar_or_a_line(
    terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress("compact"):
        report_start("starting Spark with Java 17")
    assert "starting Spark with Java 17" in terminal.getvalue()
    assert capsys.readouterr().err == ""
    report_start("starting Spark with Java 17")
    with progress("compact", quiet=True):
        report_start("still starting Spark: 10 s")
    assert capsys.readouterr().err == "starting Spark with Java 17\nstill starting Spark: 10 s\n"
