"""The texts and figures of a comparison that the table and the Markdown have in common. Pure."""

from __future__ import annotations

from dbt_arctic.adapter.diff_report import DiffReport, ModelDiff, Sample
from dbt_arctic.cli.output import shown_value


def note_of(one: ModelDiff) -> str:
    """What a reader must know about the comparison of a model."""
    parts = [] if one.state == "compared" else ["an unwritten clone" if one.state == "clone" else one.state]
    if one.not_compared:
        parts.append(f"not compared, because of other types: {', '.join(one.not_compared)}")
    if one.why:
        parts.append(one.why)
    return ": ".join(parts)


def by_count(one: ModelDiff) -> list[tuple[str, int]]:
    """The columns that differ, those that differ in most rows first."""
    return sorted(one.columns.items(), key=lambda pair: -pair[1])


def shown_share(one: ModelDiff) -> str:
    """The share of rows that differ; never 0 % if a row differs."""
    if not one.differing:
        return "0 %"
    share = float(one.share) * 100
    return "< 0.01 %" if share < 0.01 else f"{share:.2f} %" if share < 10 else f"{share:.0f} %"


def sample_kind(found: DiffReport, sample: Sample) -> str:
    """Which target has the row."""
    return {"here": f"only {found.target}", "there": f"only {found.base}"}.get(sample.kind, "changed")


def shown_values(sample: Sample) -> str:
    """The values of a sample that differ: ``old → new``, or those of the only row."""
    if sample.kind == "changed":
        return ", ".join(
            f"{name}: {shown_value(old)} → {shown_value(new)}" for name, (old, new) in sample.values.items()
        )
    at = 1 if sample.kind == "here" else 0
    return ", ".join(f"{name}: {shown_value(pair[at])}" for name, pair in sample.values.items())
