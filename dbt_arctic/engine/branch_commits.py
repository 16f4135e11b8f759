"""Runs the statements about the branch of a write with Iceberg's own classes, in a Spark of this process.

Spark would parse, analyse and plan each of them. The statement that publishes a branch of dbt-arctic also
drops it, in the same commit. The statement that drops it afterwards finds nothing to do, so a write has one
commit less.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbt_arctic.engine.iceberg_api import iceberg_catalog, loaded_table, table_identifier
from dbt_arctic.engine.lexer import without_comments

if TYPE_CHECKING:
    from dbt_arctic.engine.statement import Statement

_NAME = r"`((?:[^`]|``)+)`"
_ALTER = rf"ALTER TABLE {_NAME}\.{_NAME}\.{_NAME}"
_CREATE = re.compile(rf"\s*{_ALTER} CREATE BRANCH {_NAME} AS OF VERSION (\d+)\s*")
_DROP = re.compile(rf"\s*{_ALTER} DROP BRANCH IF EXISTS {_NAME}\s*")
# Names that need no escapes in a string; Spark runs the statement for any other.
_PUBLISH = re.compile(
    rf"\s*CALL {_NAME}\.system\.fast_forward\(table => '`([^`'\\]+)`\.`([^`'\\]+)`', "
    r"branch => 'main', to => '(arctic_(?:\d+|erase))'\)\s*"
)


def run_on_branch(session: Any, statement: Statement) -> bool:
    """Run a statement that creates, publishes or drops a branch of a table.

    :returns: whether it was run. Otherwise it is another statement, or Spark has to run it, because the table
        does not exist, its catalog is not Iceberg's, or Spark may keep its rows in memory.
    """
    run = {"ALTER": _alter, "CALL": _publish}.get(statement.verb)
    return run is not None and run(session, without_comments(statement.sql))


def _alter(session: Any, sql: str) -> bool:
    created = _CREATE.fullmatch(sql)
    found = created or _DROP.fullmatch(sql)
    if found is None:
        return False
    catalog, schema, name, branch = (part.replace("``", "`") for part in found.groups()[:4])
    table = _table(session, catalog, schema, name)
    if table is None:
        return False
    if created is not None:
        table.manageSnapshots().createBranch(branch, int(created[5])).commit()
    elif table.refs().containsKey(branch):
        table.manageSnapshots().removeBranch(branch).commit()
    return True


def _publish(session: Any, sql: str) -> bool:
    found = _PUBLISH.fullmatch(sql)
    if found is None:
        return False
    # Spark reads rows again that it keeps in memory (CACHE TABLE), once a procedure has changed their table.
    if not session._jsparkSession.sharedState().cacheManager().isEmpty():
        return False
    catalog, schema, name, branch = found.groups()
    table = _table(session, catalog.replace("``", "`"), schema, name)
    if table is None:
        return False
    table.manageSnapshots().fastForwardBranch("main", branch).removeBranch(branch).commit()
    return True


def _table(session: Any, catalog_name: str, schema: str, name: str) -> Any:
    catalog = iceberg_catalog(session, catalog_name)
    return None if catalog is None else loaded_table(catalog, table_identifier(session, schema, name))
