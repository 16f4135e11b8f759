"""``dbt-arctic status``: shows files, pending changes and due compaction of each table. Metadata only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.catalog.once import Once
from dbt_arctic.cli.options import (
    catalog_options,
    chosen_schemas,
    json_option,
    no_tables_text,
    table_options,
)
from dbt_arctic.cli.output import (
    operation_as_dict,
    print_json,
    print_table,
    shown_names,
    verification_as_dict,
)
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.settings import DEFAULT_TRIM_GRACE_SECONDS, CompactionSettings
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.human_readable import shown_bytes, shown_seconds
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.overview import TableOverview, overview_of, overview_of_tables

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command(short_help="Show tables with pending changes and due compaction.")
@table_options
@click.option(
    "--due", "only_due", is_flag=True, help="Show only tables with due work. Exits with 1 if there are any."
)
@json_option
@catalog_options
@click.pass_context
def status(
    context: click.Context,
    target: Target,
    tables: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    only_due: bool,
    as_json: bool,
) -> None:
    """Show tables with their files, pending changes, lag and due compaction (all, or those named).

    Named tables are also shown by partition and bucket.
    """
    from dbt_arctic.adapter.model_lags import with_source_lags
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "status") as session:
        found = tables_to_show(session, tables, schemas, everything, by_bucket=bool(tables))
        shown = [seen for seen in found if seen.due or seen.problem] if only_due else found
        shown = with_source_lags(target, Once(session.catalog), shown)
        now_ms = session.context.now_ms()
        nothing = "" if found else no_tables_text(session, schemas, everything)
    if as_json:
        print_json([as_dict(seen, now_ms) for seen in shown])
    elif not shown:
        click.echo(nothing or "Nothing is due.")
    else:
        _print_tables(shown, now_ms)
        for seen in shown if tables else []:
            _print_buckets(seen)
    if only_due and shown:
        context.exit(1)


def tables_to_show(
    session: TargetSession,
    tables: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    by_bucket: bool = False,
    trim_grace_s: float = DEFAULT_TRIM_GRACE_SECONDS,
) -> list[TableOverview]:
    """The named tables, or all tables of the target's schemas.

    :param trim_grace_s: the grace period, which decides what is due.

    :raises UnknownRelation: a named table does not exist.
    """
    names = [session.name(text) for text in tables]
    catalog, now_ms = Once(session.catalog), session.context.now_ms()

    def settings_of(name: Name, is_keyed: bool) -> CompactionSettings:
        return replace(session.compaction_of(name, is_keyed), trim_grace_s=trim_grace_s)

    if names:
        found = overview_of_tables(catalog, frozenset(names), now_ms, settings_of, by_bucket=by_bucket)
    else:
        chosen = chosen_schemas(session, schemas, everything)
        own = session.name("any").catalog
        found = overview_of(catalog, own, chosen, now_ms, settings_of, by_bucket=by_bucket)
    missing = [name for name in names if name not in {seen.name for seen in found}]
    if missing:
        raise UnknownRelation(
            f"there is no table {missing[0]}",
            where=missing[0].dotted,
            why="there is neither a keyed table nor a plain table with rows of that name",
            fix="dbt-arctic status lists all",
        )
    return found


def _print_tables(found: list[TableOverview], now_ms: int) -> None:
    names = shown_names(seen.name for seen in found)
    if len({(name.catalog, name.schema) for name in names}) == 1:
        names = {name: name.identifier for name in names}
    # Most projects verify no model.
    verified = any(seen.verified is not None for seen in found)
    rejected = any(seen.rejected for seen in found)
    print_table(
        {
            "table": "name",
            "rows": "number",
            "files": "number",
            "size": "number",
            "pending": "number",
            "read cost": "number",
            "behind": "text",
            "due": "text",
            **({"verified": "text"} if verified else {}),
            **({"rejected": "number"} if rejected else {}),
        },
        (
            [
                *_row(seen, names[seen.name], now_ms),
                *([seen.shown_verification] if verified else []),
                *([_rejected(seen)] if rejected else []),
            ]
            for seen in found
        ),
    )


def _row(seen: TableOverview, name: str, now_ms: int) -> list[str]:
    one = seen.status
    if one is None:
        return [name, *[""] * 6, f"{seen.problem}: dbt-arctic verify"]
    return [
        name,
        f"{one.base.live_rows:,}",
        f"{one.files:,}",
        shown_bytes(one.size_bytes),
        f"{one.pending.rows:,} ({one.pending_ratio:.0%})" if one.pending.rows else "",
        f"{one.read_amplification:.1f} x",
        _behind(seen, now_ms),
        ", ".join(shown_due(operation) for operation in seen.due),
    ]


def _rejected(seen: TableOverview) -> str:
    kept, dropped = (
        (sum(part) for part in zip(*seen.rejected.values(), strict=True)) if seen.rejected else (0, 0)
    )
    parts = [f"{kept:,}" if kept else "", f"{dropped:,} dropped" if dropped else ""]
    return ", ".join(part for part in parts if part)


def _print_buckets(seen: TableOverview) -> None:
    if not seen.buckets:
        return
    click.echo(f"\n{seen.name.identifier}, by partition and bucket")
    print_table(
        {
            "partition": "name",
            "rows": "number",
            "hidden": "number",
            "files": "number",
            "small": "number",
            "overlap": "number",
            "size": "number",
            "pending": "number",
            "change files": "number",
            "read cost": "number",
        },
        (
            [
                "/".join(one.partition) or "all",
                f"{one.base.live_rows:,}",
                f"{one.base.delete_ratio:.0%}",
                f"{one.base.files:,}",
                f"{one.small_files:,}",
                "" if one.overlap is None else f"{one.overlap:,}",
                shown_bytes(one.base.size_bytes),
                f"{one.pending_rows:,}",
                f"{one.change.files:,}",
                f"{one.read_amplification:.1f} x",
            ]
            for one in seen.buckets
        ),
    )


def shown_due(operation: Operation) -> str:
    """A due operation with its buckets, for display."""
    return operation.kind if not operation.buckets else f"{operation.kind} ({operation.scope})"


def _behind(seen: TableOverview, now_ms: int) -> str:
    lost = [lag for lag in seen.lags if lag.lost]
    if lost:
        return f"? {_shown_upstream(lost[0])}: {lost[0].lost}"
    waiting = [(lag.since_ms, _shown_upstream(lag)) for lag in seen.lags if lag.since_ms is not None]
    if not waiting:
        return ""
    since_ms, upstream = min(waiting)
    return f"{shown_seconds((now_ms - since_ms) / 1000)}, {upstream}"


def _shown_upstream(lag: Lag) -> str:
    """A table without its catalog and schema; a source as in dbt, ``source.table``."""
    return lag.upstream if lag.upstream.count(".") < 2 else lag.upstream.rpartition(".")[2]


def as_dict(seen: TableOverview, now_ms: int) -> dict[str, Any]:
    """One table as JSON. Sizes in bytes, times in seconds."""
    one = seen.status
    if one is None:
        return {"table": seen.name.dotted, "problem": seen.problem}
    return {
        "table": seen.name.dotted,
        "kind": "plain" if one.table is None else "keyed",
        "rows": one.base.live_rows,
        "hidden_rows": one.base.deleted,
        "files": one.base.files,
        "ideal_files": one.ideal_files,
        "delete_files": one.base.delete_files,
        "size_bytes": one.base.size_bytes,
        "change_files": one.change.files,
        "change_rows": one.change.live_rows,
        "change_size_bytes": one.change.size_bytes,
        "pending_commits": one.pending.commits,
        "pending_rows": one.pending.rows,
        "pending_ratio": round(one.pending_ratio, 4),
        "pending_for_s": _since(one.pending.since_ms, now_ms),
        "read_amplification": round(one.read_amplification, 2),
        "written_s_ago": _since(one.written_ms, now_ms),
        "behind": [
            {"upstream": lag.upstream, "for_s": _since(lag.since_ms, now_ms), "lost": lag.lost or None}
            for lag in seen.lags
        ],
        "rejected": [
            {"source": source, "rows": kept, "dropped": dropped}
            for source, (kept, dropped) in sorted(seen.rejected.items())
        ],
        "due": [operation_as_dict(operation) for operation in seen.due],
        "verified": None
        if seen.verified is None
        else {
            **verification_as_dict(seen.verified),
            "repaired": seen.is_repaired,
        },
        "buckets": [
            {
                "partition": list(bucket.partition),
                "rows": bucket.base.live_rows,
                "hidden_rows": bucket.base.deleted,
                "files": bucket.base.files,
                "small_files": bucket.small_files,
                "overlap": bucket.overlap,
                "read_amplification": round(bucket.read_amplification, 2),
                "size_bytes": bucket.base.size_bytes,
                "change_files": bucket.change.files,
                "pending_rows": bucket.pending_rows,
            }
            for bucket in seen.buckets or ()
        ],
    }


def _since(time_ms: int | None, now_ms: int) -> float | None:
    return None if time_ms is None else round((now_ms - time_ms) / 1000, 1)
