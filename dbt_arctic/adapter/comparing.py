"""Compares an automatic model with the result of its whole query.

A model must equal its query at the time of its run. If the query is not deterministic, only its
nondeterministic part is excluded: sums of floats are compared with a tolerance, and nondeterministic columns
are not compared. All other columns must be equal in all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.pins import texts_of, unpinned
from dbt_arctic.adapter.result_inputs import (
    settings_of_meaning,
    statements_of_session,
    time_of_invocation,
)
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.auto.advice import nondeterministic_parts
from dbt_arctic.auto.inputs import ModelInputs, find_inputs, pinned_text
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.errors import StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name, quote_all
from dbt_arctic.keyed.row_diff import TOLERANCES, count_differing, differing_keys
from dbt_arctic.planner.properties.nondeterministic_columns import Nondeterministic
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.other_catalogs import with_texts
from dbt_arctic.store.state import load_keyed

Query = Callable[[str], list[tuple[Any, ...]]]
Columns = Sequence[tuple[str, str]]
"""Names and types."""


@dataclass(frozen=True)
class Compared:
    """The result of comparing an automatic model with its full query.

    :param differing: the number of rows that differ but must not.
    :param open: the number of rows that differ in excluded columns.
    :param why: the excluded columns, and the reason.
    :param not_compared: the reason why nothing was compared.
    :param rows: the number of rows of the model.
    """

    differing: int = 0
    open: int = 0
    why: str = ""
    not_compared: str = ""
    rows: int = 0


def compare(session: TargetSession, credentials: ArcticCredentials, node: Any) -> Compared:
    """Compare a model with its query. Must be called right after the dbt invocation that ran the model.

    :param node: dbt's compiled node.
    """
    if node.language != "sql":
        return Compared(not_compared=f"its rows come from {node.language.capitalize()}, and not from a query")
    config = node.config.to_dict()
    statements = statements_of_session(config)
    if any(mark in statement for statement in statements for mark in ("{{", "{%")):
        return Compared(not_compared="what its pre-hook or sql_header sets is known to dbt only as it runs")
    hooked = bool(statements or config.get("pre-hook"))
    try:
        with session.query_after(statements) as query:
            return _compared(session, query, credentials, node, config)
    except StatementError as error:
        if not hooked:
            raise
        # Objects that a hook created may not exist in this session.
        return Compared(not_compared=f"its query fails outside of dbt's session: {error.why or error.what}")


def _compared(
    session: TargetSession, query: Query, credentials: ArcticCredentials, node: Any, config: Mapping[str, Any]
) -> Compared:
    name = Name(node.database or credentials.database, node.schema, node.alias)
    columns = [(column.name, column.type) for column in load_keyed(session.catalog, name).visible.columns]
    # No other program writes to its upstreams, so their newest versions are those of the run.
    sql = without_end(unpinned(node.compiled_code))
    now = time_of_invocation(credentials, config)
    settings = settings_of_meaning(credentials, config)
    if unsupported_setting(settings) is not None:
        now = None  # the run evaluated it at an unknown time
    inputs = replace(find_inputs(session.catalog, name, sql, {}, now=now, settings=settings), last=now)
    stored, whole = f"SELECT * FROM {name.sql}", sql if now is None else _at_its_time(sql, name, inputs)
    whole = with_texts(whole, texts_of(node.compiled_code))
    differing, rows = _numbers(query, count_differing(stored, whole, columns))
    if not differing:
        return Compared(rows=rows)
    return replace(_judged(query, inputs, node, config, stored, whole, columns, differing), rows=rows)


def _judged(
    query: Query,
    inputs: ModelInputs,
    node: Any,
    config: Mapping[str, Any],
    stored: str,
    whole: str,
    columns: Columns,
    differing: int,
) -> Compared:
    """Whether rows differ that must not.

    :param stored: SQL of the model's rows.
    :param whole: its whole query.
    """
    left = nondeterministic_parts(inputs, [column for column, _ in columns])
    if left is None:
        # It is always refreshed in full, and it is unknown which of its columns are deterministic.
        apart, _ = _numbers(query, count_differing(whole, whole, columns))
        return Compared(open=differing, why=_why_unknown(apart)) if apart else Compared(differing)
    if left.reason is None:
        return Compared(differing)
    key = [column.lower() for column in parse_config(node.name, config).unique_key]
    parts = _parted(columns, key, left)
    must = _must_differ(query, stored, whole, parts, left)
    return Compared(
        must, 0 if must else differing, f"{parts.left_out(left)}: {left.reason.what} ({left.reason.code})"
    )


def _at_its_time(sql: str, name: Name, inputs: ModelInputs) -> str:
    """The query at the time of the run, if it depends on the time."""
    if inputs.tree is None or not inputs.calls:
        return sql
    try:
        return pinned_text(sql, name, inputs)
    except CannotPlan:
        return sql


@dataclass(frozen=True)
class _Parts:
    """Columns by how they are compared."""

    keys: Columns
    exact: Columns
    within_tolerance: Columns
    open: Sequence[str]

    def left_out(self, left: Nondeterministic) -> str:
        if left.rows is not None:
            return "which rows there are" if left.counted else "which rows there are, and how many"
        found = [", ".join(self.open)] if self.open else []
        found += (
            [f"the last digits of {', '.join(name for name, _ in self.within_tolerance)}"]
            if self.within_tolerance
            else []
        )
        return " and ".join(found) or "nothing"


def _parted(columns: Columns, key: Sequence[str], left: Nondeterministic) -> _Parts:
    open_, digits = ({name.lower() for name in names} for names in (left.columns, left.digits))
    same = [pair for pair in columns if pair[0].lower() not in open_]
    within_tolerance = [
        (name, type_) for name, type_ in same if name.lower() in digits and type_ in TOLERANCES
    ]
    exact = [pair for pair in same if pair not in within_tolerance]
    keys = [pair for pair in exact if pair[0].lower() in key]
    if len(keys) < len(key):
        # Without a key, rows cannot be matched, so floats cannot be compared with a tolerance.
        within_tolerance = []
    compared = [*exact, *within_tolerance]
    return _Parts(keys, exact, within_tolerance, [pair[0] for pair in columns if pair not in compared])


def _must_differ(query: Query, stored: str, whole: str, parts: _Parts, left: Nondeterministic) -> int:
    """The number of rows that differ in deterministic columns."""
    if left.rows is not None and not left.counted:
        return 0
    if left.rows is not None or not parts.exact:
        return abs(_count(query, stored) - _count(query, whole))
    if parts.within_tolerance:
        return _count(query, differing_keys(stored, whole, parts.keys, parts.exact, parts.within_tolerance))
    one, other = (
        f"SELECT {quote_all([name for name, _ in parts.exact])} FROM (\n{sql}\n)" for sql in (stored, whole)
    )
    return _numbers(query, count_differing(one, other, parts.exact))[0]


def _count(query: Query, sql: str) -> int:
    return _numbers(query, f"SELECT count(1) FROM (\n{sql}\n)")[0]


def _numbers(query: Query, sql: str) -> list[int]:
    """The numbers in the only row of a query."""
    return [int(number) for number in query(sql)[0]]


def _why_unknown(rows: int) -> str:
    return f"its query gives {counted(rows, 'other row')} when it is run twice, and is not understood"
