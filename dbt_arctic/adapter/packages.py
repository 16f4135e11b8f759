"""What packages need of an adapter: to be asked, and to list by a pattern, dbt-utils above all; to see Spark.

dbt looks for a package's macro in the project and in the package, and never in an adapter, unless
``dispatch`` in dbt_project.yml says so. The macros themselves are in ``macros/packages``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dbt.adapters.base.meta import AdapterMeta, available
from dbt.adapters.base.relation import BaseRelation

from dbt_arctic.adapter.databases import is_of
from dbt_arctic.adapter.sql_extensions import rewrite_when_compiled
from dbt_arctic.adapter.target_type import name_spark_in_packages
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError

if TYPE_CHECKING:
    from dbt_arctic.adapter.keyed_api import KeyedApi as _Base
else:
    _Base = object

SERVED = ("dbt_utils",)
"""Packages of which some macros fail on Spark, or lose rows, and are answered by ours."""

INTERNAL = "dbt"
"""In a search order: dbt's own macros and the adapter's."""

_TOKEN = re.compile(r"\\([%_\\])|%|_|[^%_]", re.DOTALL)


class PackagesApi(_Base, metaclass=AdapterMeta):
    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        serve_packages(config)
        name_spark_in_packages(config)
        rewrite_when_compiled()

    @available.parse(lambda *a, **k: [])
    def relations_by_pattern(
        self, schema_pattern: str, table_pattern: str, exclude: str = "", database: str | None = None
    ) -> list[BaseRelation]:
        """Relations as they are stored now, by patterns of LIKE in which case does not count."""
        ours = self.config.credentials.database
        with as_dbt_errors():
            if not is_of(database, ours):
                raise ConfigError(
                    f"relations of the catalog {database} cannot be listed",
                    where=f"the pattern {schema_pattern}.{table_pattern}",
                    why=f"the profile's catalog is {ours}, and no other can be listed",
                    fix="refer to the relations with source(), or list them with a target of that catalog",
                )
        schema_matches, matches, excluded = map(like, (schema_pattern, table_pattern, exclude))
        found = [
            relation
            for schema in filter(schema_matches.fullmatch, self.list_schemas(ours))
            for relation in self.list_relations_without_caching(
                self.Relation.create(database=ours, schema=schema).without_identifier()
            )
            if (name := relation.identifier or "")
            and matches.fullmatch(name)
            and not excluded.fullmatch(name)
        ]
        return sorted(found, key=str)


def serve_packages(config: Any) -> None:
    """Let our macros come before those of a package, unless the project has a ``dispatch`` for it.

    The entry is what a project could write into dbt_project.yml, so that the macros of the project go first.
    """
    if not hasattr(config, "dispatch"):  # `dbt debug` gives the profile alone: no project, no macros
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
