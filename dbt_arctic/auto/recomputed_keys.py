"""Recomputes a sample of keys of an automatic model and compares them with the stored rows.

The sample is computed by the model's own SQL over the versions that its refresh has read, not by a plan. So
an error in a plan is found, whatever its cause. This module makes no plan of a refresh and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbt_arctic.auto import select_list_subqueries
from dbt_arctic.auto.advice import nondeterministic_parts
from dbt_arctic.auto.affected_keys import kept_rows, literals_of
from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.auto.decided_order import with_decided_order
from dbt_arctic.auto.inputs import ModelInputs, analysed_query, find_inputs, pinned_text
from dbt_arctic.auto.nested_view import consumed_by
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.auto.verified_sample import Compared, differing_values, rows_of_sample, sample_sql
from dbt_arctic.catalog.api import CatalogReader, Snapshot, TableState
from dbt_arctic.errors import SparkEnded, StatementError, VersionUnavailable
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.log import PROPERTY_TXN, consumed_versions
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.row_diff import TOLERANCES
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import EVALUATED_AT, Version, of_relations
from dbt_arctic.planner.delta.key_restriction import restricts_a_scan
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.refresh.auto_config import Sampling
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.change_log import logged_at
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import columns_of, load_change, stored_rows, total

WHOLE_ROWS = 1_000_000
"""A query over this many rows is computed as a whole, if it cannot be restricted to keys."""


class CannotVerify(Exception):
    """Raised with the reason why a refresh is not verified. It is reported, never an error.

    :param detail: what Spark says, which may quote values of rows.
    """

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.detail = detail


@dataclass(frozen=True)
class Committed:
    """A refresh, and the state of its table.

    :param table: without hidden columns.
    :param version: of the table, in which no commit of rows follows that of the refresh.
    """

    table: KeyedTable
    change: TableState
    version: Version
    commit: Snapshot

    @property
    def txn(self) -> int:
        """The transaction of the refresh."""
        return int(self.commit.summary[PROPERTY_TXN])


@dataclass(frozen=True)
class Difference:
    """One key that differs.

    :param key: its values as strings.
    :param what: what differs: columns with both values, or a missing row.
    """

    key: tuple[str, ...]
    what: str


@contextmanager
def _failures_as_unverified() -> Iterator[None]:
    """A failure of the verification says nothing of the refresh, unless Spark has ended."""
    try:
        yield
    except SparkEnded:
        raise
    except VersionUnavailable as error:
        raise CannotVerify(
            "a version that the refresh has read is no longer available", error.what
        ) from error
    except StatementError as error:
        raise CannotVerify("a statement of the verification failed", error.why or error.what) from error


@_failures_as_unverified()
def recompute(
    context: Context,
    refresh: Committed,
    config: KeyedConfig,
    sampling: Sampling,
    sql: str,
    terms: RefreshParameters,
) -> tuple[int, list[Difference]]:
    """The number of keys in the sample, and those that differ.

    :param sql: the model's own SQL.
    :param terms: those with which the refresh was planned.

    :raises CannotVerify: the result cannot be compared, or only by computing all of a large query.
    """
    table = refresh.table
    text, inputs = _at_its_versions(context.catalog, refresh, config, sql, terms)
    compared = _compared(table, inputs)
    _require_restricted(inputs, table)
    size = sampling.size(stored_rows(context.catalog, table))
    sample = sample_sql(table, refresh.version, refresh.txn, refresh.commit.snapshot_id, size)
    queries = (inputs.tree, *inputs.trees.values())
    with kept_rows(context, table, sample, "keys") as kept, select_list_subqueries.over(context, queries):
        listed = ", ".join(f"CAST({quote(column)} AS STRING)" for column in table.key)
        found = context.query(f"SELECT {listed}\nFROM {quote(kept)}")
        if not found:
            raise CannotVerify("the table has no rows")
        of_table = replace(table, columns=compared.columns)
        expected = rows_of_sample(text, of_table, quote(kept), _conditions(table, found))
        known = columns_of(context.catalog, table, refresh.version)
        logged = logged_at(context.catalog, table, refresh.change, refresh.version.change_snapshot)
        keys = f"SELECT {quote_all(table.key)} FROM {quote(kept)}"
        stored = merge_on_read(of_table, refresh.version, known, logged, keys)
        rows = context.query(differing_values(expected, stored, table.key, compared))
    return len(found), [_difference(table, compared, row) for row in rows]


def _at_its_versions(
    catalog: CatalogReader, refresh: Committed, config: KeyedConfig, sql: str, terms: RefreshParameters
) -> tuple[str, ModelInputs]:
    """The model's SQL over the versions and at the time that its commit records."""
    if unsupported_setting(terms.in_effect) is not None:
        raise CannotVerify("the versions that the refresh has read are unknown")
    name, history = refresh.table.name, refresh.change.history()
    consumed = dict(consumed_versions(history))
    for state in states_read(catalog, refresh):
        own = consumed_by(catalog, state)
        if any(consumed.get(one, version) != version for one, version in of_relations(own).items()):
            raise CannotVerify("the refresh has read other versions than its auxiliary views")
        # Only one of them depends on the time.
        consumed |= {
            one: version for one, version in own.items() if one in of_relations(own) or one == EVALUATED_AT
        }
    at = consumed.get(EVALUATED_AT)
    now = terms.now if at is None else Clock(at.table_id, at.version)
    sql = with_decided_order(
        catalog, name, config, sql, terms.in_effect, lambda one: consumed.get(one.dotted)
    )
    inputs = find_inputs(
        catalog,
        name,
        sql,
        {},
        lambda one: consumed.get(one.dotted),
        now,
        config.declared_keys,
        settings=terms.in_effect,
    )
    inputs = replace(inputs, last=now)
    if inputs.reason is not None:
        raise CannotVerify(inputs.reason.what)
    for upstream in inputs.upstreams.values():
        if consumed.get(upstream.name.dotted) != upstream.consumed:
            raise CannotVerify(f"{upstream.name} cannot be read at the version that the refresh has read")
    try:
        return pinned_text(sql, name, inputs), inputs
    except CannotPlan as error:
        raise CannotVerify(error.reason.what) from error


def states_read(catalog: CatalogReader, refresh: Committed) -> list[KeyedTable]:
    """The auxiliary views that a refresh has read.

    :raises CannotVerify: one of them has been refreshed since.
    """
    wanted = dict(consumed_versions(refresh.change.history()))
    found = []
    for state in reversed(find_states(catalog, refresh.table.name)):
        version = wanted.get(state.name.dotted)
        if version is None:
            continue
        change = load_change(catalog, state)
        if Version.parse(version.version).change_snapshot != change.current_snapshot_id:
            raise CannotVerify("an auxiliary view has been refreshed since")
        wanted |= consumed_versions(change.history())
        found.append(state)
    return found


def _compared(table: KeyedTable, inputs: ModelInputs) -> Compared:
    """The columns whose values the rows of the upstreams determine.

    :raises CannotVerify: they do not determine which rows there are.
    """
    left = nondeterministic_parts(inputs, table.column_names)
    if left is None:
        raise CannotVerify("which of its columns are deterministic is unknown")
    open_, digits = ({name.lower() for name in names} for names in (left.columns, left.digits))
    if left.rows is not None or any(name.lower() in {*open_, *digits} for name in table.key):
        assert left.reason is not None
        raise CannotVerify(f"which rows there are is not determined: {left.reason.what}")
    same = [column for column in table.columns if column.name.lower() not in open_]
    near = tuple(one for one in same if one.name.lower() in digits and one.type in TOLERANCES)
    exact = tuple(one for one in same if one.name.lower() not in digits)
    return Compared(exact, near)


def _require_restricted(inputs: ModelInputs, table: KeyedTable) -> None:
    """Refuse to compute all of a large query.

    :raises CannotVerify: the query cannot be restricted to some keys.
    """
    rows = total(upstream.rows for upstream in inputs.upstreams.values())
    if rows is not None and rows <= WHOLE_ROWS:
        return
    try:
        query = analysed_query(inputs, table.column_names)
    except CannotPlan as error:
        raise CannotVerify(error.reason.what) from error
    if not restricts_a_scan(query, table.key):
        read_rows = "an unknown number of rows" if rows is None else counted(rows, "row")
        raise CannotVerify(
            "its query cannot be restricted to some keys (a LIMIT, or a window over several keys), and reads "
            + read_rows
        )


def _conditions(table: KeyedTable, keys: Sequence[Sequence[str]]) -> list[str]:
    """Conditions on each key column with exact literals, which hold for all keys."""
    conditions = []
    for place, column in enumerate(table.key):
        values = sorted({row[place] for row in keys})
        literals = literals_of(values, table.types[column])
        if literals is not None:
            conditions.append(f"q.{quote(column)} IN ({', '.join(literals)})")
    return conditions


def _difference(table: KeyedTable, compared: Compared, row: Sequence[object]) -> Difference:
    """One row of ``differing_values``."""
    rows, is_stored = row[0], row[1]
    width = len(table.key)
    key = tuple(str(value) for value in row[2 : 2 + width])
    if rows == 0:
        return Difference(key, "is stored, and the query does not return it")
    if not is_stored:
        return Difference(key, "is missing, and the query returns it")
    if rows != 1:
        return Difference(key, f"is returned {rows} times by the query")
    names = [column.name for column in compared.columns if column.name not in table.key]
    values = [row[2 + width + 3 * place : 5 + width + 3 * place] for place in range(len(names))]
    told = [
        f"{name} is {shortened(stored)}, the query returns {shortened(expected)}"
        for name, (differs, expected, stored) in zip(names, values, strict=True)
        if differs
    ]
    return Difference(key, "; ".join(told))


_LONGEST = 60


def shortened(value: object) -> str:
    """A value for an error message.

    >>> shortened(None), shortened("a"), len(shortened("a" * 100))
    ('NULL', 'a', 63)
    """
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


__all__ = ["CannotVerify", "Committed", "Difference", "recompute", "shortened", "states_read"]
