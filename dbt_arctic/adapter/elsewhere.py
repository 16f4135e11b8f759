"""Running a project on a copy: its models in another schema, its sources from other tables.

Set by ``dbt-arctic check`` for the dbt that it runs in its own process, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Elsewhere:
    """:param schema: stands for the schema of the profile.
    :param sources: table of ``schema`` that stands for a source, by (schema, identifier) in lower case.
    """

    schema: str
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)


class _Current:
    place: Elsewhere | None = None


def current() -> Elsewhere | None:
    return _Current.place


@contextmanager
def elsewhere(place: Elsewhere) -> Iterator[None]:
    """For the time of the block, projects of this process run there."""
    _Current.place = place
    try:
        yield
    finally:
        _Current.place = None
