"""Short forms of versions: what ``history`` shows, and what commands accept instead of full snapshot ids.

``<generation>.<change>`` is the version as of a commit to the change table,
``<generation>.<change>.<base>`` one with another base table, as after a compaction. Snapshot ids may be
shortened to a unique prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dbt_arctic.catalog.api import CatalogReader, Snapshot
from dbt_arctic.errors import DamagedKeyedTable, VersionUnavailable
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.pairs import base_for

_SHOWN = 7
_ACCEPTED = 6
"""A shorter prefix could be a mistyped number."""
_SHORT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def is_short(text: str) -> bool:
    """Whether a text has the form of a version or of its short form.

    >>> is_short("1.8432123"), is_short("1.8432123.7432123"), is_short("opening")
    (True, True, False)
    """
    return _SHORT.fullmatch(text) is not None


def abbreviated(versions: Sequence[Version]) -> dict[Version, str]:
    """The short form of each version of a history.

    :param versions: newest first, as in a history, where a commit comes before the compactions after it.

    >>> versions = [Version(1, 8432123456789, 7000000000002), Version(1, 8432123456789, 7000000000001)]
    >>> list(abbreviated(versions).values())
    ['1.8432123.7000000000002', '1.8432123']
    """
    of_commit = {(one.generation, one.change_snapshot): one for one in versions}
    changes = {one.change_snapshot for one in versions}
    bases = {one.base_snapshot for one in versions}
    found = {}
    for one in versions:
        text = f"{one.generation}.{_unique_prefix(one.change_snapshot, changes)}"
        is_of_commit = of_commit[one.generation, one.change_snapshot] == one
        found[one] = text if is_of_commit else f"{text}.{_unique_prefix(one.base_snapshot, bases)}"
    return found


def abbreviated_token(token: str) -> str:
    """A version with short snapshot ids, for display only: they need not be unique.

    >>> abbreviated_token("1.8432123456789.7000000000001")
    '1.8432123.7000000'
    """
    return ".".join(part[:_SHOWN] for part in token.split("."))


def _unique_prefix(number: int, others: Iterable[int]) -> str:
    text = str(number)
    others_text = [str(other) for other in others if other != number]
    for length in range(_SHOWN, len(text)):
        if not any(other.startswith(text[:length]) for other in others_text):
            return text[:length]
    return text


def complete(catalog: CatalogReader, table: KeyedTable, text: str, where: str) -> Version:
    """The version for its text, in which snapshot ids may be prefixes.

    :raises VersionUnavailable: no snapshot, or more than one, begins with these digits.
    """
    match = _SHORT.fullmatch(text)
    assert match is not None, text
    number, change_text, base_text = int(match[1]), match[2], match[3]
    try:
        generation = generation_of(catalog, table, number)
        base, change = load_sides(catalog, generation)
    except (VersionUnavailable, DamagedKeyedTable):
        if base_text is None:
            raise
        return Version.parse(text, where)  # its readers report what is missing
    if base_text is not None:
        snapshots, bases = _matching(change.snapshots, change_text), _matching(base.snapshots, base_text)
        if not snapshots or not bases:
            return Version.parse(text, where)  # expired: its readers report it
        if len(snapshots) > 1 or len(bases) > 1:
            raise _ambiguous(table, text, [f"{number}.{c}.{b}" for c in snapshots for b in bases], where)
        return Version(number, snapshots[0], bases[0])
    history = change.history()
    snapshots = _matching(history, change_text)
    if len(snapshots) > 1:
        raise _ambiguous(table, text, [f"{number}.{one}" for one in snapshots], where)
    at = base_for(base.history(), history, snapshots[0]) if snapshots else None
    if at is not None:
        return Version(number, snapshots[0], at)
    raise VersionUnavailable(
        f"{table.name} has no version {text}",
        where=where,
        why="the base table's snapshot of that commit has expired"
        if snapshots
        else f"no commit of generation {number} begins with these digits; a prefix has {_ACCEPTED} or more",
        fix=f"choose a version that `dbt-arctic history {table.name.identifier}` lists",
    )


def _matching(snapshots: Sequence[Snapshot], text: str) -> list[int]:
    """The ids that equal ``text`` or, if it is long enough, begin with these digits. Newest first."""
    ids = [one.snapshot_id for one in sorted(snapshots, key=lambda one: -one.sequence_number)]
    if int(text) in ids:
        return [int(text)]
    return [one for one in ids if str(one).startswith(text)] if len(text) >= _ACCEPTED else []


def _ambiguous(table: KeyedTable, text: str, candidates: Sequence[str], where: str) -> VersionUnavailable:
    return VersionUnavailable(
        f"{text} is not one version of {table.name}: {len(candidates)} begin with these digits",
        where=where,
        why="it could be " + ", ".join(candidates[:5]) + (", .." if len(candidates) > 5 else ""),
        fix="add digits until it is one of them",
    )
