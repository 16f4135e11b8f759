"""What the table of a model has consumed, even if it is a clone or if an interrupted swap has renamed it."""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed
from dbt_arctic.refresh import clone, replacement
from dbt_arctic.store.consumption import last_consumed
from dbt_arctic.store.state import find_keyed, load_change


def consuming_state(catalog: CatalogReader, name: Name) -> TableState | None:
    """The table whose commits record what a model has consumed: of a keyed table, its change table.

    ``None`` if the model has no table yet.
    """
    target = consuming_table(catalog, name)
    table = find_keyed(catalog, target)
    if table is not None:
        return load_change(catalog, table)
    return catalog.of(target).load_table(target.schema, target.identifier)


def consuming_table(catalog: CatalogReader, name: Name) -> Name:
    """The name of the table that stands for a model's."""
    return clone.origin(catalog, replacement.standing(catalog, name))


def consumed_by(catalog: CatalogReader, name: Name) -> dict[str, Consumed]:
    """The upstream versions from which the next run of a model continues, by dotted name.

    :raises VersionUnavailable: see ``last_consumed``.
    """
    state = consuming_state(catalog, name)
    return {} if state is None else last_consumed(state.history(), name.identifier)


def has_pulled(catalog: CatalogReader, name: Name) -> bool:
    """Whether a commit of a plain table records what it had consumed."""
    state = catalog.of(name).load_table(name.schema, name.identifier)
    return state is not None and any(PROPERTY_CONSUMED in one.summary for one in state.snapshots)


def was_replaced(catalog: CatalogReader, name: Name) -> bool:
    """Whether another program has replaced a plain table after a commit that recorded what it had consumed.

    The commit is then no ancestor of the current one, and has none in common with it. A commit to a branch
    that was never published has. If a run of the model has replaced the table, the first commit says so.
    """
    state = catalog.of(name).load_table(name.schema, name.identifier)
    history = [] if state is None else state.history()
    if state is None or (history and PROPERTY_RUN in history[-1].summary):
        return False
    own = {snapshot.snapshot_id for snapshot in history}
    return any(
        PROPERTY_CONSUMED in snapshot.summary
        and own.isdisjoint(one.snapshot_id for one in state.history(snapshot.snapshot_id))
        for snapshot in state.snapshots
    )


__all__ = ["consumed_by", "consuming_state", "consuming_table", "has_pulled", "was_replaced"]
