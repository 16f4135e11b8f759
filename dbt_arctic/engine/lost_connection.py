"""What is known of a statement whose connection to a server was lost, and what to do."""

from __future__ import annotations

from dbt_arctic.engine.faults import Fault, Reaction, shortened
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import ConnectionLost

_QUERIES = {"SELECT", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"}


def changes_nothing(statement: Statement) -> bool:
    """Whether a statement is a query, by its first word."""
    return statement.verb in _QUERIES


def lost_connection(statement: Statement, endpoint: str, why: str, *, repeatable: bool) -> Fault:
    """The error for a statement whose connection was lost.

    :param why: the reason, as the client reports it.
    :param repeatable: whether the lost session held no state that the statement may depend on.
    """
    where = f"{endpoint}: {shortened(statement.sql)}"
    if changes_nothing(statement):
        lost = ConnectionLost(
            "The connection to Spark was lost while a query ran.",
            where=where,
            why=why,
            fix="run again; nothing was changed",
        )
        return Fault(lost, Reaction.RETRY_ON_NEW_CONNECTION if repeatable else Reaction.RAISE)
    return Fault(
        ConnectionLost(
            "The connection to Spark was lost; it is unknown whether the statement has finished.",
            where=where,
            why=why,
            fix="run the model again: a keyed table first checks whether its write was committed; "
            "after an append to a plain table, check its newest snapshot",
        )
    )
