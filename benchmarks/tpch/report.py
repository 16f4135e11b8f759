"""What a benchmark found, as a table, as JSON and as one last line."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.tpch.models import Model, Refreshed


def measured(model: Model) -> list[Refreshed]:
    """The rounds that count: not the first, which pays for compiling, where there are more."""
    return model.rounds[1:] or model.rounds


def median(model: Model, value: Callable[[Refreshed], float | None]) -> float | None:
    values = [found for entry in measured(model) if (found := value(entry)) is not None]
    return statistics.median(values) if values else None


def ratio(model: Model) -> float | None:
    """How many times faster than a full refresh, by medians."""
    full, took = median(model, lambda entry: entry.full_seconds), median(model, lambda entry: entry.seconds)
    return None if full is None or not took else full / took


def strategy(model: Model) -> str:
    """What the rounds were, with the codes of full refreshes."""
    counted = Counter(
        f"{entry.strategy} ({entry.reason})" if entry.reason else entry.strategy for entry in model.rounds
    )
    if len(counted) == 1:
        return next(iter(counted))
    return ", ".join(f"{count} {what}" for what, count in counted.most_common())


def is_incremental(model: Model) -> bool:
    return any(entry.strategy == "incremental" for entry in model.rounds)


def print_table(models: Sequence[Model], title: str) -> None:
    table = Table(title=title, pad_edge=False, box=None)
    table.add_column("query")
    table.add_column("refresh", max_width=44)
    for heading in ("keys", "rows", "statements", "seconds", "full", "ratio", "MB read", "full MB", "share"):
        table.add_column(heading, justify="right")
    for model in models:
        read, full_read = (
            median(model, lambda entry: entry.read),
            median(model, lambda entry: entry.full_read),
        )
        share = None if read is None or not full_read else read / full_read
        table.add_row(
            model.query,
            strategy(model),
            _shown(median(model, lambda entry: entry.keys), "{:.0f}"),
            _shown(median(model, lambda entry: entry.rows), "{:.0f}"),
            _shown(median(model, lambda entry: entry.statements), "{:.0f}"),
            _shown(median(model, lambda entry: entry.seconds), "{:.2f}"),
            _shown(median(model, lambda entry: entry.full_seconds), "{:.2f}"),
            _shown(ratio(model), "{:.2f}"),
            _shown(None if read is None else read / 1e6, "{:.1f}"),
            _shown(None if full_read is None else full_read / 1e6, "{:.1f}"),
            _shown(share, "{:.0%}"),
        )
    Console(width=150).print(table)
    shown = {"": models}
    if not all(model.is_query for model in models):
        shown[", queries alone"] = [model for model in models if model.is_query]
    for what, some in shown.items():
        ratios = [found for model in some if (found := ratio(model)) is not None]
        if ratios:
            print(
                f"times faster than a full refresh{what}: median {statistics.median(ratios):.2f}, "
                f"least {min(ratios):.2f}, most {max(ratios):.2f}"
            )


def as_json(models: Sequence[Model], settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "settings": settings,
        "queries": {
            model.query: {
                "strategy": strategy(model),
                "seconds": median(model, lambda entry: entry.seconds),
                "full_seconds": median(model, lambda entry: entry.full_seconds),
                "ratio": ratio(model),
                "rounds": [asdict(entry) for entry in model.rounds],
            }
            for model in models
        },
    }


def last_line(models: Sequence[Model], rounds: int) -> str:
    incremental = sum(is_incremental(model) for model in models)
    differences = sum(entry.differences for model in models for entry in model.rounds)
    return (
        f"tpch: {len(models)} queries, {incremental} incremental, {rounds} rounds, {differences} differences"
    )


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)
