"""Clones: a view over another relation that becomes a separate table with its first write.

A clone is described by one property of its view. Nothing here writes to the source of a clone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ConfigError, UnknownRelation
from dbt_arctic.keyed.clone_origin import began_as, clone_property
from dbt_arctic.keyed.idempotency_keys import appended_keys
from dbt_arctic.keyed.log import consumed_versions, versions_to_carry
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import tombstones_of
from dbt_arctic.keyed.rollback import rows_and_deletes
from dbt_arctic.keyed.table import KeyedTable, is_keyed
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.pull import plan_merge_on_read
from dbt_arctic.store.other_catalogs import is_of_others, require_own_names
from dbt_arctic.store.plain_snapshot import plain_at
from dbt_arctic.store.state import columns_of, find_keyed, pinned_pair, version_of


@dataclass(frozen=True)
class ClonedRows:
    """The rows of a clone at one version of its source, and the versions from which they were computed.

    :param ordered: the source, if its rows have a sequence.
    :param keys: the idempotency keys of the appended batches in the rows.
    :param with_deletes: the rows with the deletes that the source remembers. Without them, an older row that
        arrives late would bring a deleted key back.
    """

    source: Name
    sql: str
    consumed: Mapping[str, Consumed]
    ordered: KeyedTable | None = None
    with_deletes: str = ""
    keys: tuple[str, ...] = ()

    @property
    def clone_property(self) -> str:
        """The value of ``PROPERTY_CLONE`` for a plain table with these rows."""
        return clone_property(self.source)

    def sql_for(self, config: KeyedConfig) -> str:
        """The SQL of the first rows of a keyed table.

        Deletes are only valid with the same key and sequence.
        """
        if self.ordered is None or self.ordered.sequence_by is None or config.sequence_by is None:
            return self.sql
        of_source = ({name.lower() for name in self.ordered.key}, self.ordered.sequence_by.lower())
        of_clone = ({name.lower() for name in config.unique_key}, config.sequence_by.lower())
        return self.with_deletes if of_source == of_clone else self.sql


def property_for(catalog: CatalogReader, source: Name, model: str) -> str:
    """The property of a view that becomes a clone of a table; empty if the source is itself a view.

    :raises UnknownRelation: the source does not exist.
    """
    view = catalog.of(source).load_view(source.schema, source.identifier)
    if view is None and catalog.of(source).load_table(source.schema, source.identifier) is None:
        raise UnknownRelation(
            f"{source} does not exist, so it cannot be cloned",
            where=model,
            why="the state given by --state contains it",
            fix="build it in that environment, or choose the models to clone with --select",
        )
    if view is not None and not is_keyed(view.properties) and not is_clone(view.properties):
        return ""
    return clone_property(source)


def cloned_from(
    catalog: CatalogReader, upstream: Name, last_consumed: Mapping[str, Consumed]
) -> tuple[Name, Consumed] | None:
    """The source of a cloned keyed upstream, and what the model had consumed from it before it was cloned.

    :param last_consumed: the versions that the model has consumed.
    """
    if not last_consumed or upstream.dotted in last_consumed:
        return None
    view = catalog.of(upstream).load_view(upstream.schema, upstream.identifier)
    source = began_as(view.properties) if view is not None else None
    if source is None or source.dotted not in last_consumed:
        return None
    if is_of_others(catalog, upstream) and source.catalog.lower() != upstream.catalog.lower():
        return None  # the other project's name for it
    return source, last_consumed[source.dotted]


def is_clone(properties: Mapping[str, str]) -> bool:
    """Whether a view with these properties is a clone without a write."""
    return not is_keyed(properties) and began_as(properties) is not None


def origin(catalog: CatalogReader, name: Name) -> Name:
    """The relation that holds the rows of a name: the source of a clone, otherwise the relation itself."""
    seen = [name]
    while True:
        view = catalog.of(seen[-1]).load_view(seen[-1].schema, seen[-1].identifier)
        source = began_as(view.properties) if view is not None and is_clone(view.properties) else None
        if source is None:
            return seen[-1]
        require_own_names(catalog, seen[-1], source)
        if source in seen:
            raise UnknownRelation(
                f"{name} is a clone of itself",
                where=name.dotted,
                why=" -> ".join(part.dotted for part in [*seen, source]),
                fix="build it: dbt run --full-refresh",
            )
        seen.append(source)


def cloned_rows(catalog: CatalogReader, clone: Name, model: str) -> ClonedRows:
    """The rows with which a clone becomes a separate table.

    One version is pinned, so that rows and consumed versions are consistent while the source is written to.
    """
    source = origin(catalog, clone)
    table = find_keyed(catalog, source)
    if table is not None:
        table, base, change = pinned_pair(catalog, table)
        version = version_of(table, base, change)
        history = change.history(version.change_snapshot)
        sql = plan_merge_on_read(catalog, source, version.token, model)
        consumed = versions_to_carry(history)
        keys = appended_keys(history, change.properties)
        if table.sequence_by is None:
            return ClonedRows(source, sql, consumed, keys=keys)
        known = columns_of(catalog, table, version)
        deletes = tombstones_of(table, version, known)
        return ClonedRows(source, sql, consumed, table, rows_and_deletes(table, sql, deletes), keys)
    state = catalog.of(source).load_table(source.schema, source.identifier)
    if state is None:
        raise UnknownRelation(
            f"{source}, the source of the clone {clone}, no longer exists",
            where=model,
            why="a clone has no rows of its own until its first write",
            fix=f"build it: dbt run --full-refresh --select {clone.identifier}",
        )
    today, now = {column.name: column for column in state.columns}, state.current_snapshot_id
    then = {} if now is None else catalog.of(source).columns_at(source.schema, source.identifier, now)
    sql = plain_at(source, today, then, now)
    keys = appended_keys(state.history(), state.properties)
    return ClonedRows(source, sql, consumed_versions(state.history()), keys=keys)


def refuse_history_clone(model: str, strategy: str) -> None:
    """Refuse to continue a history from a clone.

    A clone shows intervals, and not all events that its source remembers.

    :raises ConfigError: asks for a full refresh.
    """
    if strategy == "history":
        raise ConfigError(
            "a clone cannot continue a history",
            where=model,
            why="it shows the intervals of its source, and a late event needs the events behind them",
            fix=f"build it from all events: dbt run --full-refresh --select {model}",
        )


def reject_other_upstreams(rows: ClonedRows, missing: Sequence[Name], model: str) -> None:
    """Refuse a clone whose model pulls other upstreams than the last commit of its source did.

    :param missing: upstreams of the model that are missing in the last commit of the source.
    :raises ConfigError: asks for a full refresh, since changes of these upstreams are unknown.
    """
    if missing:
        raise ConfigError(
            f"the changes in {', '.join(sorted(name.dotted for name in missing))} since {rows.source} was "
            "computed are unknown",
            where=model,
            why=f"the model is a clone of {rows.source}, which was not computed from there",
            fix=f"build it from all rows: dbt run --full-refresh --select {model}; "
            "or run with --defer, so that it pulls from what its source pulls from",
        )
