"""Draws the charts of a report with Vega-Lite: static SVG without scripts, in the page's colours.

A chart is a value with a title, a caption and its SVG. This module does not know the source of the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dbt_arctic.errors import PackageMissing

VEGA_LITE = "6.4"
WIDTH, HEIGHT = 420, 230
COLOURS = tuple(f"var(--s{number})" for number in range(1, 9))
"""CSS variables of the page, which has different values in dark mode."""
_MINUTE_MS = 60 * 1000
HOUR_MS = 60 * _MINUTE_MS
DAY_MS = 24 * HOUR_MS
_MARK = re.compile(r'(<(path)\b[^>]*?\baria-label="([^"]*)"[^>]*?\brole="graphics-symbol"[^>]*?)/>')
_OUTER = re.compile(r'(<svg\b[^>]*?) width="[\d.]+" height="[\d.]+"')

Row = Mapping[str, Any]


class LegendEntry(NamedTuple):
    """What one colour stands for."""

    name: str
    colour: str


@dataclass(frozen=True)
class Chart:
    """One chart of the report.

    :param legend: names with their colours; empty if there is only one.
    """

    title: str
    caption: str
    svg: str
    legend: Sequence[LegendEntry] = ()


@dataclass
class Artist:
    """Draws the charts of one page. A name has the same colour in all charts, and all time axes are equal.

    Rows have ``name``, which determines the colour, and ``value``. Charts over time also need ``at``
    (milliseconds since the epoch); charts with labelled rows need ``row``, a string.
    """

    since_ms: int
    until_ms: int
    _colours: dict[str, str] = field(default_factory=dict)

    def lines(
        self, title: str, caption: str, rows: Sequence[Row], *, format: str, steps: bool = True
    ) -> Chart:
        """Add a line chart.

        :param steps: draw steps; otherwise interpolate linearly. ``None`` is a gap.
        """
        interpolate = "step-after" if steps else "linear"
        mark = {"type": "line", "interpolate": interpolate, "strokeWidth": 2, "clip": True}
        return self._chart(title, caption, rows, mark, x=self._time(), y=_number(format))

    def columns(self, title: str, caption: str, rows: Sequence[Row], *, unit: Mapping[str, Any]) -> Chart:
        """Add stacked columns per unit of time (Vega-Lite's ``timeUnit``)."""
        mark = {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1, "clip": True}
        at = {**self._time(), "timeUnit": unit}
        number = {**_number("d"), "aggregate": "sum", "title": "number"}
        return self._chart(title, caption, rows, mark, x=at, y=number)

    def dots(self, title: str, caption: str, rows: Sequence[Row]) -> Chart:
        """Add one dot per row. Its size shows ``value``, and its tooltip is ``description``."""
        mark = {"type": "circle", "opacity": 0.85}
        scale = {"rangeMin": 50, "rangeMax": 400}
        size = {"field": "value", "type": "quantitative", "scale": scale, "legend": None}
        place = _named_rows(grid=True)
        return self._chart(
            title, caption, rows, mark, x=self._time(), y=place, size=size, description=_DESCRIPTION
        )

    def spans(self, title: str, caption: str, rows: Sequence[Row], *, format: str) -> Chart:
        """Add a line from ``before`` to a dot at ``value`` for each row."""
        x = _number(format)
        rule = {
            "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.45, "aria": False},
            "encoding": {"x": x, "x2": {"field": "before"}},
        }
        dot = {
            "mark": {"type": "circle", "size": 110, "opacity": 1},
            "encoding": {"x": x, "description": _DESCRIPTION},
        }
        return self._chart(title, caption, rows, layer=[rule, dot], y={**_named_rows(), "sort": None})

    def bars(self, title: str, caption: str, rows: Sequence[Row], *, format: str) -> Chart:
        """Add one horizontal bar per row."""
        mark = {"type": "bar", "cornerRadiusEnd": 3}
        place = {**_named_rows(), "sort": "-x"}
        return self._chart(title, caption, rows, mark, x=_number(format), y=place, description=_DESCRIPTION)

    def _chart(
        self,
        title: str,
        caption: str,
        rows: Sequence[Row],
        mark: Mapping[str, Any] | None = None,
        layer: Sequence[Any] = (),
        **encoding: Any,
    ) -> Chart:
        colours = self._colours_of(dict.fromkeys(str(row["name"]) for row in rows))
        encoding["color"] = {
            "field": "name",
            "type": "nominal",
            "scale": {"domain": list(colours), "range": list(colours.values())},
            "legend": None,
        }
        height = HEIGHT
        if "row" in rows[0]:
            height = max(HEIGHT, 50 + 22 * len({row["row"] for row in rows}))
        drawn: dict[str, Any] = {"mark": mark} if mark else {"layer": layer}
        svg = _draw({"data": {"values": list(rows)}, "encoding": encoding, "height": height, **drawn})
        return Chart(title, caption, svg, [LegendEntry(*one) for one in colours.items()])

    def _colours_of(self, names: Iterable[str]) -> dict[str, str]:
        """Keep each name's colour, unless another name of this chart has it; then use the next free one."""
        found: dict[str, str] = {}
        for name in names:
            colour = self._colours.get(name)
            if colour is None or colour in found.values():
                rare = [one for one in COLOURS if one not in self._colours.values()]
                left = [one for one in (*rare, *COLOURS) if one not in found.values()]
                colour = left[0] if left else COLOURS[-1]
                self._colours.setdefault(name, colour)
            found[name] = colour
        return found

    def _time(self) -> dict[str, Any]:
        length_ms = self.until_ms - self.since_ms
        clock = "%b %d" if length_ms > 2 * DAY_MS else "%H:%M" if length_ms >= 10 * _MINUTE_MS else "%H:%M:%S"
        return {
            "field": "at",
            "type": "temporal",
            "title": "time",
            "scale": {"type": "utc", "domain": [self.since_ms, self.until_ms]},
            "axis": {"title": None, "tickCount": 5, "labelOverlap": True, "grid": False, "format": clock},
        }


_DESCRIPTION = {"field": "description", "type": "nominal"}


def _number(format: str) -> dict[str, Any]:
    return {
        "field": "value",
        "type": "quantitative",
        "title": "value",
        "scale": {"zero": True, "nice": True},
        "axis": {"title": None, "format": format, "tickCount": 5},
    }


def _named_rows(grid: bool = False) -> dict[str, Any]:
    return {"field": "row", "type": "nominal", "title": None, "axis": {"grid": grid, "labelLimit": 165}}


def _draw(chart: dict[str, Any]) -> str:
    try:
        import vl_convert
    except ImportError as error:
        raise PackageMissing(
            "a package for the charts of the report is not installed",
            where="vl-convert-python",
            why=str(error),
            fix="pip install 'dbt-arctic[report]', or print only the data: dbt-arctic report --json",
        ) from error
    specification = {
        **chart,
        "width": WIDTH,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": None,
        "padding": 3,
        "config": _CONFIG,
    }
    return _for_the_page(vl_convert.vegalite_to_svg(specification, vl_version=VEGA_LITE))


_CONFIG = {
    # The text widths of these fonts are known when the chart is drawn and are similar on most machines.
    "font": "Arial, Helvetica, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "labelFontSize": 12,
    },
}


def _for_the_page(svg: str) -> str:
    """Make the SVG as wide as its container and give each mark a tooltip."""
    return _MARK.sub(r"\1><title>\3</title></\2>", _OUTER.sub(r"\1", svg, count=1))
