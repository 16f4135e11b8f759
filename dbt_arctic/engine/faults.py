"""Converts Java errors to ``ArcticError``s: pure functions over class names and messages.

Recognises messages of Spark, Iceberg and SQLite; holds no reference to a JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

from dbt_arctic import errors
from dbt_arctic.engine.aws_faults import aws_error
from dbt_arctic.engine.catalog_faults import catalog_error
from dbt_arctic.engine.clock_faults import clock_error
from dbt_arctic.engine.disk_faults import disk_error
from dbt_arctic.engine.error_position import Position, position, without_position, without_useless_hints
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.engine.lexer import first_word, without_comments
from dbt_arctic.engine.object_store import store_error
from dbt_arctic.engine.untyped_faults import untyped_error
from dbt_arctic.errors import (
    ArcticError,
    CatalogUnavailable,
    CommitConflict,
    CommitStateUnknown,
    MalformedFile,
    StatementCancelled,
    StatementError,
)


class Reaction(Enum):
    """The possible reactions to a failure."""

    RAISE = "raise"
    RETRY = "retry"
    """A commit conflict: the statement had no effect and may succeed on the next attempt."""
    RETRY_BRIEFLY = "retry briefly"
    """The catalog file was locked for the full timeout of a call: one or two more attempts are allowed."""
    RETRY_ON_NEW_CONNECTION = "retry on a new connection"
    """The connection was lost during a query, which may be repeated on a new one."""


class Fault(NamedTuple):
    """A classified failure."""

    error: ArcticError
    reaction: Reaction = Reaction.RAISE


_MARKER = re.compile(
    r"\[USER_RAISED_EXCEPTION\]\s+(AR-\d{3})[| ](.*?)(?=\s*SQLSTATE: \w{5}|\s*== SQL|\Z)", re.DOTALL
)
_MALFORMED = re.compile(
    r"\[MALFORMED_RECORD_IN_PARSING|CSV header does not conform to the schema|Number of column in CSV header"
)
_FILE_READ = re.compile(r"\[FAILED_READ_FILE\.\w+\].*? (\w+:/\S+?)\.?(?=\s|$)")
_CONFLICT_CLASSES = {"CommitFailedException"}
_CONFLICT_TEXT = re.compile(r"Found (new )?(conflicting|concurrently)|Cannot commit, (missing|found)")
_BUSY = re.compile(r"\[SQLITE_(BUSY|LOCKED)\w*\]|database (table )?is locked")
_DAMAGED = re.compile(r"\[SQLITE_(NOTADB|CORRUPT|CANTOPEN)\w*\]")
# The commit was made, but it is unknown whether the folder entry is on disk.
_MAYBE_LANDED = re.compile(r"\[SQLITE_IOERR_DIR_FSYNC")
# Iceberg's clients use this message, among others, for a commit without a response.
_NO_ANSWER = re.compile(
    r"Error occurred while processing POST request|^Unknown failure$|^Database Connection failed$"
    r"|^No answer to a write to the catalog's database"
)
_NOTHING_SENT = {"ConnectException", "HttpHostConnectException", "UnknownHostException"}
_READS = {"SELECT", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "SET", "RESET"}
_CANCELLED = re.compile(r"part of cancelled job group|JOB_CANCELLED|OPERATION_CANCELED")
_STACK_LINE = re.compile(r"^\s*(at [\w.$/<>@-]+\(.*\)|\.\.\. \d+ more)\s*$")
_PLAN_TAIL = re.compile(r"(; line \d+ pos \d+);\n['+:\w].*\Z", re.DOTALL)
_DBT_COMMENT = re.compile(r'\s*/\* \{"app": "dbt".*?\} \*/', re.DOTALL)
_NODE = re.compile(r'"node_id": "([^"\\]+)"')
_SUGGESTIONS = re.compile(r" Did you mean one of the following\? \[([^\]]*)\]\.")
_FIXES = {
    "TABLE_OR_VIEW_NOT_FOUND": "check the name and the schema. Build an upstream model first: `dbt build "
    "--select +MODEL`. A table that is declared as a source has to be created by the program that loads it.",
    "UNRESOLVED_COLUMN": "check this name in the model's SQL, and in its settings that contain SQL, such as "
    "`delete_when` and `deduplicate_by`",
}
"""What to do, by Spark's error condition."""
_LOST_FILE = "org.apache.iceberg.exceptions.NotFoundException"
_ERRORS_BY_CODE = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, ArcticError) and kind is not ArcticError
}


def classify(causes: Sequence[Cause], sql: str) -> Fault:
    """The error for a failed statement, and the possible reaction.

    :param causes: the chain of Java causes, outermost first; at least one.
    :param sql: the statement, for the error's ``where``.
    """
    where = shortened(sql)
    marked = _raised_in_sql(causes)
    if marked is not None:
        return Fault(marked)
    message = statement_message(causes)
    unknown = Fault(
        CommitStateUnknown(
            "It is unknown whether the commit succeeded.",
            where=where,
            why=message,
            fix="check the table's newest snapshot before you run the model again",
        )
    )
    if _names(causes) & {"CommitStateUnknownException"} or _first(causes, _MAYBE_LANDED) is not None:
        return unknown
    if any(_CANCELLED.search(cause.message) for cause in causes):
        return Fault(StatementCancelled("The statement was cancelled.", where=where))
    if any(_is_conflict(cause) for cause in causes):
        return Fault(
            CommitConflict(
                "Other writers changed the table first, each time this statement tried to commit.",
                where=where,
                why=message,
                fix="run it again when fewer writers are active; nothing was committed",
            ),
            Reaction.RETRY,
        )
    busy = _first(causes, _BUSY)
    if busy is not None:
        return Fault(
            CatalogUnavailable(
                "The catalog's file is locked.",
                where=where,
                why=f"Another process held its lock while this statement waited: {busy}",
                fix="end the process that has the catalog open for writing, then run again",
            ),
            Reaction.RETRY_BRIEFLY,
        )
    malformed = _malformed_file(causes)
    if malformed is not None:
        return Fault(malformed)
    of_store = store_error(causes, where)
    if of_store is not None:
        return Fault(of_store)
    of_disk = disk_error(causes, where)
    if of_disk is not None:
        return Fault(of_disk)
    of_clock = clock_error(causes, where)
    if of_clock is not None:
        return Fault(of_clock)
    untyped = untyped_error(causes, where)
    if untyped is not None:
        return Fault(untyped)
    damaged = _first(causes, _DAMAGED)
    if damaged is not None:
        return Fault(
            CatalogUnavailable(
                "The catalog's file cannot be used.",
                where=where,
                why=damaged,
                fix="check that its folder exists; if the file is damaged, restore a backup",
            )
        )
    sent = first_word(sql) not in _READS and not _names(causes) & _NOTHING_SENT
    if sent and _first(causes, _NO_ANSWER) is not None:
        return unknown
    of_service = aws_error(causes, where) or catalog_error(causes, where, message)
    if of_service is not None:
        return Fault(of_service)
    found = _line_of(sql, message)
    return Fault(
        StatementError(
            "Spark rejected the statement, or the statement failed.",
            where=where if found is None else _around(found, sql),
            why=message if found is None else without_position(message),
            fix=_advice(causes),
            statement=sql,
            line=None if found is None else found.line,
        )
    )


def statement_message(causes: Sequence[Cause]) -> str:
    """Spark's message with the position in the SQL, without Java's stack trace and the plan.

    Spark wraps the failure of a task. The innermost message is the reason, so it is added unless the outer
    ones contain it.
    """
    cleaned = [(cause, clean_message(cause.message)) for cause in causes]
    spoken = [(cause, text) for cause, text in cleaned if text]
    if not spoken:
        return " <- ".join(cause.name for cause in causes)
    outer_cause, outer = spoken[0]
    message = outer if outer.startswith("[") else f"{outer_cause.name}: {outer}"
    inner_cause, inner = spoken[-1]
    if inner not in message:
        message += f"\n{inner_cause.name}: {inner}"
    return message


def clean_message(message: str) -> str:
    """A Java message without stack trace, plan and surrounding whitespace."""
    message = message.split("\nJVM stacktrace:")[0].split("\nDriver stacktrace:")[0]
    message = _PLAN_TAIL.sub(r"\1", message)
    message = without_useless_hints(_SUGGESTIONS.sub(_without_own_names, message))
    lines = [line.rstrip() for line in message.splitlines() if not _STACK_LINE.match(line)]
    return "\n".join(lines).strip()


def _without_own_names(match: re.Match[str]) -> str:
    """Spark's suggestions without hidden columns of ours, which a user cannot have meant."""
    names = [name for name in match[1].split(", ") if not name.strip("`").startswith("_arctic_")]
    return f" Did you mean one of the following? [{', '.join(names)}]." if names else ""


def shortened(sql: str, length: int = 300) -> str:
    """The statement on one line, truncated, for an error's ``where``.

    Of dbt's comment before it, only the node is left.

    >>> shortened('/* {"app": "dbt", "node_id": "model.shop.orders"} */  SELECT 1')
    'model.shop.orders: SELECT 1'
    """
    comment = _DBT_COMMENT.match(sql)
    node = node_of(sql)
    line = " ".join((sql[comment.end() :] if comment else sql).split())
    return _cut(f"{node}: {line}" if node else line, length)


def node_of(sql: str) -> str | None:
    """The node of dbt that a statement belongs to, by dbt's comment before it; ``None`` without one.

    >>> node_of('/* {"app": "dbt", "node_id": "model.shop.orders"} */  SELECT 1')
    'model.shop.orders'
    """
    comment = _DBT_COMMENT.match(sql)
    node = _NODE.search(comment[0]) if comment else None
    return node[1] if node else None


def _cut(line: str, length: int = 300) -> str:
    return line if len(line) <= length else line[: length - 1] + "…"


def _line_of(sql: str, message: str) -> Position | None:
    # Of these, Spark gets the text without dbt's comment (see ``Statement.text``), and counts other lines.
    return None if first_word(sql) in ("ALTER", "CALL") else position(message, sql)


def _around(found: Position, sql: str) -> str:
    """The rejected line. Its number would be that of a statement which its author never sees."""
    if found.text == without_comments(sql).strip():
        return shortened(sql)
    node, line = node_of(sql), f"the line: {found.text}"
    return _cut(f"{node}, {line}" if node else line)


def _raised_in_sql(causes: Sequence[Cause]) -> ArcticError | None:
    # Only the message of raise_error is searched: other errors may quote the statement with the marker.
    for cause in causes:
        found = _MARKER.search(cause.message)
        if found is not None and found.group(1) in _ERRORS_BY_CODE:
            what, where, why, fix = (*(part.strip() for part in found.group(2).split("|", 3)), "", "", "")[:4]
            return _ERRORS_BY_CODE[found.group(1)](what, where=where, why=why, fix=fix)
    return None


def _malformed_file(causes: Sequence[Cause]) -> MalformedFile | None:
    """The error for a row that a reader in strict mode could not parse; it names the file."""
    message = _first(causes, _MALFORMED)
    if message is None:
        return None
    read = next((found for cause in causes if (found := _FILE_READ.search(cause.message))), None)
    file = "" if read is None else re.sub("^file:/+", "/", unquote(read[1]))
    return MalformedFile(
        f"{file or 'a file'} does not fit the columns of its source",
        where=file,
        # Spark's advice to read invalid rows as NULL does not apply: a source is always read in strict mode.
        why=message.partition("\nParse Mode:")[0],
        fix="correct the file, or the columns of the source; nothing was written",
    )


def _is_conflict(cause: Cause) -> bool:
    if cause.name in _CONFLICT_CLASSES:
        return True
    return cause.name == "ValidationException" and _CONFLICT_TEXT.search(cause.message) is not None


def _names(causes: Sequence[Cause]) -> set[str]:
    return {cause.name for cause in causes}


def _first(causes: Sequence[Cause], pattern: re.Pattern[str]) -> str | None:
    return next(_matching(causes, pattern), None)


def _matching(causes: Sequence[Cause], pattern: re.Pattern[str]) -> Iterator[str]:
    for cause in reversed(causes):
        if pattern.search(cause.message):
            yield clean_message(cause.message)


def _advice(causes: Sequence[Cause]) -> str:
    if "OutOfMemoryError" in _names(causes) or any("OutOfMemoryError" in cause.message for cause in causes):
        return "give Spark more memory: `driver_memory` in the profile"
    messages = "\n".join(cause.message for cause in causes)
    if _LOST_FILE in {cause.java_class for cause in causes} or f"{_LOST_FILE}: " in messages:
        return "restore the file from a backup. `dbt-arctic verify` lists damaged tables, and other repairs"
    if "BadRequestException" in _names(causes):
        return "`why` has the reason of the catalog's server, and `dbt debug` shows what the catalog supports"
    return next((fix for condition, fix in _FIXES.items() if f"[{condition}" in messages), "")
