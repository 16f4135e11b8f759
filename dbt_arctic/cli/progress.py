"""A progress bar on stderr, only on a terminal. Other output appears above the bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context

_T = TypeVar("_T")


@dataclass
class Bar:
    """Shows the current step, the share that is done, and a count."""

    _progress: Progress
    _task: TaskID

    def now(self, what: str, detail: str = "") -> None:
        """Show the current step.

        :param detail: its size in a few words: rows, bytes, files.
        """
        self._progress.update(self._task, description=what, detail=detail)

    @property
    def is_shown(self) -> bool:
        """Whether there is a terminal that shows the bar."""
        return not self._progress.disable

    def detail(self, text: str) -> None:
        """Show a text next to the current step."""
        self._progress.update(self._task, detail=text)

    def show_count(self, what: str, count: int) -> None:
        """Show how many items are done."""
        self._progress.update(self._task, detail=counted(count, what))

    def advance(self, by: float = 1.0) -> None:
        """Advance the bar."""
        self._progress.advance(self._task, by)

    def echo(self, text: str, err: bool = False) -> None:
        """Print a line above the bar."""
        if self._progress.disable:
            click.echo(text, err=err)
            return
        self._progress.stop()
        click.echo(text, err=err)
        self._progress.start()


@contextmanager
def progress(what: str, total: float | None = None, quiet: bool = False) -> Iterator[Bar]:
    """Show a progress bar inside the ``with`` block.

    :param total: the sum of all ``advance`` calls; ``None`` if unknown.
    :param quiet: show no bar, because a program reads the output.
    """
    global _current
    with _progress(Console(stderr=True), quiet or "CI" in os.environ) as shown:
        before, _current = _current, Bar(shown, shown.add_task(what, total=total, detail=""))
        try:
            yield _current
        finally:
            _current = before


_current: Bar | None = None


def report_start(text: str) -> None:
    """Report the start of Spark: in the bar if one is shown, otherwise as a line on stderr."""
    if _current is not None and _current.is_shown:
        _current.detail(text)
    else:
        click.echo(text, err=True)


def _progress(console: Console, off: bool) -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=off or not console.is_terminal,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def watched(context: Context, bar: Bar) -> Context:
    """The same context, which shows the step of each statement and the number of rows written so far."""
    rows = 0
    count = 0

    def run(step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        nonlocal rows, count
        count += 1
        so_far = f", {counted(rows, 'row')} so far" if rows else ""
        bar.now(step.replace("_", " "), f"statement {count}{so_far}")
        written = context.run(step, sql, table)
        rows += written or 0
        return written

    return replace(context, run=run)


def counting(count: Callable[[int], None], function: Callable[[str], _T]) -> Callable[[str], _T]:
    """Wrap a function of a file path to report the number of calls.

    An example is the size lookup of ``verify``.
    """
    calls = 0

    def counting_one(path: str) -> _T:
        nonlocal calls
        calls += 1
        if calls % 50 == 0:
            count(calls)
        return function(path)

    return counting_one
