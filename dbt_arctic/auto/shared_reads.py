"""What several models of an invocation read of one upstream, and what is cached for them.

For a keyed table without before-images, these are its changed rows in both states, and the unchanged rows
that match changed keys, such as the lines of a changed order. One read of the table at its old state finds
them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from dbt_arctic.auto.expected_requests import expected_requests
from dbt_arctic.auto.plan import BySummaryDelta, IncrementalPlan, RefreshPlan
from dbt_arctic.auto.requested_states import RequestedStates, requested_by
from dbt_arctic.auto.state_difference import weighted_changes_sql
from dbt_arctic.auto.temporary_views import make_view
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.read import key_equality
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, State
from dbt_arctic.store.context import Context
from dbt_arctic.store.key_ranges import enclosing_range
from dbt_arctic.store.row_cache import ExpectedRows, SharedRows

SIDE = quote("_arctic_side")
"""-1: a row of the old state; 1: a row of the new state; 0: an unchanged row."""

_KEY = quote("_arctic_lookup")
_OF_SIDE: Mapping[State, str] = {
    "minus": f"{SIDE} = -1",
    "plus": f"{SIDE} = 1",
    "changed": f"{SIDE} <> 0",
    "lookup_old": f"{SIDE} <= 0",
    "lookup_new": f"{SIDE} >= 0",
}
_COMPARED: tuple[State, ...] = ("minus", "plus")
_MAX_COLUMNS, _MAX_ROW_BYTES = 32, 256
"""The most columns, and bytes per row, for which all columns are cached, so that the next model finds its
columns."""


def with_shared_rows(context: Context, target: Name, plan: IncrementalPlan) -> IncrementalPlan:
    """The plan with the rows that other models of this invocation also read in a cache.

    :param target: the table that is refreshed.
    """
    if context.shared is None:
        return plan
    upstreams = dict(plan.inputs.upstreams)
    read = {source: one for source, one in upstreams.items() if _requires_old_state(one)}
    keys = {source: one.key if one.is_keyed else () for source, one in read.items()}
    by_lookup = [source for source, one in read.items() if one.old_table is not None]
    for source, requested in sorted(requested_by(plan.nodes, keys, by_lookup).items()):
        if requested.reads:
            one = read[source]
            expect = partial(_expected_rows, context, target, plan, one)
            states = (
                _of_keyed(context, context.shared, one, requested, upstreams, expect)
                if one.is_keyed
                else _of_compared(context, context.shared, one, requested, expect)
            )
            upstreams[source] = replace(one, states={**one.states, **states})
    kept = [source for source, upstream in upstreams.items() if "lookup_new" in upstream.states]
    header = replace(plan.header, inputs=replace(plan.inputs, upstreams=upstreams))
    if isinstance(plan, BySummaryDelta):
        return replace(plan, header=header, summary_delta=plan.summary_delta.with_cached_lookups(kept))
    return replace(plan, header=header)


def _expected_rows(
    context: Context, target: Name, plan: RefreshPlan, upstream: Upstream
) -> ExpectedRows | None:
    if context.alongside is None:
        return None
    known = {
        one.name.dotted: (plan.last_consumed.get(one.name.dotted), one)
        for one in plan.inputs.upstreams.values()
    }
    last = plan.last_consumed.get(upstream.name.dotted)
    found = expected_requests(context.catalog, context.alongside, target, upstream, last, known)
    if found is None:
        return None
    columns, keys = found
    return ExpectedRows(columns, _queries(upstream, keys) if upstream.old_table is not None else {})


def _requires_old_state(upstream: Upstream) -> bool:
    """Whether the old rows of changed keys require a read of the table at its old state."""
    return "minus" in upstream.states and not upstream.images


def _of_keyed(
    context: Context,
    shared: SharedRows,
    upstream: Upstream,
    requested: RequestedStates,
    upstreams: Mapping[str, Upstream],
    expect: Callable[[], ExpectedRows | None],
) -> dict[State, str]:
    caches_all_columns = (
        len(upstream.columns) <= _MAX_COLUMNS
        and upstream.row_bytes is not None
        and upstream.row_bytes <= _MAX_ROW_BYTES
    )
    columns = [name for name, _ in upstream.columns] if caches_all_columns else [*requested.columns]
    lookup_keys = _queries(
        upstream, [(upstreams[source], name) for source, name in sorted(requested.lookup_keys)]
    )

    def rows(columns: Sequence[str], lookup_keys: Mapping[str, ValueRange | None]) -> str:
        few_tasks = f"/*+ COALESCE({2 * context.cores}) */ " if context.cores else ""
        return f"SELECT {few_tasks}*\nFROM (\n{_rows(upstream, columns, lookup_keys)}\n)"

    relation = shared.kept(
        upstream.states["minus"], columns, lookup_keys, rows, partial(make_view, context), expect
    )
    if relation is None:
        return {}
    listed = quote_all(requested.columns) if requested.columns else "1"
    states = [state for state in _OF_SIDE if requested.lookup_keys or not state.startswith("lookup")]
    found = {state: f"SELECT {listed} FROM {relation}\nWHERE {_OF_SIDE[state]}" for state in states}
    shown = "".join(f"{quote(column)}, " for column in requested.columns)
    sign = f"{SIDE} AS {quote(SIGN_OF_ROW)}"
    return {**found, "weighted": f"SELECT {shown}{sign} FROM {relation}\nWHERE {_OF_SIDE['changed']}"}


def _queries(upstream: Upstream, keys: Sequence[tuple[Upstream, str]]) -> dict[str, ValueRange | None]:
    """The queries of the keys that look up rows, with the range of each."""
    # Its own keys are always included, because the old rows of changed keys are among the rows that are read.
    every = [(upstream, upstream.key[0]), *keys] if keys else []
    return {_keys(read, column): read.ranges.get(column) for read, column in every}


def _rows(upstream: Upstream, columns: Sequence[str], lookup_keys: Mapping[str, ValueRange | None]) -> str:
    """Changed rows of both states, and unchanged rows that match keys. Columns: these, and ``SIDE``."""
    shown = "".join(f"{quote(column)}, " for column in columns)
    if lookup_keys:
        old = f"SELECT {shown}{SIDE}\nFROM (\n{_old_rows(upstream, lookup_keys)}\n)"
    else:
        old = f"SELECT {shown}-1 AS {SIDE}\nFROM (\n{upstream.states['minus']}\n)"
    return f"{old}\nUNION ALL\nSELECT {shown}1 AS {SIDE}\nFROM (\n{upstream.states['plus']}\n)"


def _keys(upstream: Upstream, column: str) -> str:
    return f"SELECT {quote(column)} AS {_KEY}\nFROM (\n{upstream.states['keys']}\n)"


def _old_rows(upstream: Upstream, lookup_keys: Mapping[str, ValueRange | None]) -> str:
    """The old rows of changed keys and of the keys that look up rows."""
    assert upstream.old_table is not None
    first, keys = upstream.key[0], upstream.states["keys"]
    lookups = "\nUNION ALL\n".join(lookup_keys)
    old = upstream.old_table.rows(
        f"SELECT /*+ BROADCAST */ {_KEY} AS {quote(first)}\nFROM (\n{lookups}\n)", [first]
    )
    range_ = enclosing_range(list(lookup_keys.values()))
    between = f"\nWHERE {range_.holds(f'm.{quote(first)}')}" if range_ else ""
    return f"""\
SELECT m.*, CASE WHEN k.{quote(first)} IS NULL THEN 0 ELSE -1 END AS {SIDE}
FROM (
{old}
) AS m
LEFT JOIN (
SELECT /*+ BROADCAST */ {quote_all(upstream.key)}
FROM (
{keys}
)
) AS k
  ON {key_equality("m", "k", upstream.key)}{between}"""


def _of_compared(
    context: Context,
    shared: SharedRows,
    upstream: Upstream,
    requested: RequestedStates,
    expect: Callable[[], ExpectedRows | None],
) -> dict[State, str]:
    """For a table without a key, both states are compared to find the rows that it lost and gained."""
    columns = [*requested.columns] or [name for name, _ in upstream.columns]
    listed = quote_all(columns)
    found: dict[State, str] = {}
    for state in _COMPARED:
        rows = upstream.states[state]

        def selected(
            columns: Sequence[str], lookup_keys: Mapping[str, ValueRange | None], rows: str = rows
        ) -> str:
            return f"SELECT {quote_all(columns)}\nFROM (\n{rows}\n)"

        relation = shared.kept(rows, columns, {}, selected, partial(make_view, context), expect)
        found[state] = f"SELECT {listed}\nFROM {relation or f'({chr(10)}{rows}{chr(10)})'}"
    minus, plus = found["minus"], found["plus"]
    return {
        **found,
        "changed": f"{minus}\nUNION ALL\n{plus}",
        "weighted": weighted_changes_sql(minus, plus, listed),
    }
