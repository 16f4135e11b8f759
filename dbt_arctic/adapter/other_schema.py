"""Runs a project on a copy: its models in another schema, its sources from other schemas.

Only ``dbt-arctic check`` sets this, for the dbt invocations in its own process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OtherSchemas:
    """The schemas in which the nodes of a project are built and read during a check.

    :param schema: replaces the schema of the profile.
    :param sources: the schema of the copy of a source, by (schema, identifier) in lower case. A copy has the
        identifier of its source, so that it can be looked up by name.
    """

    schema: str
    sources: Mapping[tuple[str, str], str] = field(default_factory=dict)
    catalog: str = ""
    """The catalog of the sources, which is the profile's own one."""

    def schema_of(self, database: str | None, schema: str, identifier: str) -> str:
        """The schema in which a relation is read that the project looks up in another schema."""
        if database and database.lower() != self.catalog.lower():
            return schema
        return self.sources.get((schema.lower(), identifier.lower()), schema)


class _Current:
    place: OtherSchemas | None = None


def current() -> OtherSchemas | None:
    """The schemas of the current check; ``None`` if there is none."""
    return _Current.place


@contextmanager
def in_other_schemas(place: OtherSchemas) -> Iterator[None]:
    """Run projects of this process in other schemas temporarily."""
    _Current.place = place
    try:
        yield
    finally:
        _Current.place = None
