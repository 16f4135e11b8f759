"""``dbt-arctic verify``: reports damage of a target's keyed tables and the commands that repair it."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from dbt_arctic.cli.options import chosen_schemas, json_option, project_options, table_options
from dbt_arctic.cli.output import counted, print_json
from dbt_arctic.cli.progress import counting, progress
from dbt_arctic.maintenance.catalog_checks import check_catalog_file
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.verify import require_known, verify_schema

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command()
@table_options
@click.option("--data", is_flag=True, help="Also read the rows and check that keys are unique. Starts Spark.")
@json_option
@project_options
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
    from dbt_arctic.adapter.operator import catalog_file, operating, size_of

    found: list[Finding] = []
    count = 0
    with operating(target, "verify") as operator:
        file = catalog_file(target)
        if file is not None and not tables:
            found += check_catalog_file(target.credentials.database, *file)
        by_schema: dict[str, frozenset[str] | None]
        if tables:
            names = [operator.name(text) for text in tables]
            by_schema = {
                schema: frozenset(name.identifier for name in names if name.schema == schema)
                for schema in {name.schema for name in names}
            }
        else:
            by_schema = dict.fromkeys(chosen_schemas(operator, schemas, everything))
        with progress("verify", len(by_schema), as_json) as bar:
            for schema, only in sorted(by_schema.items()):
                bar.now(f"verify {schema}")
                inventory = take_inventory(operator.catalog, target.credentials.database, schema)
                for identifier in sorted(only or ()):
                    require_known(inventory, identifier)
                found += verify_schema(
                    operator.catalog,
                    inventory,
                    operator.context.now_ms(),
                    counting(partial(bar.show_count, "file"), size_of),
                    operator.query if data else None,
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
                console.print(f"   {label + ':':<6} {escape(text)}")
    findings = counted(len(found), "finding") if found else "no findings"
    console.print(f"{counted(count, 'keyed table')}: {findings}")
