"""Prints the explanation of a model's plan, for ``dbt-arctic plan --explain``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dbt_arctic.auto.explanation import Cost, Explanation
from dbt_arctic.auto.stages import stages_of
from dbt_arctic.cli.output import shown_bytes
from dbt_arctic.compaction.plan import shown_seconds

if TYPE_CHECKING:
    from dbt_arctic.adapter.planning import ModelPlan

_LABEL = 10
"""The width of the labels."""


def explained(
    entry: ModelPlan, refresh: str, reasons: Iterable[str], views: Sequence[str], width: int
) -> Iterator[str]:
    """The lines of a model's explanation.

    :param refresh: the kind of refresh, for display.
    :param reasons: why it is of this kind.
    :param views: the lines of the tree of auxiliary views.
    """
    made = entry.explanation
    yield f"{entry.model}: {refresh}"
    parts = [
        ("does", [made.does]),
        ("why", list(reasons)),
        ("steps", [f"{place}. {stage.purpose}" for place, stage in enumerate(stages_of(entry.plan), 1)]),
        ("cost", list(_cost(made))),
        ("falls back", list(made.otherwise)),
        ("advice", list(made.advice)),
    ]
    for label, texts in parts:
        yield from _lines(label, texts, width)
    if views:
        yield "  views"
        # A tree is not wrapped, so that its indentation stays.
        yield from (f"    {line}" for line in views)


def _lines(label: str, texts: Sequence[str], width: int) -> Iterator[str]:
    for place, text in enumerate(texts):
        head = f"  {label if place == 0 else '':<{_LABEL}}  "
        yield from textwrap.wrap(text, max(width, 40), initial_indent=head, subsequent_indent=" " * len(head))


def _cost(made: Explanation) -> Iterator[str]:
    if made.cost is not None:
        yield f"reads at most {_read(made.cost)}"
    if made.full_cost is not None and made.cost != made.full_cost:
        share = _share(made.cost, made.full_cost)
        yield f"a full refresh reads {_read(made.full_cost)}{share}"
    if made.seconds is not None and made.full_seconds is not None and made.cost != made.full_cost:
        yield (
            f"earlier refreshes like this took {shown_seconds(made.seconds)} or more, full ones "
            f"{shown_seconds(made.full_seconds)} or more"
        )
    elif made.full_seconds is not None:
        yield f"earlier full refreshes took {shown_seconds(made.full_seconds)} or more"


def _share(cost: Cost | None, full: Cost) -> str:
    if cost is None or cost.rows is None or not full.rows:
        return ""
    return f": this one reads {cost.rows / full.rows:.1%} of that"


def _read(cost: Cost) -> str:
    if cost.rows is None:
        rows = "an unknown number of rows"
    elif cost.changed_rows:
        rows = f"{cost.rows:,} rows, of which {cost.changed_rows:,} have changed"
    else:
        rows = f"{cost.rows:,} rows"
    size = "" if cost.bytes is None else f" ({shown_bytes(cost.bytes)})"
    operators = "" if cost.operators is None else f", by {cost.operators:,} operators"
    return f"{rows}{size}{operators}"


def explanation_as_dict(made: Explanation) -> dict[str, Any]:
    """The same values as JSON. Sizes in bytes, times in seconds."""
    return {
        "does": made.does,
        "cost": _as_dict(made.cost),
        "full_cost": _as_dict(made.full_cost),
        "seconds": made.seconds,
        "full_seconds": made.full_seconds,
        "falls_back_if": list(made.otherwise),
        "advice": list(made.advice),
    }


def _as_dict(cost: Cost | None) -> dict[str, Any] | None:
    if cost is None:
        return None
    return {
        "rows": cost.rows,
        "changed_rows": cost.changed_rows,
        "bytes": cost.bytes,
        "operators": cost.operators,
    }


__all__ = ["explained", "explanation_as_dict"]
