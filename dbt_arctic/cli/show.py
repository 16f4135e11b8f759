"""``dbt-arctic show``: rows of a table, now or at a version, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import print_rows

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target


@click.command(short_help="Show rows of a table, without Spark.")
@click.argument("table")
@click.argument("key", nargs=-1)
@click.option("--columns", help="Names of columns, separated by commas.  [default: all]")
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Rows with a value in a column. Repeat for several.",
)
@click.option("--at", metavar="VERSION", help="A version of dbt-arctic history, a savepoint or a time (UTC).")
@click.option("--limit", type=COUNT, default=20, show_default=True, help="Number of rows; 0 for all.")
@json_option
@project_options
def show(
    target: Target,
    table: str,
    key: tuple[str, ...],
    columns: str | None,
    where: tuple[str, ...],
    at: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show rows of a keyed or plain table, in no particular order, or the row with a key.

    Rows are found by --where through an index, if the column has one. Several values of one column are
    alternatives.

    KEY is COLUMN=VALUE for each column of the key, or one JSON object. Spark is not started, so tables that
    only Spark can read are refused.
    """
    from dbt_arctic.adapter.show_rows import rows_of
    from dbt_arctic.adapter.target_session import target_session
    from dbt_arctic.maintenance.lookup_keys import KeyTexts
    from dbt_arctic.maintenance.row_filter import ValueText
    from dbt_arctic.maintenance.table_read import read_table

    def value(text: str) -> ValueText:
        column, equals, written = text.partition("=")
        if not equals:
            raise click.UsageError(f"{text!r} is not COLUMN=VALUE")
        return ValueText(column.strip(), written)

    values = [value(text) for text in where]
    with target_session(target, "show") as session:
        chosen = None if columns is None else [one.strip() for one in columns.split(",")]
        # One row more than shown, to find out whether there are more.
        asked = limit + 1 if limit > 0 else None
        keys = KeyTexts(key) if key else None
        found = read_table(session.catalog, session.name(table), chosen, keys, at, asked, values)
    print_rows(found.column_names, rows_of(found, as_cells=not as_json), limit, as_json)
