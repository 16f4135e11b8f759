"""``dbt-arctic lag``: shows how late each model is, and which upstream makes it late. Starts no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.catalog.once import Once
from dbt_arctic.cli.options import json_option, optional_duration_ms, project_options
from dbt_arctic.cli.output import print_json, print_table, shown_time
from dbt_arctic.human_readable import counted, shown_bytes, shown_seconds
from dbt_arctic.scheduling.model_lag import (
    NO_VERSIONS,
    LagCause,
    ModelLag,
    PendingUpstream,
    late_models,
    problems_of,
    with_unknown_upstreams,
)
from dbt_arctic.sources.unread import Positions, RefreshSize, Unit

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target

_MOST_CHARACTERS = 20
"""Of a position in the table; a snapshot's id has 19."""


@click.command(short_help="Show how late each model is, and why.")
@click.argument("select", nargs=-1)
@click.option(
    "--max",
    "max_ms",
    callback=optional_duration_ms,
    metavar="DURATION",
    help="Exit with 1 if a model is later than this, or its lag is unknown: 30s, '10 minutes'.",
)
@json_option
@project_options
@click.pass_context
def lag(
    context: click.Context, target: Target, select: tuple[str, ...], max_ms: int | None, as_json: bool
) -> None:
    """Show how late each incremental model is, and which upstream makes it late.

    Shows all models, or those that SELECT matches.

    SELECT has dbt's syntax: a model, a path, tag:..., +model+.
    """
    from dbt_arctic.adapter.model_lags import LagReader, graph_of, lags_of, shown_name
    from dbt_arctic.adapter.selection import parse_project, select_models
    from dbt_arctic.adapter.target_session import target_session

    manifest = parse_project(target)
    graph = graph_of(manifest)
    chosen = [node.unique_id for node in select_models(target, manifest, select)]
    with target_session(target, "lag") as session:
        reader = LagReader(Once(session.catalog), target, manifest, with_full_refresh=True)
        found = lags_of(reader, graph, chosen)
        now_ms = session.context.now_ms()
    found = with_unknown_upstreams(found, graph.reads_by_name)
    late = late_models(found, graph.reads_by_name)
    wanted = {shown_name(graph.nodes[key]) for key in chosen if key in graph.nodes}
    shown = [one for one in found if one.model in wanted]
    if select:
        tables = (manifest.nodes[key] for key in chosen if key not in graph.nodes)
        shown += [
            ModelLag(shown_name(node), problem=NO_VERSIONS)
            for node in tables
            if node.resource_type == "model" and node.config.materialized == "table"
        ]
    if as_json:
        print_json([_as_dict(one, late.get(one.model), now_ms) for one in shown])
    elif not shown:
        click.echo("No selected model is incremental.")
    else:
        _show(shown, late, now_ms)
    if max_ms is not None and any(is_too_late(one, late.get(one.model), now_ms, max_ms) for one in shown):
        context.exit(1)


def is_too_late(lag: ModelLag, late: LagCause | None, now_ms: int, max_ms: int) -> bool:
    """Whether a model is later than a limit, or its lag is unknown."""
    return bool(problems_of(lag)) or (late is not None and now_ms - late.since_ms > max_ms)


def _show(lags: Sequence[ModelLag], late: Mapping[str, LagCause], now_ms: int) -> None:
    has_problems = any(problems_of(one) for one in lags)
    print_table(
        {
            "model": "name",
            "lag": "number",
            "because of": "name",
            "waiting": "text",
            "position": "text",
            "full refresh": "text",
            "through": "text",
            **({"problem": "text"} if has_problems else {}),
        },
        (
            [
                *_row(one, late.get(one.model), now_ms),
                *(["\n".join(problems_of(one))] if has_problems else []),
            ]
            for one in lags
        ),
    )


def _row(lag: ModelLag, late: LagCause | None, now_ms: int) -> list[str]:
    if late is None:
        return [lag.model, "?" if problems_of(lag) else "none", "", "", "", shown_full_refresh(lag), ""]
    return [
        lag.model,
        shown_seconds((now_ms - late.since_ms) / 1000),
        late.because_of.upstream,
        shown_upstream(late.because_of),
        shown_positions(late.because_of.positions),
        shown_full_refresh(lag),
        ", ".join(late.through),
    ]


def shown_upstream(waiting: PendingUpstream) -> str:
    """What waits in an upstream, for display.

    >>> shown_upstream(PendingUpstream("orders", "commit", 2, 0, 1500))
    '2 commits, 1,500 rows'
    >>> shown_upstream(PendingUpstream("clicks", "message", 1))
    '1 message'
    """
    text = counted(waiting.count, waiting.unit)
    if waiting.unit == "commit" and waiting.rows is not None:
        return f"{text}, {counted(waiting.rows, 'row')}"
    return text if waiting.size_bytes is None else f"{text}, {shown_bytes(waiting.size_bytes)}"


def shown_positions(positions: Positions) -> str:
    """How far a model has read, and how far it could.

    >>> shown_positions(Positions("0/16B3748", "0/16B9000"))
    '0/16B3748 of 0/16B9000'
    >>> shown_positions(Positions("", "5,7"))
    'none of 5,7'
    """
    if not positions.end:
        return _shortened(positions.read)
    return f"{_shortened(positions.read) or 'none'} of {_shortened(positions.end)}"


def _shortened(position: str) -> str:
    """A position that is not longer than a number, such as one of many partitions."""
    return position if len(position) <= _MOST_CHARACTERS else f"{position[: _MOST_CHARACTERS - 2]}.."


def shown_full_refresh(lag: ModelLag) -> str:
    """What a full refresh of a model would read of all upstreams, for display.

    >>> one, other = RefreshSize("row", 1500, 2048), RefreshSize("row", 500, 1024)
    >>> waiting = [PendingUpstream("a", "commit", full_refresh=size) for size in (one, other)]
    >>> shown_full_refresh(ModelLag("m", tuple(waiting)))
    '2,000 rows, 3.0 kB'
    """
    by_unit: dict[Unit, list[RefreshSize]] = {}
    for one in lag.waiting:
        if one.full_refresh is not None:
            by_unit.setdefault(one.full_refresh.unit, []).append(one.full_refresh)
    return "; ".join(_shown_unit(unit, parts) for unit, parts in by_unit.items())


def _shown_unit(unit: Unit, parts: Sequence[RefreshSize]) -> str:
    counts, sizes = [one.number for one in parts], [one.size_bytes for one in parts]
    known = [one for one in counts if one is not None]
    number = counted(sum(known), unit) if known else f"{unit}s"
    text = number if len(known) == len(counts) else f"{number} or more" if known else f"? {number}"
    size = sum(one for one in sizes if one is not None)
    return text if None in sizes else f"{text}, {shown_bytes(size)}"


def _as_dict(lag: ModelLag, late: LagCause | None, now_ms: int) -> dict[str, Any]:
    """One model as JSON. Times in seconds."""
    return {
        "model": lag.model,
        "lag_s": None if late is None else _since(late.since_ms, now_ms),
        "because_of": None if late is None else late.because_of.upstream,
        "through": [] if late is None else list(late.through),
        "problem": "; ".join(problems_of(lag)) or None,
        "upstreams": [
            {
                "upstream": one.upstream,
                "lag_s": None if one.since_ms is None else _since(one.since_ms, now_ms),
                "since": None if one.since_ms is None else shown_time(one.since_ms),
                f"{one.unit}s": one.count,
                "rows": one.rows,
                "size_bytes": one.size_bytes,
                "position": one.positions.read or None,
                "end": one.positions.end or None,
                "full_refresh": None if one.full_refresh is None else _size_as_dict(one.full_refresh),
                "problem": one.problem or None,
            }
            for one in lag.waiting
        ],
    }


def _size_as_dict(size: RefreshSize) -> dict[str, int | None]:
    return {f"{size.unit}s": size.number, "size_bytes": size.size_bytes}


def _since(time_ms: int, now_ms: int) -> float:
    return round(max(now_ms - time_ms, 0) / 1000, 1)
