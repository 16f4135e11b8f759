"""Three-part names of dbt: ``catalog.schema.identifier``, always quoted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter
from dbt.adapters.contracts.relation import Policy, RelationType

from dbt_arctic.adapter import other_schema
from dbt_arctic.adapter.catalog_names import refuse_reserved_name
from dbt_arctic.adapter.external_sources import declared_source, remember, require_meta
from dbt_arctic.adapter.pins import text_of
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.scheduling.settings import SETTINGS, check_values


def check_when_parsed(node: Any) -> None:
    """Refuse wrong settings that no run reads, and reserved names.

    dbt creates the relation of each model while it parses. The other settings of the model may not be
    complete then, nor its alias. dbt creates the relation again at the end, to compare the names of all.
    """
    config = getattr(node, "config", None)
    values = {one: config.get(one) for one in SETTINGS} if hasattr(config, "get") and config else {}
    if any(value is not None for value in values.values()):
        with as_dbt_errors():
            check_values(str(getattr(node, "name", "")), values)
    with as_dbt_errors():
        require_meta(node)
        if _is_written(node):
            names = ("name", "alias", "original_file_path")
            refuse_reserved_name({one: getattr(node, one, None) for one in names})


def _is_written(node: Any) -> bool:
    """Whether a node of this project has its own relation, with its final name."""
    is_ours = getattr(node, "resource_type", None) in _WRITTEN and hasattr(node, "original_file_path")
    return is_ours and bool(getattr(node, "relation_name", None))


_WRITTEN = frozenset({"model", "seed", "snapshot"})
_STORED = frozenset({RelationType.Table, RelationType.View, RelationType.MaterializedView})


@dataclass
class ArcticQuotePolicy(Policy):
    """Quote all parts of a name."""

    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass
class ArcticIncludePolicy(Policy):
    """Include all parts of a name."""

    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class ArcticRelation(BaseRelation):
    """A table, a view, or a keyed table.

    ``is_keyed``: stored as a view over base and change table. In dbt, a keyed table is a table, because
    ``is_incremental()`` and others depend on it. Only a materialized view has a type of its own.
    ``is_clone``: a view over another table, which becomes a separate table with its first write. In dbt, it
    is a table for the same reason.
    ``read_as``: its text in queries, if an invocation reads everything at one version, or if its name would
    not do in a profile with several catalogs.
    ``branch``: the Iceberg branch that is written to, instead of main.
    ``is_new``: nothing had its name when the run began. So it is created and not replaced: if it exists by
    then, it is that of another run.
    ``external``: how a source whose rows are outside the catalog is declared (``declared_source``).
    """

    quote_policy: Policy = field(default_factory=lambda: ArcticQuotePolicy())
    include_policy: Policy = field(default_factory=lambda: ArcticIncludePolicy())
    quote_character: str = "`"
    is_keyed: bool = False
    is_clone: bool = False
    branch: str | None = None
    is_new: bool = False
    read_as: str | None = None
    external: Mapping[str, Any] | None = None
    require_alias: bool = False
    renameable_relations: Any = field(
        default_factory=lambda: frozenset(
            {RelationType.Table, RelationType.View, RelationType.MaterializedView}
        )
    )
    replaceable_relations: Any = field(
        default_factory=lambda: frozenset(
            {RelationType.Table, RelationType.View, RelationType.MaterializedView}
        )
    )

    def quoted(self, identifier: str) -> str:
        """Quote an identifier."""
        return quote(identifier)

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> ArcticRelation:
        """Like dbt's implementation.

        Only ``ref()`` and ``source()`` set the number of rows to read (``limit``).
        """
        check_when_parsed(relation_config)
        made = super().create_from(quoting, relation_config, **kwargs)
        place = other_schema.current()
        if place is not None and getattr(relation_config, "resource_type", None) == "source":
            schema = place.schema_of(made.database, made.schema or "", made.identifier or "")
            made = made.replace(path=made.path.replace(schema=schema))
        external = declared_source(relation_config)
        if external is not None:
            remember(made.render(), external)
            return made.replace(external=external)
        if "limit" not in kwargs:
            return made
        with as_dbt_errors():
            text = text_of(made.name_parts)
        return made if text is None else made.replace(read_as=text)

    def render(self) -> str:
        """The text of the relation in SQL.

        Without a schema, it is a temporary view, which has no catalog. Packages make one from a relation for
        dbt-spark, whose relations never have a catalog.
        """
        if self.read_as is not None:
            return self.read_as
        if self.identifier and not self.schema and self.include_policy.database:
            return self.include(database=False).render()
        rendered = super().render()
        return f"{rendered}.{quote('branch_' + self.branch)}" if self.branch else rendered

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """Like dbt's implementation, which quotes a column in a way that is a string in Spark.

        The column is compared as an instant, whatever its type. Text would be compared with the text of the
        interval's ends: ``'2024-01-02'`` is less than ``'2024-01-02 00:00:00+00:00'``. For the other types,
        Spark removes the cast, so that partitions and files are still skipped.
        """
        name = event_time_filter.field_name
        if len(name) > 1 and name[0] == name[-1] == '"':
            name = quote(name[1:-1])
        ends = ((">=", event_time_filter.start), ("<", event_time_filter.end))
        return " and ".join(
            f"cast({name} as timestamp) {sign} timestamp{literal(str(at))}" for sign, at in ends if at
        )

    @property
    def name_parts(self) -> Name:
        """The name in the form of the storage layer."""
        return Name(self.database or "", self.schema or "", self.identifier or "")

    def on_branch(self, branch: str | None) -> ArcticRelation:
        """The same table with writes to a branch."""
        return self.replace(branch=branch)

    def as_new(self, is_new: bool) -> ArcticRelation:
        """The same table, which is created only if it does not exist."""
        return self.replace(is_new=is_new)
