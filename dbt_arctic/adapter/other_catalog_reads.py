"""What a relation is read as in SQL, if the text of its view would read from a catalog of another name.

Only for a profile with several catalogs. A keyed table is then read by the query of its view with the names
that this profile has for its catalog. Anything that cannot be read exactly is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from sqlglot import exp

from dbt_arctic.auto.inputs import full_name
from dbt_arctic.catalog.api import CatalogReader, ViewState
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.frontend.parse import is_unseen, named_relations, parse
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.store.other_catalogs import (
    is_of_others,
    is_renamed,
    merged_text,
    require_own_names,
)
from dbt_arctic.store.state import keyed_from_view


class OtherReads:
    """The relations of a profile with several catalogs, as queries read them.

    :param catalog: the readers of all catalogs of the profile.
    :param own: the name of the profile's own catalog.
    """

    def __init__(self, catalog: CatalogReader, own: str) -> None:
        self._catalog, self._own = catalog, own

    def text_of(self, name: Name) -> str | None:
        """The text by which a relation is read; ``None`` if it is read by its name.

        :raises ConfigError: it is a view that cannot be read exactly.
        """
        view = self._view(name)
        if view is None:
            return None
        table = keyed_from_view(name, view)
        if table is not None:
            return merged_text(table) if is_renamed(table, view) else None
        self._check(name, view, [name])
        return None

    def texts_in(self, sql: str, schema: str) -> Mapping[Name, str]:
        """The relations that SQL names and that must not be read by their names, with their texts.

        :param schema: that of names without one.
        :raises ConfigError: one is a view that cannot be read exactly.
        """
        with suppress(CannotPlan):
            home = Name(self._own, schema, "")
            found = {name: self.text_of(name) for name in _named(sql, home)}
            return {name: text for name, text in found.items() if text is not None}
        return {}

    def refuse_names(self, sql: str, schema: str, where: str, fix: str) -> None:
        """Refuse SQL that reads a keyed table by a name under which its view is wrong.

        :raises ConfigError: names the table.
        """
        for name in self.texts_in(sql, schema):
            raise _refused(name, where, fix)

    def refuse_foreign_names(self, view: Name, sql: str, schema: str, where: str) -> None:
        """Refuse to store a view in another catalog if its text names relations outside of it.

        Other clients may have other names for these catalogs. Views in the profile's own one are accepted.

        :param schema: that of names without one.
        :raises ConfigError: names such a relation, or the part of the text that cannot be read.
        """
        if view.catalog.lower() == self._own.lower():
            return
        fix = f"make it a table; or remove the config database: a view in {self._own} may name each catalog"
        why = "other projects may have other names for these catalogs, and would read other tables"
        try:
            for one in _named(sql, Name(self._own, schema, "")):
                if one.catalog.lower() != view.catalog.lower():
                    raise ConfigError(
                        f"the view {view} would name {one}, which is in another catalog",
                        where=where,
                        why=why,
                        fix=fix,
                    )
        except CannotPlan as error:
            raise ConfigError(
                f"it is unknown which catalogs the text of the view {view} names",
                where=where,
                why=f"{why}; and this cannot be read: {error.reason.what}",
                fix=fix,
            ) from error

    def _view(self, name: Name) -> ViewState | None:
        try:
            reader = self._catalog.of(name)
        except ConfigError:
            return None  # a catalog that only Spark knows
        return reader.load_view(name.schema, name.identifier)

    def _check(self, name: Name, view: ViewState, seen: list[Name]) -> None:
        """Check what the text of a view names, and what the views among these name."""
        home = Name(view.catalog or name.catalog, view.namespace, name.identifier)
        try:
            unseen = next(filter(is_unseen, parse(view.sql).find_all(exp.Table)), None)
            if unseen is not None:
                what = f"it reads {unseen.sql(dialect='spark')}"
                raise CannotPlan("unknown-relation", what, "read a table")
            named = list(_named(view.sql, home))
        except CannotPlan as error:
            if not is_of_others(self._catalog, name):
                return
            raise ConfigError(
                f"the text of the view {name} cannot be read",
                where=name.dotted,
                why=f"it is in another catalog, and may use other names for relations than this profile: "
                f"{error.reason.what}",
                fix="read the tables that it reads",
            ) from error
        for one in named:
            require_own_names(self._catalog, name, one)
            inner = None if one in seen else self._view(one)
            if inner is None:
                continue
            seen.append(one)
            table = keyed_from_view(one, inner)
            if table is None:
                self._check(one, inner, seen)
            elif is_renamed(table, inner):
                raise _refused(one, name.dotted, f"read {one} with source() or ref(), not through {name}")


def _named(sql: str, home: Name) -> Iterator[Name]:
    tree = parse(sql)
    for written in named_relations(tree):
        # A name without a schema may be that of a temporary view.
        if "." in written or home.schema:
            yield full_name(written, home)


def _refused(name: Name, where: str, fix: str) -> ConfigError:
    return ConfigError(
        f"the view of the keyed table {name} has another name for its catalog",
        where=where,
        why=f"it was written where the catalog {name.catalog} has another name; here that name is unknown, "
        "or that of a different catalog, whose rows would be read",
        fix=fix,
    )
