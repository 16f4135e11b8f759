"""Predicts which states of an upstream the other models of an invocation will read.

Reading a table costs nearly the same for any subset of its rows and columns. So before a table is read, the
last requests of the other models are looked up in their commits (``requested_states``). This reads metadata
of each model, and runs no job. For a model that needs something else, the table is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.auto.inputs import facts_of
from dbt_arctic.auto.requested_states import RecordedRequests, recorded_in
from dbt_arctic.auto.upstreams import Upstream, inspect_upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.delta.lookup_keys import have_few_rows
from dbt_arctic.store.context import ModelsOfRun
from dbt_arctic.store.state import find_keyed

WORTH_BYTES = 64 << 20
"""Reading a smaller table takes no longer than reading the metadata of many models."""
_READERS = 64
"""The most models that are looked up."""

ExpectedRequests = tuple[list[str], list[tuple[Upstream, str]]]
"""Columns, and key columns of upstreams whose changed keys look up rows."""


def expected_requests(
    catalog: CatalogReader,
    alongside: ModelsOfRun,
    target: Name,
    upstream: Upstream,
    last: Consumed | None,
    known: Mapping[str, tuple[Consumed | None, Upstream]],
) -> ExpectedRequests | None:
    """The rows that other models will request from an upstream; ``None`` if no request is expected.

    :param target: the table that is refreshed, which is not one of the other models.
    :param last: the version of ``upstream`` that it consumed last. Only models that consumed the same version
        need the same rows.
    :param known: upstreams that were looked up, by full name, with the consumed version.
    """
    if (upstream.rows or 0) * (upstream.row_bytes or 0) < WORTH_BYTES:
        return None
    columns: dict[str, None] = {}
    lookup_keys: dict[tuple[Name, str], tuple[Upstream, str]] = {}
    facts_by_name = dict(known)
    is_read = False
    for reader in alongside.readers(upstream.name)[:_READERS]:
        for name in (reader, *(state.name for state in find_states(catalog, reader))):
            if name == target:
                continue
            consumed, recorded = _recorded_by(catalog, name)
            requested = recorded.get(upstream.name)
            if requested is None or consumed.get(upstream.name.dotted) != last:
                continue
            is_read = True
            columns.update(dict.fromkeys(requested.columns))
            for other, column in requested.lookup_keys:
                upstream_of_key = _facts_at(
                    catalog, alongside.until, other, consumed.get(other.dotted), facts_by_name
                )
                if (
                    upstream_of_key is not None
                    and upstream_of_key.changed
                    and upstream_of_key.logged
                    and column in upstream_of_key.key
                ):
                    lookup_keys[other, column] = (upstream_of_key, column)
    if not is_read:
        return None
    selective: list[tuple[Upstream, str]] = []
    for one in lookup_keys.values():
        if _match_few_rows(upstream, [one]) and _match_few_rows(upstream, [*selective, one]):
            selective.append(one)
    there = {name for name, _ in upstream.columns}
    return [name for name in columns if name in there], selective


def _match_few_rows(upstream: Upstream, keys: Sequence[tuple[Upstream, str]]) -> bool:
    return have_few_rows(facts_of(upstream), [(facts_of(one), column) for one, column in keys])


def _recorded_by(
    catalog: CatalogReader, name: Name
) -> tuple[Mapping[str, Consumed], Mapping[Name, RecordedRequests]]:
    table = find_keyed(catalog, name)
    # It may be dropped at this moment. Its own refresh reports any error.
    change = (
        None
        if table is None
        else catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    )
    if change is None:
        return {}, {}
    history = change.history()
    return consumed_versions(history), recorded_in(history, name.catalog)


def _facts_at(
    catalog: CatalogReader,
    until: Callable[[Name], Consumed | None],
    name: Name,
    last: Consumed | None,
    facts_by_name: dict[str, tuple[Consumed | None, Upstream]],
) -> Upstream | None:
    if last is None:
        return None
    found = facts_by_name.get(name.dotted)
    if found is None or found[0] != last:
        try:
            upstream = inspect_upstream(catalog, name, last, until(name))
        except VersionUnavailable:
            return None  # The refresh that reads it reports the error.
        if not isinstance(upstream, Upstream):
            return None
        found = facts_by_name[name.dotted] = (last, upstream)
    return found[1]
