"""The picture of a report that shows which tables read which, how late each is, and what holds it back.

Places boxes and lines, and knows no HTML: the template of the page draws them and escapes their texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.human_readable import counted, shown_seconds
from dbt_arctic.maintenance.overview import TableOverview

MOST_BOXES = 60
"""The maximum number of boxes. If there are more, tables without lag are left out first."""

BOX_WIDTH, BOX_HEIGHT = 190, 42
_COLUMN, _ROW, _MARGIN = 235, 56, 8
_LONGEST = 20


@dataclass(frozen=True)
class Box:
    """A table.

    :param label: its name, shortened to fit; ``name`` is the complete one.
    :param detail: how late it is and why; empty if nothing waits.
    :param colour: a class of the page's style sheet; empty for a table that is not late.
    """

    name: str
    label: str
    detail: str
    colour: str
    x: int
    y: int


@dataclass(frozen=True)
class Line:
    """What one table reads of another.

    :param path: the SVG path from box to box.
    :param title: what waits, in words.
    :param is_late: whether commits of the upstream wait to be read.
    """

    path: str
    title: str
    is_late: bool


@dataclass(frozen=True)
class Picture:
    """The boxes and lines, and the size of the drawing.

    :param left_out: the number of tables that are not drawn because there are too many.
    """

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    left_out: int


def lineage_picture(tables: Sequence[TableOverview], now_ms: int) -> Picture | None:
    """The picture of the tables that record what they read; ``None`` if no table does."""
    reads = {seen.name.dotted: {lag.upstream: lag for lag in seen.lags} for seen in tables if seen.lags}
    if not reads:
        return None
    behind = {
        name: max((now_ms - lag.since_ms for lag in lags.values() if lag.since_ms is not None), default=None)
        for name, lags in reads.items()
    }
    waiting = _waiting_for({name: tuple(lags) for name, lags in reads.items()}, behind)
    names = list(dict.fromkeys([*(up for lags in reads.values() for up in lags), *reads]))
    shown = _chosen(names, reads, behind, waiting)
    places = _places(shown, {name: [up for up in lags if up in shown] for name, lags in reads.items()})
    broken = {seen.name.dotted for seen in tables if seen.problem}
    boxes = tuple(
        _box(name, name in broken, behind.get(name), waiting.get(name), *places[name]) for name in shown
    )
    lines = tuple(
        Line(
            _path(places[upstream], places[name]),
            f"{upstream} → {name}: {_what_waits(lag.since_ms, lag.commits, lag.lost, now_ms)}",
            lag.since_ms is not None or bool(lag.lost),
        )
        for name, lags in reads.items()
        for upstream, lag in lags.items()
        if name in places and upstream in places
    )
    return Picture(
        boxes,
        lines,
        max(box.x for box in boxes) + BOX_WIDTH + _MARGIN,
        max(box.y for box in boxes) + BOX_HEIGHT + _MARGIN,
        len(names) - len(shown),
    )


def _waiting_for(reads: Mapping[str, Sequence[str]], behind: Mapping[str, int | None]) -> dict[str, str]:
    """For each table that has read all of its upstreams: the late table further up whose changes it lacks."""
    found: dict[str, str] = {}
    for name in reads:
        if behind[name] is not None:
            continue
        seen, at = {name}, list(reads[name])
        while at:
            upstream = at.pop(0)
            if behind.get(upstream) is not None:
                found[name] = upstream
                break
            if upstream not in seen:
                seen.add(upstream)
                at += reads.get(upstream, ())
    return found


def _chosen(
    names: Sequence[str],
    reads: Mapping[str, Mapping[str, object]],
    behind: Mapping[str, int | None],
    waiting: Mapping[str, str],
) -> list[str]:
    if len(names) <= MOST_BOXES:
        return list(names)
    late_tables = [name for name in names if behind.get(name) is not None]
    late_tables.sort(key=lambda name: -(behind[name] or 0))
    first = [one for name in late_tables for one in (name, *reads[name])]
    kept = list(dict.fromkeys([*first, *waiting, *names]))[:MOST_BOXES]
    return [name for name in names if name in kept]


def _places(names: Sequence[str], reads: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, int]]:
    """The place of each box: each table is to the right of its upstreams, near the middle of their height."""
    depths: dict[str, int] = {}

    def depth(name: str, above: tuple[str, ...] = ()) -> int:
        if name not in depths:
            upstreams = [up for up in reads.get(name, ()) if up not in above and up != name]
            depths[name] = 1 + max((depth(up, (*above, name)) for up in upstreams), default=-1)
        return depths[name]

    rows: dict[str, float] = {}
    places: dict[str, tuple[int, int]] = {}
    for column in range(1 + max(depth(name) for name in names)):
        inside = [name for name in names if depths[name] == column]

        def middle(name: str) -> float:
            above = [rows[up] for up in reads.get(name, ()) if up in rows]
            return sum(above) / len(above) if above else 0.0

        for row, name in enumerate(sorted(inside, key=middle)):
            rows[name] = float(row)
            places[name] = (_MARGIN + column * _COLUMN, _MARGIN + row * _ROW)
    return places


def _box(name: str, is_broken: bool, behind_ms: int | None, waits_for: str | None, x: int, y: int) -> Box:
    detail, colour = "", ""
    if is_broken:
        detail, colour = "cannot be read", "bad"
    elif behind_ms is not None:
        detail, colour = f"{shown_seconds(behind_ms / 1000)} behind", "warn"
    elif waits_for is not None:
        detail, colour = f"waits for {waits_for.rpartition('.')[2]}", "muted"
    return Box(name, _shortened(name), _shortened(detail, _LONGEST + 8), colour, x, y)


def _shortened(name: str, length: int = _LONGEST) -> str:
    """The end of a name, without its catalog.

    >>> _shortened("lake.dev.orders")
    'dev.orders'
    """
    text = name.split(".", 1)[1] if name.count(".") >= 2 else name
    return text if len(text) <= length else f"…{text[1 - length :]}"


def _what_waits(since_ms: int | None, commits: int, lost: str, now_ms: int) -> str:
    if lost:
        return lost
    if since_ms is None:
        return "all commits have been read"
    return f"{counted(commits, 'commit')} not read, {shown_seconds((now_ms - since_ms) / 1000)}"


def _path(start: tuple[int, int], end: tuple[int, int]) -> str:
    x, y = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    to_x, to_y = end[0], end[1] + BOX_HEIGHT // 2
    bend = (to_x - x) // 2
    return f"M{x},{y} C{x + bend},{y} {to_x - bend},{to_y} {to_x},{to_y}"


__all__ = ["BOX_HEIGHT", "BOX_WIDTH", "Box", "Line", "Picture", "lineage_picture"]
