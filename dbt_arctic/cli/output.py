"""How commands print: tables, JSON, times and sizes; one way for all of them."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import click
from rich.console import Console
from rich.table import Table

from dbt_arctic.compaction.plan import Operation
from dbt_arctic.keyed.operations import Record
from dbt_arctic.secret import without_secrets

Kind = Literal["name", "number", "text"]
"""How a column is set: a name is never broken, a number stands at the right, a text may be folded."""
_FOLDERS = re.compile(r"(?:\b[a-z][a-z0-9+.-]*:)?(?<![\w.])/{1,3}(?:[^\s/'\"`,;:()]+/)+")


def print_table(columns: Mapping[str, Kind], rows: Iterable[Sequence[str]]) -> None:
    """Print rows as a table that fits the terminal.

    :param columns: their headings, and how each is set.
    """
    print_grid(list(columns.items()), rows)


def print_grid(columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[str]]) -> None:
    """The same where two columns may have one heading, as those of a query."""
    table = Table(box=None, pad_edge=False)
    for heading, kind in columns:
        if kind == "text":
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right" if kind == "number" else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    wide_console().print(table)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], limit: int, as_json: bool) -> None:
    """The rows of a query, as many as ``limit`` says (0: all); and on stderr, whether there are more."""
    shown = rows[: limit or None]
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in shown])
    else:
        print_grid(
            [(column, "text") for column in columns],
            (["NULL" if value is None else str(value) for value in row] for row in shown),
        )
        click.echo(counted(len(shown), "row"))
    if len(shown) < len(rows):
        click.echo(f"There are more than {limit}: --limit 0", err=True)


def operation_as_dict(operation: Operation) -> dict[str, Any]:
    """What is to be done, for programs."""
    return {
        "kind": operation.kind,
        "table": operation.name.dotted,
        "scope": operation.scope,
        "why": operation.why,
        "cost_s": round(operation.cost_s, 1),
        "gain_s": round(operation.gain_s, 3),
    }


def record_as_dict(record: Record) -> dict[str, Any]:
    """What was done, for programs: a row of the table of operations."""
    told = asdict(record)
    return {"at": shown_time(told.pop("at_ms")), **told}


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "file"), counted(2000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown_time(time_ms: int) -> str:
    """A moment in UTC, in the form in which a command takes it back.

    >>> shown_time(1500)
    '1970-01-01 00:00:01.500'
    """
    at = dt.datetime.fromtimestamp(time_ms / 1000, dt.timezone.utc)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03}"


def shown_bytes(size: float) -> str:
    """A size as a person says it.

    >>> shown_bytes(900), shown_bytes(15_000_000)
    ('900 B', '14.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def shareable(text: str) -> str:
    """A text that may leave this machine: of a path or an address only what is last, and no secret.

    >>> shareable("read of file:/data/lake/orders/1.parquet: 2 / 3 of s3://mine/lake/x.avro")
    'read of 1.parquet: 2 / 3 of x.avro'
    """
    return _FOLDERS.sub("", without_secrets(text))


def wide_console() -> Console:
    """As wide as it takes where nobody looks: a version that is cut off is of no use to a script."""
    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=1000)


def print_json(value: Any) -> None:
    """Anything that JSON does not know (a decimal, a date, NaN) as its text, as a key of a map too."""
    click.echo(json.dumps(_known(value), indent=2, default=str, ensure_ascii=False))


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key if isinstance(key, str | int | bool | None) else str(_known(key)): _known(one)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_known(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value.hex().upper() if isinstance(value, bytes) else value
