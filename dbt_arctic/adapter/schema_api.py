"""Macro methods for schemas."""

from __future__ import annotations

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ProfileError


class SchemaApi(KeyedApi):
    """The methods of the adapter for schemas."""

    @available.parse(lambda *a, **k: None)
    def require_visible_schema(self, relation: ArcticRelation) -> None:
        """Refuse to write if the catalog that dbt-arctic reads lacks a schema that Spark has created.

        It is then another catalog than Spark's. Every table would be taken for missing, and be replaced.

        :raises ProfileError: always in that case. Nothing was written but the schema.
        """
        name, schema = relation.name_parts, relation.schema or ""
        with as_dbt_errors():
            found = self.catalog.of(name).list_schemas()
            if "." in schema or schema.lower() in {one.lower() for one in found}:
                return
            raise ProfileError(
                f"Spark has created the schema {name.catalog}.{schema}, and dbt-arctic does not find it.",
                where=f"the catalog {name.catalog} of the profile",
                why="Spark and dbt-arctic read different catalogs: a server, spark_conf or the environment "
                f"defines {name.catalog} differently from the profile. Its tables would seem to be missing.",
                fix="give the profile the server's settings of this catalog (type, uri, warehouse, region, "
                "name), or leave them out: dbt-arctic then reads the catalog with SQL",
            )


__all__ = ["SchemaApi"]
