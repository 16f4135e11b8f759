"""``dbt-arctic expire``: shows which old versions would expire and what keeps others, and asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.catalog.api import TableState
from dbt_arctic.cli.options import (
    catalog_options,
    chosen_schemas,
    confirmation_options,
    duration_ms,
    json_option,
    no_tables_text,
    require_confirmation,
    table_options,
)
from dbt_arctic.cli.output import print_json, print_table, shown_names
from dbt_arctic.cli.progress import progress
from dbt_arctic.errors import ConfigError, UnknownRelation
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import OPERATIONS
from dbt_arctic.keyed.secondary_index import PROPERTY_INDEX_OF
from dbt_arctic.keyed.version import PROPERTY_SOURCE
from dbt_arctic.maintenance.claims import Claims, find_claims
from dbt_arctic.maintenance.expire import expire_versions, plan_expiry
from dbt_arctic.maintenance.expire_plan import MIN_AGE_MS, ExpirePlan, shown_hold
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.sources.capture_table import PROPERTY_CAPTURES
from dbt_arctic.store.other_catalogs import has_other_name
from dbt_arctic.store.rejected_table import model_of

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession


@click.command(short_help="Expire old versions and delete their files.")
@table_options
@click.option(
    "--older-than",
    default="7d",
    callback=duration_ms,
    show_default=True,
    metavar="DURATION",
    help="Keep every version that was current within this time; at least 1h.",
)
@click.option(
    "--release",
    multiple=True,
    metavar="TABLE",
    help="Keep no versions for this consumer; its next run needs a full refresh. Repeatable.",
)
@confirmation_options
@json_option
@catalog_options
def expire(
    target: Target,
    tables: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    older_than: int,
    release: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Expire old versions and delete their files (all of the project's tables, or those named).

    Versions that a downstream model has not read yet are kept, and so are savepoints.
    """
    from dbt_arctic.adapter.target_session import target_session

    if older_than < MIN_AGE_MS:
        raise click.BadParameter(
            "at least 1h: an active run or reader may have pinned a younger version",
            param_hint="--older-than",
        )
    with target_session(target, "expire") as session:
        names = _chosen(session, tables, schemas, everything)
        released = frozenset(session.name(text).dotted for text in release)
        claims = find_claims(session.catalog, session.name("any").catalog)
        _require_consumers(claims, released)
        before_ms = session.context.now_ms() - older_than
        plans = [
            plan
            for name in names
            if (plan := plan_expiry(session.context, name, claims, before_ms, released)) is not None
        ]
        expired = sum(plan.expired for plan in plans)
        if as_json:
            print_json([_as_dict(plan) for plan in plans])
        else:
            _show(plans, no_tables_text(session, schemas, everything))
        if dry_run or not expired:
            return
        require_confirmation(f"Expire {counted(expired, 'snapshot')}?", yes, as_json)
        gone = 0
        with progress("expire", expired, as_json) as bar:
            for plan in plans:
                if not plan.expired:
                    continue
                bar.now(f"{plan.name.schema}.{plan.name.identifier}", counted(plan.expired, "snapshot"))
                done = expire_versions(session.context, plan.name, claims, before_ms, released)
                gone += 0 if done is None else done.snapshots
                bar.advance(plan.expired)
    click.echo(f"{counted(gone, 'snapshot')} expired.", err=as_json)


def _require_consumers(claims: Claims, released: frozenset[str]) -> None:
    """Refuse to release what is no consumer, because the claim that is meant would silently stay."""
    known = sorted({claim.consumer for found in claims.by_id.values() for claim in found})
    unknown = sorted(released - set(known))
    if unknown:
        raise ConfigError(
            f"{unknown[0]} reads no version of a table",
            where="--release",
            why=f"tables that do: {', '.join(known) or 'none'}",
            fix="correct the name, or leave the option out",
        )


def _chosen(
    session: TargetSession, tables: tuple[str, ...], schemas: tuple[str, ...], everything: bool
) -> list[Name]:
    """The named tables; without names, those of the project.

    These are the keyed tables and the plain tables that the project builds, with those that belong to their
    file sources.

    Other plain tables are left out, because their owners may need the old versions; so are keyed tables of
    another catalog that their own client calls otherwise.

    :raises UnknownRelation: a named table does not exist.
    """
    if tables:
        names = [session.to_write(text) for text in tables]
        for name in names:
            reader = session.catalog.of(name)
            known = (reader.load_view, reader.load_table)
            if all(load(name.schema, name.identifier) is None for load in known):
                raise UnknownRelation(
                    f"there is no table {name}", where=name.dotted, fix="dbt-arctic status lists all"
                )
        return names
    found: list[Name] = []
    catalog = session.name("any").catalog
    for schema in chosen_schemas(session, schemas, everything):
        inventory = take_inventory(session.catalog, catalog, schema)
        found += [
            table.name
            for identifier, table in inventory.keyed.items()
            if not has_other_name(session.catalog, table, inventory.views.get(identifier))
        ]
        for identifier, state in inventory.tables.items():
            name = inventory.name(identifier)
            if name in session.models or identifier == OPERATIONS or _is_of_a_source(state):
                found.append(name)
    return sorted(found)


def _is_of_a_source(state: TableState) -> bool:
    """Whether a table is an index, lists files of a source, or has captured changes or rejected rows."""
    own = {PROPERTY_SOURCE, PROPERTY_CAPTURES, PROPERTY_INDEX_OF}
    return bool(own & set(state.properties)) or model_of(state) is not None


def _show(plans: list[ExpirePlan], nothing: str) -> None:
    if not plans:
        click.echo(nothing)
        return
    names = shown_names(plan.name for plan in plans)
    print_table(
        {"table": "name", "snapshots": "number", "expire": "number", "keep": "number", "kept by": "text"},
        (_row(plan, names[plan.name]) for plan in plans),
    )


def _row(plan: ExpirePlan, name: str) -> list[str]:
    left = sum(side.left for side in plan.sides)
    return [
        name,
        str(left + plan.expired),
        str(plan.expired),
        str(left),
        "; ".join(shown_hold(hold) for hold in plan.holds),
    ]


def _as_dict(plan: ExpirePlan) -> dict[str, Any]:
    return {
        "table": plan.name.dotted,
        "sides": [
            {"table": side.name.dotted, "going": side.expired, "staying": side.left} for side in plan.sides
        ],
        "held_back_by": [
            {"who": hold.holder, "why": hold.why, "since_ms": hold.since_ms} for hold in plan.holds
        ],
    }
