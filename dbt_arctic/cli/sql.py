"""``dbt-arctic sql``: UPDATE, DELETE and MERGE on a keyed table, and SELECT."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, TextIO

import click

from dbt_arctic.cli.options import COUNT, json_option, project_options
from dbt_arctic.cli.output import print_json, print_rows
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import quote
from dbt_arctic.refresh.dml import Modified, explain, modify
from dbt_arctic.refresh.parse_dml import VERBS, ParsedModification, parse_modification, verb_of

if TYPE_CHECKING:
    from dbt_arctic.adapter.project import Target
    from dbt_arctic.adapter.target_session import TargetSession

_QUERIES = ("SELECT", "VALUES", "TABLE", "FROM", "(")
_LISTINGS = ("SHOW", "DESCRIBE", "DESC", "EXPLAIN")
_INSTEAD = {
    "INSERT": "MERGE INTO t USING (SELECT ...) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    "TRUNCATE": "DELETE FROM t",
}


@click.command(short_help="Run UPDATE, DELETE or MERGE on a table, or a query.")
@click.argument("statement", required=False)
@click.option(
    "--file", "-f", type=click.File(encoding="utf-8"), help="Read the statement from a file; - is stdin."
)
@click.option(
    "--dry-run", "--explain", is_flag=True, help="Print the statements that would run, without running them."
)
@click.option(
    "--limit", type=COUNT, default=100, show_default=True, help="Number of rows of a query; 0 for all."
)
@json_option
@project_options
def sql(
    target: Target, statement: str | None, file: TextIO | None, dry_run: bool, limit: int, as_json: bool
) -> None:
    """Run UPDATE, DELETE or MERGE on one keyed table in one commit, or show the rows of a query.

    Names without a schema refer to the target's schema.
    """
    from dbt_arctic.adapter.target_session import target_session

    if (statement is None) == (file is None):
        raise click.UsageError("give a statement, or --file")
    text = (statement if file is None else _content(file)) or ""
    verb = verb_of(text)
    if verb not in (*VERBS, *_QUERIES, *_LISTINGS):
        raise ConfigError(
            f"{verb or 'this'} is not a statement for dbt-arctic sql",
            where=text.strip()[:100],
            why="it changes rows of keyed tables with UPDATE, DELETE and MERGE, and shows rows with SELECT",
            fix=_INSTEAD.get(verb, "run it on Spark, or in dbt as a hook or an operation"),
        )
    with target_session(target, "sql") as session:
        if verb in VERBS:
            _modify(target, session, parse_modification(text), dry_run, as_json)
        elif dry_run:
            raise click.UsageError("--dry-run is for UPDATE, DELETE and MERGE")
        else:
            _show(target, session, text, limit, as_json, is_query=verb in _QUERIES)


def _content(file: TextIO) -> str:
    try:
        return file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(
            "the file is not text in UTF-8", where=file.name, why=str(error), fix="save it as UTF-8"
        ) from error


def _modify(
    target: Target, session: TargetSession, parsed: ParsedModification, dry_run: bool, as_json: bool
) -> None:
    if any("." in part for part in parsed.target):
        raise ConfigError(
            f"the name of the table contains a dot: {'.'.join(map(quote, parsed.target))}",
            why="commands separate the parts of a name by dots, so another table could be changed",
            fix="rename the table",
        )
    name = session.to_write(".".join(parsed.target))
    _use(target, session)
    if dry_run:
        statements = explain(session.context, name, parsed)
        if as_json:
            print_json({"table": name.dotted, "statements": statements})
        else:
            click.echo(";\n\n".join(statements) + ";")
        return
    done = modify(session.context, name, parsed)
    if as_json:
        print_json(asdict(done))
    else:
        click.echo(f"{done.table}: {counts_text(done)}.")


def _show(
    target: Target, session: TargetSession, text: str, limit: int, as_json: bool, *, is_query: bool
) -> None:
    _use(target, session)
    query = without_end(text.strip())
    # One row more than shown, to find out whether there are more.
    limited = f"SELECT *\nFROM (\n{query}\n) AS q\nLIMIT {limit + 1}" if limit > 0 and is_query else query
    columns, rows = session.read(limited, as_cells=not as_json)
    print_rows(columns, rows, limit, as_json)


def _use(target: Target, session: TargetSession) -> None:
    session.query(f"USE {quote(target.credentials.database)}.{quote(target.credentials.schema)}")


def counts_text(done: Modified) -> str:
    """The result of a statement in a few words.

    >>> counts_text(Modified("t", updated=1, inserted=0, deleted=2))
    '1 row updated, 2 rows deleted'
    """
    if done.updated is None:
        return "done; an erasure removed the commit before its rows were counted"
    counts = {"updated": done.updated, "inserted": done.inserted, "deleted": done.deleted}
    parts = [f"{counted(count, 'row')} {what}" for what, count in counts.items() if count]
    return ", ".join(parts) or "no row affected"
