"""Prints the explanation of a model's plan, for ``dbt-arctic plan --explain``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dbt_arctic.auto.explanation import Cost, Explanation
from dbt_arctic.auto.stages import stages_of
from dbt_arctic.human_readable import counted, shown_bytes, shown_seconds

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
        ("falls back", [f"if {condition}" for condition in made.otherwise]),
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
    cost, full = made.cost, made.full_cost
    if cost is not None and cost != full:
        yield _incremental(cost)
    if full is not None:
        yield f"{'reads' if cost == full else 'a full refresh reads'} {_rows(full.rows)}{_size(full)}" + (
            _share(cost, full)
        )
        yield from _operators(cost, full)
    took = {"incremental": made.seconds, "full": made.full_seconds}
    if cost is None or cost == full:
        del took["incremental"]
    known = [f"{kind} ones {_seconds(seconds)}" for kind, seconds in took.items() if seconds is not None]
    if known:
        yield f"fastest of its last refreshes: {', '.join(known)}"


def _incremental(cost: Cost) -> str:
    others = "" if cost.other_rows else ", and no other rows of upstreams"
    if cost.other_rows is None or cost.other_rows > 0:
        others = f", and the rows with the same keys among {_rows(cost.other_rows)}"
    return f"reads {_rows(cost.changed_rows, 'changed ')}{others}{_size(cost, 'at most ')}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else shown_seconds(seconds)


def _operators(cost: Cost | None, full: Cost) -> Iterator[str]:
    if full.operators is not None and (cost is None or cost.operators is None or cost == full):
        yield f"the query has {counted(full.operators, 'operator')}"
    elif cost is not None and cost.operators is not None:
        of_query = "" if full.operators is None else f", the full query {full.operators:,}"
        yield f"its queries have {counted(cost.operators, 'operator')}{of_query}"


def _share(cost: Cost | None, full: Cost) -> str:
    if cost is None or cost.rows is None or not full.rows or cost.rows >= full.rows:
        return ""
    return f", of which this one reads at most {cost.rows / full.rows:.1%}"


def _rows(rows: int | None, kind: str = "") -> str:
    return f"an unknown number of {kind}rows" if rows is None else counted(rows, f"{kind}row")


def _size(cost: Cost, most: str = "") -> str:
    return "" if cost.bytes is None else f" ({most}{shown_bytes(cost.bytes)})"


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
