"""Lays out rows as a table: for a terminal of any width, and for a pipe.

In a pipe, a line is one row, and a tab separates full values. On a terminal, a table that is too wide first
wraps headings and texts. Then a few long names get a line of their own above the rest of their row, and texts
below it. If that is not enough, each row is a list. Nothing is cut off. Pure functions over strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, chop_cells

Kind = Literal["name", "number", "text", "value"]
"""The layout of a column: names never wrap, numbers are right-aligned, texts and values may wrap. A text may
have its own line below the row; a value of a query may not."""

_GAP = "  "
_NARROW, _LONG_WORD = 14, 28
"""A wrapped column is at least this wide, if its content is, and breaks only words that are longer."""


@dataclass(frozen=True)
class Abbreviated:
    """An id: short on a terminal, complete in a pipe."""

    full: str
    short: str


Cell = str | Abbreviated


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    text: str
    is_heading: bool = False


def for_pipe(columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[Cell]]) -> list[Line]:
    """Lines of tab-separated full values.

    A line break within a value becomes a semicolon, or in a value of a query the escape sequence of a string.

    >>> lines = for_pipe([("id", "name"), ("why", "text")], [[Abbreviated("1.25", "1.2"), "a"]])
    >>> [line.text for line in lines]
    ['id\\twhy', '1.25\\ta']
    """
    headings = "\t".join(_escaped(heading) for heading, _ in columns)
    lines = [Line(headings, is_heading=True)]
    for row in rows:
        cells = []
        for cell, (_, kind) in zip(row, columns, strict=True):
            full = cell.full if isinstance(cell, Abbreviated) else cell
            cells.append(_escaped(full if kind == "value" else "; ".join(full.splitlines())))
        lines.append(Line("\t".join(cells)))
    return lines


def _escaped(text: str) -> str:
    return text.replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def for_terminal(
    columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[Cell]], width: int
) -> list[Line]:
    """Lines that are at most ``width`` cells wide, unless a single name is wider."""
    cells = [[cell.short if isinstance(cell, Abbreviated) else cell for cell in row] for row in rows]
    inline = list(range(len(columns)))
    below: list[int] = []
    while True:
        widths = _fitted(columns, cells, inline, width) or _without_long_names(columns, cells, inline, width)
        if widths is not None:
            return _table(columns, cells, inline, below, widths, width)
        text = next((at for at in reversed(inline) if columns[at][1] == "text" and at > 0), None)
        if text is None or len(inline) <= 2:
            return _lists(columns, cells, width)
        inline.remove(text)
        below.insert(0, text)


def _fitted(
    columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[str]], inline: Sequence[int], width: int
) -> list[int] | None:
    """The width of each column of a table that fits; ``None`` if none fits."""
    natural, least = [], []
    for at in inline:
        heading, kind = columns[at]
        lines = [line for row in rows for line in row[at].splitlines() or [""]]
        content = max(map(cell_len, lines), default=0)
        natural.append(max(cell_len(heading), content))
        if kind in ("text", "value"):
            word = max((cell_len(word) for line in lines for word in line.split()), default=0)
            content = min(content, max(_NARROW, min(word, _LONG_WORD)))
        least.append(max([content, *map(cell_len, heading.split())]))
    spare = width - len(_GAP) * (len(inline) - 1) - sum(least)
    if spare < 0:
        return None
    found = list(least)
    # The columns that lack least are completed first. The last ones share what is left.
    order = sorted(range(len(inline)), key=lambda place: natural[place] - least[place])
    for done, place in enumerate(order):
        share = spare // (len(order) - done)
        given = min(natural[place] - least[place], share)
        found[place] += given
        spare -= given
    return found


def _without_long_names(
    columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[str]], inline: Sequence[int], width: int
) -> list[int] | None:
    """The widths if the longest names of the first column, of at most half of the rows, are above them."""
    if columns[0][1] != "name":
        return None
    lengths = sorted(cell_len(row[0]) for row in rows)
    for longest in sorted(set(lengths[(len(lengths) - 1) // 2 : -1]), reverse=True):
        short = [row for row in rows if cell_len(row[0]) <= longest]
        rest = [["", *row[1:]] for row in rows if cell_len(row[0]) > longest]
        if rest and (widths := _fitted(columns, [*short, *rest], inline, width)) is not None:
            return widths
    return None


def _table(
    columns: Sequence[tuple[str, Kind]],
    rows: Sequence[Sequence[str]],
    inline: Sequence[int],
    below: Sequence[int],
    widths: Sequence[int],
    width: int,
) -> list[Line]:
    def lines_of(row: Sequence[str], *, is_heading: bool = False) -> list[str]:
        wrapped = [wrap(row[at], wide) for at, wide in zip(inline, widths, strict=True)]
        height = max(map(len, wrapped))
        if is_heading:  # short headings are in the last line, next to the rows
            wrapped = [[""] * (height - len(cell)) + cell for cell in wrapped]
        lines = []
        for number in range(height):
            parts = []
            for at, wide, cell in zip(inline, widths, wrapped, strict=True):
                part = cell[number] if number < len(cell) else ""
                padding = " " * (wide - cell_len(part))
                parts.append(padding + part if columns[at][1] == "number" else part + padding)
            lines.append(_GAP.join(parts).rstrip())
        return lines

    headings = lines_of([heading for heading, _ in columns], is_heading=True)
    found = [Line(line, is_heading=True) for line in headings]
    for row in rows:
        if columns[0][1] == "name" and cell_len(row[0]) > widths[0]:
            found += [Line(row[0]), *map(Line, lines_of(["", *row[1:]]))]
        else:
            found += map(Line, lines_of(row))
        for at in below:
            if row[at]:
                found += map(Line, _labelled(columns[at][0], row[at], 2, len(columns[at][0]), width))
    return found


def _lists(columns: Sequence[tuple[str, Kind]], rows: Sequence[Sequence[str]], width: int) -> list[Line]:
    """Each row as lines of a heading and its value."""
    label = max(cell_len(heading) for heading, _ in columns)
    found: list[Line] = []
    for number, row in enumerate(rows):
        found += [Line("")] if number else []
        for (heading, _), cell in zip(columns, row, strict=True):
            if cell:
                found += map(Line, _labelled(heading, cell, 0, label, width))
    return found


def _labelled(heading: str, text: str, indent: int, label: int, width: int) -> list[str]:
    first = f"{' ' * indent}{heading}:{' ' * (label - cell_len(heading))} "
    lines = wrap(text, max(width - cell_len(first), _NARROW))
    return [(first if number == 0 else " " * cell_len(first)) + line for number, line in enumerate(lines)]


def wrap(text: str, width: int) -> list[str]:
    """A text in lines of at most ``width`` cells, broken at spaces, or inside of a longer word.

    >>> wrap("two words", 6), wrap("abcdefgh ij", 5), wrap("", 5)
    (['two', 'words'], ['abcde', 'fgh', 'ij'], [''])
    """
    found: list[str] = []
    for line in text.splitlines() or [""]:
        if cell_len(line) <= width:
            found.append(line)
            continue
        current = line[: len(line) - len(line.lstrip())]
        is_empty = True
        for word in line.split():
            if not is_empty and cell_len(f"{current} {word}") <= width:
                current = f"{current} {word}"
                continue
            if not is_empty:
                found.append(current)
            whole = f"{current}{word}" if is_empty else word
            *full, current = chop_cells(whole, width) or [""]
            found += full
            is_empty = False
        found.append(current)
    return found
