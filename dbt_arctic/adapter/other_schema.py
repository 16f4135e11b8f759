"""Running a project on a copy: its models in another schema, its sources from other schemas.

Set by ``dbt-arctic check`` for the dbt that it runs in its own process, and by nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Elsewhere:
    """Where the nodes of a project are built and read while it is checked.

    :param schema: stands for the schema of the profile.
    :param sources: the schema of the copy of a source, by (schema, identifier) in lower case. A copy has its
        source's identifier, so that what is looked up by its name is found.
    """

    schema: str
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def schema_of(self, schema: str, identifier: str) -> str:
        """Where a relation is read that the project looks for in a schema."""
        return self.sources.get((schema.lower(), identifier.lower()), schema)


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
