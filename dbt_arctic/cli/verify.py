"""``dbt-arctic verify``: reports damage of a target's keyed tables and the commands that repair it."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from dbt_arctic.cli.options import catalog_options, chosen_schemas, json_option, table_options
from dbt_arctic.cli.output import print_json, print_message
from dbt_arctic.cli.progress import counting, progress
from dbt_arctic.human_readable import counted
from dbt_arctic.maintenance.catalog_checks import check_catalog_file
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.verify import require_known, verify_schema

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Check keyed tables for damage.")
@table_options
@click.option("--data", is_flag=True, help="Also read the rows and check that keys are unique. Starts Spark.")
@json_option
@catalog_options
@click.pass_context
def verify(
    context: click.Context,
    target: Target,
    tables: tuple[str, ...],
    schemas: tuple[str, ...],
    everything: bool,
    data: bool,
    as_json: bool,
) -> None:
    """Check keyed tables: views, side tables, logs, files, leftovers. Exits with 1 if anything is wrong.

    Without TABLE, checks every keyed table of the target's schemas. Reads only metadata and starts no Spark.
    """
    from dbt_arctic.adapter.target_session import catalog_file, size_of, target_session

    found: list[Finding] = []
    count = 0
    with target_session(target, "verify") as session:
        file = catalog_file(target)
        if file is not None and not tables:
            found += check_catalog_file(target.catalog, *file)
        # By catalog and schema.
        chosen: dict[tuple[str, str], frozenset[str] | None]
        if tables:
            names = [session.name(text) for text in tables]
            chosen = {
                place: frozenset(name.identifier for name in names if (name.catalog, name.schema) == place)
                for place in {(name.catalog, name.schema) for name in names}
            }
        else:
            listed = chosen_schemas(session, schemas, everything)
            chosen = dict.fromkeys((target.catalog, schema) for schema in listed)
        with progress("verify", len(chosen), as_json) as bar:
            for (catalog, schema), only in sorted(chosen.items()):
                bar.now(f"verify {schema}")
                inventory = take_inventory(session.catalog, catalog, schema)
                for identifier in sorted(only or ()):
                    require_known(inventory, identifier)
                found += verify_schema(
                    session.catalog,
                    inventory,
                    session.context.now_ms(),
                    counting(partial(bar.show_count, "file"), size_of),
                    session.query if data else None,
                    only,
                )
                count += len(inventory.keyed) if only is None else len(only)
                bar.advance()
    if as_json:
        print_json({"tables": count, "findings": [asdict(finding) for finding in found]})
    else:
        _show(found, count)
    context.exit(1 if found else 0)


def _show(found: list[Finding], count: int) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for finding in found:
        console.print(f"[bold red]!![/] [bold]{escape(finding.table)}[/] {finding.kind}")
        for label, text in (
            ("what", finding.what),
            ("where", finding.where),
            ("why", finding.why),
            ("fix", finding.fix),
        ):
            if text:
                print_message(f"   {label + ':':<6} ", text)
    findings = counted(len(found), "finding") if found else "no findings"
    console.print(f"{counted(count, 'keyed table')}: {findings}")
