"""How all commands print tables, JSON, times and sizes."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.cli.messages import wrap_message
from dbt_arctic.cli.tables import Cell, Kind, for_pipe, for_terminal
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import Record
from dbt_arctic.secret import without_secrets

if TYPE_CHECKING:
    from dbt_arctic.auto.verification_log import Verified

_FOLDERS = re.compile(r"(?:\b[a-z][a-z0-9+.-]*:)?(?<![\w.])/{1,3}(?:[^\s/'\"`,;:()]+/)+")


def print_table(columns: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> None:
    """Print rows as a table that fits the terminal; in a pipe, print full values that tabs separate.

    :param columns: the heading and the layout of each column.
    """
    print_grid(list(columns.items()), rows)


def print_grid(columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[Cell]]) -> None:
    """As ``print_table``, but two columns may have the same heading, as in the result of a query."""
    width = terminal_width()
    lines = for_pipe(columns, rows) if width is None else for_terminal(columns, rows, width)
    for line in lines:
        click.secho(line.text, bold=line.is_heading or None)


def terminal_width() -> int | None:
    """The width of the terminal; ``None`` if the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_message(label: str, text: str) -> None:
    """Print a text after a label, on a terminal in lines that fit it."""
    width = terminal_width()
    lines = [label + text] if width is None else wrap_message(label, text, width)
    click.echo("\n".join(lines))


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], limit: int, as_json: bool) -> None:
    """Print at most ``limit`` rows of a query (0: all), and a note on stderr if there are more."""
    shown = rows[: limit or None]
    if as_json:
        _require_different_names(columns)
        print_json([dict(zip(columns, row, strict=True)) for row in shown])
    else:
        print_grid(
            [(column, "value") for column in columns],
            ([shown_value(value) for value in row] for row in shown),
        )
        click.echo(counted(len(shown), "row"), err=terminal_width() is None)
    if len(shown) < len(rows):
        click.echo(f"There are more than {counted(limit, 'row')}; --limit 0 shows all.", err=True)


def _require_different_names(columns: Sequence[str]) -> None:
    """Refuse to print two columns of one name as JSON, which would keep one of them."""
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise ConfigError(
            f"the query returns several columns called {twice}",
            where="--json",
            why="an object of JSON has one value for each name",
            fix="give them different names with AS",
        )


def shown_value(value: Any) -> str:
    """A value of a query, for display.

    >>> [shown_value(value) for value in (None, True, "True", 1)]
    ['NULL', 'true', 'True', '1']
    """
    if value is None:
        return "NULL"
    return str(value).lower() if isinstance(value, bool) else str(value)


def operation_as_dict(operation: Operation) -> dict[str, Any]:
    """A due operation as JSON."""
    return {
        "kind": operation.kind,
        "table": operation.name.dotted,
        "scope": operation.scope,
        "why": operation.why,
        "cost_s": round(operation.cost_s, 1),
        "gain_s": round(operation.gain_s, 3),
    }


def record_as_dict(record: Record) -> dict[str, Any]:
    """A finished operation, which is one row of the operations table, as JSON."""
    entry = asdict(record)
    return {"at": shown_time(entry.pop("at_ms")), **entry}


def verification_as_dict(verified: Verified) -> dict[str, Any]:
    """A recorded verification as JSON; ``committed`` is the time of the commit that was verified."""
    entry = asdict(verified)
    return {"committed": shown_time(entry.pop("committed_ms")), **entry}


def shown_time(time_ms: int) -> str:
    """A point in time in UTC, in the format that commands accept.

    >>> shown_time(1500)
    '1970-01-01 00:00:01.500'
    """
    at = dt.datetime.fromtimestamp(time_ms / 1000, dt.timezone.utc)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{time_ms % 1000:03}"


def shareable(text: str) -> str:
    """A text that can be shared: without secrets, and with only the last part of each path or address.

    >>> shareable("read of file:/data/lake/orders/1.parquet: 2 / 3 of s3://mine/lake/x.avro")
    'read of 1.parquet: 2 / 3 of x.avro'
    """
    return _FOLDERS.sub("", without_secrets(text))


def print_json(value: Any) -> None:
    """Print a value as JSON.

    Values and map keys that JSON does not have (decimals, dates, NaN) become strings.
    """
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


def shown_names(names: Iterable[Name]) -> dict[Name, str]:
    """Tables as a command prints them: with the schema, and with the catalog if there are several."""
    found = list(names)
    several = len({name.catalog for name in found}) > 1
    return {name: name.dotted if several else f"{name.schema}.{name.identifier}" for name in found}
