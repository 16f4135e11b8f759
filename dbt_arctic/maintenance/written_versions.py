"""What one run of a model has committed: the version that it wrote, its rows and bytes, and what it had read.

Reads metadata only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogColumn, CatalogReader, Snapshot
from dbt_arctic.keyed.log import PROPERTY_MERGED, PROPERTY_RUN, PROPERTY_TXN, consumed_versions, rows_added
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed, Version, of_relations
from dbt_arctic.maintenance.pairs import base_for
from dbt_arctic.store.state import find_keyed, load_base, load_change


@dataclass(frozen=True)
class WrittenVersion:
    """What a run has committed to a table.

    :param version: the version after the run; ``None`` if it committed nothing, or if it has expired.
    :param rows: the rows that its commits added; ``None`` if it committed nothing.
    :param size_bytes: the size of the data files that its commits added; ``None`` likewise.
    :param consumed: the versions of the upstreams from which the rows were computed, by dotted name.
    """

    columns: tuple[CatalogColumn, ...]
    version: str | None = None
    rows: int | None = None
    size_bytes: int | None = None
    consumed: Mapping[str, Consumed] = field(default_factory=dict)


def written_by(
    catalog: CatalogReader, name: Name, run_id: str, since_ms: int, until_ms: int
) -> WrittenVersion | None:
    """What a run has committed to the table of a model; ``None`` if there is no table, as for a view.

    :param run_id: as commits record it; the statement that creates a plain table records none.
    :param since_ms: the beginning of the run of the model, for commits without a run; ``until_ms`` its end.
    """
    keyed = find_keyed(catalog, name)
    if keyed is not None:
        return _by_keyed(catalog, keyed, run_id)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        return None
    commits = [
        one
        for one in state.history()
        if one.summary.get(PROPERTY_RUN, run_id) == run_id and since_ms <= one.timestamp_ms <= until_ms
    ]
    return _written(commits, state.columns, str(commits[0].snapshot_id) if commits else None)


def _by_keyed(catalog: CatalogReader, table: KeyedTable, run_id: str) -> WrittenVersion:
    state = load_base(catalog, table)
    base, change = state.history(), load_change(catalog, table).history()
    of_change = [one for one in change if one.summary.get(PROPERTY_RUN) == run_id]
    version = None
    if of_change:
        newest = of_change[0].snapshot_id
        beside = base_for(base, change, newest)
        if beside is not None:
            version = Version(table.generation.number, newest, beside).token
    hidden = {name.lower() for name in table.hidden}
    columns = tuple(column for column in state.columns if column.name.lower() not in hidden)
    # A build fills the base table. Its commits to the change table have only bucket markers and tombstones.
    batches = [one for one in of_change if PROPERTY_TXN in one.summary]
    filled = [
        one
        for one in base
        if one.summary.get(PROPERTY_RUN) == run_id
        and one.operation == "append"
        and PROPERTY_MERGED not in one.summary
    ]
    return _written(filled or batches, columns, version, of_change)


def _written(
    commits: Sequence[Snapshot],
    columns: tuple[CatalogColumn, ...],
    version: str | None,
    recording: Iterable[Snapshot] | None = None,
) -> WrittenVersion:
    if not commits:
        return WrittenVersion(columns)
    return WrittenVersion(
        columns,
        version,
        sum(rows_added(one) for one in commits),
        sum(int(one.summary.get("added-files-size", "0")) for one in commits),
        of_relations(consumed_versions(commits if recording is None else recording)),
    )


__all__ = ["WrittenVersion", "written_by"]
