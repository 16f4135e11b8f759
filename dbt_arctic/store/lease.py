"""The lease of a build.

It is stored in the base table and records which process builds, since when and where.

A lease lets a second builder stop at its start instead of at its end. Correctness does not depend on it, see
``publish_view``. A lease ends when its process has ended. If that cannot be determined (another host), it
ends when it was not renewed within its timeout.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ArcticError, ConcurrentRun
from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import PROPERTY_ID, PROPERTY_OF, KeyedTable, side_generation, side_name
from dbt_arctic.store.context import Context
from dbt_arctic.store.process import Process, is_running, this_process

PROPERTY_LEASE = "arctic.lease"
PROPERTY_RENEWED = "arctic.lease-renewed-ms"
RENEWALS = 3
"""How often a lease is renewed within its timeout."""

_held: set[str] = set()
"""The ids of base tables that threads of this process are building."""


@dataclass(frozen=True)
class Lease:
    """The process that builds a generation, and how long its claim is valid.

    :param run: invocation and model.
    :param timeout_s: seconds for which the lease is valid without a renewal.
    """

    holder: Process
    run: str
    since_ms: int
    timeout_s: int

    def to_properties(self) -> dict[str, str]:
        """The table properties that store the lease."""
        return {PROPERTY_LEASE: json.dumps(asdict(self), sort_keys=True)}

    @property
    def description(self) -> str:
        """A description of the builder and its start for messages."""
        since = datetime.fromtimestamp(self.since_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        run = f" (run {self.run})" if self.run else ""
        return f"{self.holder.description}{run} since {since} UTC"


@dataclass(frozen=True)
class BuildInProgress:
    """A generation that no view shows yet and that has a lease.

    :param finished: whether it has all of its rows and only has to be published.
    :param is_expired: whether its lease has expired, although its process may still run.
    """

    number: int
    lease: Lease
    finished: bool
    is_expired: bool = False


def new_lease(context: Context, timeout_s: int) -> Lease:
    """Create the lease that the base table is created with."""
    return Lease(this_process(), context.run_id, context.now_ms(), timeout_s)


def read_lease(properties: Mapping[str, str]) -> Lease | None:
    """The lease in the properties of a base table; ``None`` if there is none or it cannot be parsed."""
    try:
        fields = json.loads(properties[PROPERTY_LEASE])
        return Lease(**{**fields, "holder": Process(**fields["holder"])})
    except (KeyError, ValueError, TypeError):
        return None


def is_living(properties: Mapping[str, str], now_ms: int) -> bool:
    """Whether a build of a base table may still be in progress."""
    lease = read_lease(properties)
    if lease is None:
        return False
    runs = _runs(lease, properties)
    if runs is not None:
        return runs
    renewed = int(properties.get(PROPERTY_RENEWED) or lease.since_ms)
    return now_ms - renewed <= lease.timeout_s * 1000


def _runs(lease: Lease, properties: Mapping[str, str]) -> bool | None:
    if lease.holder == this_process():
        return properties.get(PROPERTY_ID) in _held
    return is_running(lease.holder)


def find_build(context: Context, name: Name, shown: KeyedTable | None) -> BuildInProgress | None:
    """The build of the next generation of a table that is now in progress.

    :param shown: the generation that the view of the table shows.
    """
    return next((build for build in find_builds(context, name, shown) if not build.is_expired), None)


def find_builds(context: Context, name: Name, shown: KeyedTable | None) -> Iterator[BuildInProgress]:
    """The builds of later generations that may still be published, oldest first.

    :param shown: the generation that the view of the table shows.
    """
    above = newest_named(shown) if shown is not None and shown.storage_name == name else 0
    numbers = {
        number
        for entry in context.catalog.of(name).list_names(name.schema)
        if entry.kind == "table"
        and (number := side_generation(name, entry.name)) is not None
        and number > above
    }
    for number in sorted(numbers):
        states = [_side(context, name, role, number) for role in ("base", "change")]
        build = build_in_progress(number, states[0], states[1], context.now_ms())
        build = build or _expired_build(number, states[0], states[1])
        if build is not None:
            yield build


def _expired_build(number: int, base: TableState | None, change: TableState | None) -> BuildInProgress | None:
    """A finished build that is not in progress by its lease, if its process has not certainly ended."""
    lease = None if base is None else read_lease(base.properties)
    if base is None or lease is None or change is None or not create.is_finished(change.properties):
        return None
    is_over = _runs(lease, base.properties) is False
    return None if is_over else BuildInProgress(number, lease, finished=True, is_expired=True)


def build_in_progress(
    number: int, base: TableState | None, change: TableState | None, now_ms: int
) -> BuildInProgress | None:
    """The build of a generation that no view names, if it is in progress."""
    lease = None if base is None else read_lease(base.properties)
    if base is None or lease is None or not is_living(base.properties, now_ms):
        return None
    finished = change is not None and create.is_finished(change.properties)
    if finished and change is not None and not _may_still_be_shown(base, change, lease, now_ms):
        return None
    return BuildInProgress(number, lease, finished)


def was_interrupted(base: TableState | None, change: TableState | None) -> bool:
    """Whether a generation that no view names was left unfinished by a process that has ended."""
    if base is None or (change is not None and create.is_finished(change.properties)):
        return False
    lease = read_lease(base.properties)
    return lease is not None and _runs(lease, base.properties) is False


def newest_named(table: KeyedTable) -> int:
    """The newest generation that a view names. Higher numbers were created later."""
    return max(table.generation.number, table.previous.number if table.previous else 0)


def _side(context: Context, name: Name, role: str, number: int) -> TableState | None:
    side = side_name(name, role, number)
    state = context.catalog.of(side).load_table(side.schema, side.identifier)
    return state if state is not None and state.properties.get(PROPERTY_OF) == name.dotted else None


def _may_still_be_shown(base: TableState, change: TableState, lease: Lease, now_ms: int) -> bool:
    """Whether a finished generation may still be published.

    Publishing takes little time, and the replay before it takes at most as long as the lease is renewed. A
    build that has waited longer has lost its claim to the view.
    """
    renewed = int(base.properties.get(PROPERTY_RENEWED) or 0)
    last = max((renewed, *(one.timestamp_ms for one in change.snapshots[-1:])))
    return now_ms - last <= lease.timeout_s * 1000


def refuse_during_build(context: Context, table: KeyedTable, what: str, where: str) -> None:
    """Refuse an operation whose result a build in progress could not carry over to its new generation.

    :param what: the refused operation, as the beginning of a sentence.
    :raises ConcurrentRun: names the builder.
    """
    build = find_build(context, table.name, table)
    if build is not None:
        raise build_in_progress_error(f"{what} while {table.name} is being rebuilt", build, where)


def build_in_progress_error(what: str, build: BuildInProgress, where: str) -> ConcurrentRun:
    """The error for an operation that is refused because a build is in progress."""
    return ConcurrentRun(
        what,
        where=where,
        why=f"generation {build.number} is being built by {build.lease.description}; nothing was changed",
        fix="run again when that has ended; if the process hangs, end it, and the next run continues at once",
    )


@contextmanager
def held_lease(context: Context, table: KeyedTable, lease: Lease) -> Iterator[None]:
    """Hold the lease of a build.

    Enter this before the base table is created. Other threads of this process treat a base table whose lease
    is not held as abandoned. The lease is renewed during long statements.
    """
    _held.add(table.generation.base_id)
    stop = threading.Event()
    beat = None
    if context.second_connection is not None:
        beat = threading.Thread(
            target=_renew_until, args=(context, table, lease, stop), name="arctic-lease", daemon=True
        )
        beat.start()
    try:
        yield
    finally:
        stop.set()
        _held.discard(table.generation.base_id)
        if beat is not None:
            beat.join(timeout=30)


def _renew_until(context: Context, table: KeyedTable, lease: Lease, stop: threading.Event) -> None:
    """Renew the lease on a separate connection."""
    assert context.second_connection is not None
    while not stop.wait(max(lease.timeout_s, 1) / RENEWALS):
        try:
            with context.second_connection() as run:
                run("renew_lease", renew_statement(table, context.now_ms()), table)
        except ArcticError:
            # Without a renewal the lease ends. No row is lost: another build may only overtake this one.
            continue


def renew_statement(table: KeyedTable, now_ms: int) -> str:
    """The SQL statement that renews the lease."""
    return (
        f"ALTER TABLE {table.base.sql} SET TBLPROPERTIES "
        f"({literal(PROPERTY_RENEWED)} = {literal(str(now_ms))})"
    )
