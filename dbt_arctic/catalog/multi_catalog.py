"""Several catalogs in one profile: each reader knows the others, and ``of`` chooses the one of a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from dbt_arctic.catalog.api import CatalogReader, InCatalog, Loaded, RelationEntry
from dbt_arctic.catalog.load_relations import load_each
from dbt_arctic.errors import ConfigError


class OneCatalog:
    """The part of a reader that leads to the readers of other catalogs.

    A reader without others returns itself for every name: what the only catalog is called does not matter.
    """

    _others: Mapping[str, CatalogReader] | None = None
    """All readers by the lower-case name of their catalog, this one included."""
    _catalog_names: Sequence[str] = ()
    """The names of their catalogs, if there are several."""

    def of(self, name: InCatalog) -> CatalogReader:
        """The reader of the catalog that a name is in.

        :raises ConfigError: there are several catalogs, and none has this name.
        """
        if self._others is None:
            return cast("CatalogReader", self)
        found = self._others.get(name.catalog.lower())
        if found is None:
            raise ConfigError(
                f"the profile has no catalog {name.catalog}",
                where=str(name),
                why=f"its catalogs are: {', '.join(self._others)}",
                fix="add it in profiles.yml under catalogs, or correct the name",
            )
        return found

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        """Load the relations of a listing, one after the other."""
        return load_each(cast("CatalogReader", self), schema, entries)

    def names_with(self, name: InCatalog) -> Sequence[str]:
        """The names of all catalogs of the profile, that of ``name`` first."""
        return [name.catalog, *(one for one in self._catalog_names if one.lower() != name.catalog.lower())]

    def join(self, others: Mapping[str, CatalogReader]) -> None:
        """Give the reader the others of its profile, by the names of their catalogs."""
        self._others = {name.lower(): reader for name, reader in others.items()}
        self._catalog_names = list(others)


def together(readers: Mapping[str, CatalogReader]) -> CatalogReader:
    """The first of several readers, all of which lead to each other.

    :param readers: the readers by Spark's name of the catalog, that of the models first. Each is a
        ``OneCatalog``. Names are compared without case, as dbt compares them.
    """
    if len(readers) > 1:
        for reader in readers.values():
            assert isinstance(reader, OneCatalog)
            reader.join(readers)
    return next(iter(readers.values()))
