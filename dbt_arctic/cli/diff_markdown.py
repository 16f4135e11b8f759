"""A comparison of two targets as Markdown, for a comment on a pull request. Pure."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import replace

from dbt_arctic.adapter.diff_report import DiffReport, ModelDiff
from dbt_arctic.cli.diff_values import by_count, note_of, sample_kind, shown_share, shown_values
from dbt_arctic.cli.output import shown_value

MOST_CHARACTERS = 60_000
"""The longest comment that GitHub accepts has 65,536 characters."""
_LONGEST_VALUE = 200
_SPECIAL = "\\`*_{}[]()#+!|~"


def as_markdown(found: DiffReport) -> str:
    """The comparison as Markdown: the summary, schema differences, a table of models, and samples.

    Samples are left out if the text would be too long for a comment.
    """
    text = "\n".join(_lines(found))
    if len(text) <= MOST_CHARACTERS:
        return text
    without = replace(found, models=tuple(replace(one, samples=()) for one in found.models))
    return "\n".join([*_lines(without), "", "The samples are left out, because they are too long."])


def _lines(found: DiffReport) -> Iterator[str]:
    yield f"### Data diff: {escaped(found.target)} against {escaped(found.base)}"
    yield ""
    yield f"{escaped(found.summary)}."
    if any(one.schema for one in found.models):
        yield ""
        yield "**Schema**"
        yield ""
        for one in found.models:
            for difference in one.schema:
                yield f"* {escaped(one.model)}: {escaped(str(difference))}"
    shown = [one for one in found.models if one.differs or one.state in ("not compared", "failed") or one.why]
    if shown:
        yield ""
        yield from _table(found, shown)
    for one in shown:
        if one.samples:
            yield ""
            yield from _samples(found, one)


def _table(found: DiffReport, shown: list[ModelDiff]) -> Iterator[str]:
    target, base = escaped(found.target), escaped(found.base)
    exceeding = {one.model for one in found.exceeding}
    yield f"| model | rows | changed | only {target} | only {base} | differ | columns | note |"
    yield "|---|--:|--:|--:|--:|--:|---|---|"
    for one in shown:
        numbers = [""] * 5
        if one.state == "compared":
            counts = (one.rows, one.changed, one.only_here, one.only_there)
            numbers = [*(f"{count:,}" for count in counts), shown_share(one)]
        columns = ", ".join(f"{escaped(name)}: {count:,}" for name, count in by_count(one))
        note = escaped(note_of(one))
        if one.model in exceeding:
            note = f"**over the threshold** {note}".strip()
        cells = [escaped(one.model), *numbers, columns, note]
        yield f"| {' | '.join(cells)} |"


def _samples(found: DiffReport, one: ModelDiff) -> Iterator[str]:
    target, base = escaped(found.target), escaped(found.base)
    yield f"<details><summary>{html.escape(one.model)}: samples</summary>"
    yield ""
    yield f"| row | {'key' if one.key else 'values'} | {base} → {target} |"
    yield "|---|---|---|"
    for sample in one.samples:
        key = ", ".join(f"{name} = {shown_value(value)}" for name, value in sample.key.items())
        cells = (sample_kind(found, sample), key, shown_values(sample))
        yield f"| {' | '.join(escaped(_short(cell)) for cell in cells)} |"
    yield ""
    yield "</details>"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} .."


def escaped(text: str) -> str:
    """A text that Markdown shows as it is, in one line.

    >>> escaped("a|b <i>"), escaped("one\\ntwo")
    ('a\\\\|b &lt;i&gt;', 'one two')
    """
    marked = "".join(f"\\{character}" if character in _SPECIAL else character for character in text)
    return " ".join(html.escape(marked, quote=False).split())
