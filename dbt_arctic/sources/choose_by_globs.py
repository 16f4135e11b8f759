"""Chooses tables or topics by the globs of a command. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from dbt_arctic.errors import UnknownRelation

Named = TypeVar("Named")
_LISTED = 10


def choose_by_globs(
    things: Sequence[Named],
    names_of: Callable[[Named], Sequence[str]],
    patterns: Sequence[str],
    excluded: Sequence[str],
    what: str,
    where: str,
) -> list[Named]:
    """The things that match one of the patterns and none of the excluded ones, in their order.

    :param names_of: the names that a pattern is compared with; the last one is shown in errors.
    :param patterns: globs; empty for everything.
    :param what: what they are, for errors: ``"table"``.
    :param where: the address of the server, for errors.
    :raises UnknownRelation: there is nothing, or nothing for one of the globs.
    """
    if not things:
        raise UnknownRelation(
            f"there is no {what} to load",
            where=where,
            why="the server has none, or this user may not read them",
            fix="connect as another user, or grant this user the right to read",
        )

    def matches(thing: Named, pattern: str) -> bool:
        return any(fnmatchcase(name, pattern) for name in names_of(thing))

    for pattern in (*patterns, *excluded):
        if not any(matches(thing, pattern) for thing in things):
            names = [names_of(thing)[-1] for thing in things]
            similar = difflib.get_close_matches(pattern, names, _LISTED, 0.4) or names[:_LISTED]
            raise UnknownRelation(
                f"no {what} matches {pattern}",
                where=where,
                why=f"it does not exist, or this user may not read it; names of a {what} are case-sensitive",
                fix=f"use one of {', '.join(similar)}, or a pattern with *",
            )
    chosen = [
        thing
        for thing in things
        if (not patterns or any(matches(thing, one) for one in patterns))
        and not any(matches(thing, one) for one in excluded)
    ]
    if not chosen:
        raise UnknownRelation(
            f"every {what} is excluded", where=where, fix=f"change --exclude, or --{what} if it is given"
        )
    return chosen


__all__ = ["choose_by_globs"]
