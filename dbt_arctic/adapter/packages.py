"""Support for packages, in particular dbt-utils: dispatch of their macros, and listing relations by pattern.

dbt searches a package's macro in the project and in the package, but not in an adapter, unless ``dispatch``
in dbt_project.yml is configured. The macros themselves are in ``macros/packages``.
"""

from __future__ import annotations

import re
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation

from dbt_arctic.adapter.catalog_names import is_known
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.sql_extensions import rewrite_when_compiled
from dbt_arctic.adapter.target_type import name_spark_in_packages
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError

SERVED = ("dbt_utils",)
"""Packages with macros that fail on Spark or lose rows, for which the adapter has its own implementation."""

INTERNAL = "dbt"
"""In a search order: dbt's own macros and those of the adapter."""

_TOKEN = re.compile(r"\\([%_\\])|%|_|[^%_]", re.DOTALL)


class PackagesApi(KeyedApi):
    """The methods of the adapter for packages."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        serve_packages(config)
        name_spark_in_packages(config)
        rewrite_when_compiled()

    @available.parse(lambda *a, **k: [])
    def relations_by_pattern(
        self, schema_pattern: str, table_pattern: str, exclude: str = "", database: str | None = None
    ) -> list[BaseRelation]:
        """The stored relations that match case-insensitive LIKE patterns."""
        names = self.config.credentials.catalog_names
        listed = database or names[0]
        with as_dbt_errors():
            if not is_known(database, names):
                raise ConfigError(
                    f"relations of the catalog {database} cannot be listed",
                    where=f"the pattern {schema_pattern}.{table_pattern}",
                    why=f"the profile has: {', '.join(names)}; and no other catalog can be listed",
                    fix="add the catalog in profiles.yml under catalogs; or refer to them with source()",
                )
        schema_matches, matches, excluded = map(like, (schema_pattern, table_pattern, exclude))
        found = [
            relation
            for schema in filter(schema_matches.fullmatch, self.list_schemas(listed))
            for relation in self.list_relations_without_caching(
                self.Relation.create(database=listed, schema=schema).without_identifier()
            )
            if (name := relation.identifier or "")
            and matches.fullmatch(name)
            and not excluded.fullmatch(name)
        ]
        return sorted(found, key=str)


def serve_packages(config: Any) -> None:
    """Give the adapter's macros precedence over those of a package.

    A ``dispatch`` of the project for the package is left as it is.

    The entry is what a project could write into dbt_project.yml, so that its own macros come first.
    """
    if not hasattr(config, "dispatch"):  # `dbt debug` passes only the profile, without project and macros
        return
    configured = {entry["macro_namespace"] for entry in config.dispatch}
    for package in SERVED:
        if package not in configured:
            order = [config.project_name, INTERNAL, package]
            config.dispatch.append({"macro_namespace": package, "search_order": order})


def like(pattern: str) -> re.Pattern[str]:
    r"""A pattern of ``ILIKE`` with the escape ``\`` as a regular expression for whole names.

    >>> bool(like("data_%").fullmatch("Data_orders")), bool(like(r"data\_%").fullmatch("data1"))
    (True, False)
    """
    parts = []
    for token in _TOKEN.finditer(pattern):
        if token.group(1):
            parts.append(re.escape(token.group(1)))
        else:
            parts.append({"%": ".*", "_": "."}.get(token.group(), re.escape(token.group())))
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
