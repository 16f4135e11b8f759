"""``dbt-arctic check``: runs a project on a copy of its sources, and checks the results.

The copy is changed at random.

After each round, dbt runs as usual, and each automatic model is compared row by row with the result of its
whole query. All copies are in separate schemas that are dropped at the end.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.adapter.catalog_names import is_known, is_of, is_schema_of
from dbt_arctic.adapter.changed_copies import ChangedCopy, change, copied, loaded, pulled, referring_to
from dbt_arctic.adapter.check_invocations import AUTOMATIC, CheckInvocations, failures, selection_of
from dbt_arctic.adapter.check_report import CheckReport, Failure, ModelRound, Nondeterministic
from dbt_arctic.adapter.comparing import compare
from dbt_arctic.adapter.declared_tests import Declared, declared_tests
from dbt_arctic.adapter.model_lags import shown_name
from dbt_arctic.adapter.other_schema import OtherSchemas, in_other_schemas
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.random_changes import deleted_rows_table, held_rows_table
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.errors import ArcticError, ConfigError
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.materializations import is_automatic

WRITTEN_KEYS = (
    *("unique_id", "database", "schema", "alias"),
    *("config.materialized", "config.incremental_strategy"),
)
"""The keys of nodes that are needed, before anything runs, to determine what a check would write."""


@dataclass(frozen=True)
class Checks:
    """The options of a check.

    :param select: dbt's selection. Upstreams of the selection are built, too.
    :param automatic: selections of models that are treated as automatic regardless of their config.
    :param keep: whether to keep the copy.
    """

    select: Sequence[str] = ()
    automatic: Sequence[str] = ()
    rounds: int = 5
    seed: int = 1
    keep: bool = False


def check_project(
    session: TargetSession, target: Target, checks: Checks, report_progress: Callable[[str], None]
) -> CheckReport:
    """Build a copy of the selection, change its sources at random, refresh, and compare with full refreshes.

    :raises ConfigError: no model is automatic, the project would write outside of the copy, or dbt failed
        before it ran any node.
    """
    schema = f"{target.credentials.schema}_check_{secrets.token_hex(3)}"
    catalog = target.credentials.database
    found = CheckReport()
    with in_other_schemas(OtherSchemas(schema)):
        dbt = CheckInvocations(target, checks.automatic)
        automatic = () if checks.select else dbt.automatic()
        selection = selection_of(checks.select, checks.automatic, automatic)
        written = dbt.list(["model", "seed", "snapshot"], WRITTEN_KEYS, selection)
        found.not_compared.update(dbt.stay)
        _refuse_nothing_to_compare(target, checks, written, dbt.stay)
        _refuse_writes_outside(target, Name(catalog, schema, ""), written)
    catalogs = {catalog, *(node["database"] for node in written)}.intersection(
        target.credentials.catalog_names
    )
    with _dropped_at_the_end(session, Name(catalog, schema, ""), catalogs, checks.keep):
        with in_other_schemas(OtherSchemas(schema)):
            needed = {node["unique_id"] for node in dbt.list(["source"], ["unique_id"], selection)}
            manifest = dbt.parse()
        sources = {
            unique_id: Name(catalog, node.schema, node.identifier)
            for unique_id, node in manifest.sources.items()
            if unique_id in needed and is_of(node.database, catalog)
        }
        schemas = copy_schemas(sources.values(), target.credentials.schema, schema, written)
        place = OtherSchemas(
            schema,
            {(one.schema.lower(), one.identifier.lower()): to for one, to in schemas.items()},
            catalog,
        )
        churn = _Churn(
            session, declared_tests(manifest.nodes), pulled(manifest.nodes.values(), manifest.macros)
        )
        for to in sorted({*schemas.values()} - {schema}):
            _create(session, Name(catalog, to, ""))
        for unique_id, name in sources.items():
            report_progress(f"copying {name.dotted}")
            churn.copy(unique_id, name, Name(catalog, schemas[name], name.identifier), checks.seed, sources)
        with in_other_schemas(place):
            for number in range(checks.rounds + 1):
                if number:
                    churn.change(checks.seed + 1000 * number)
                report_progress(f"round {number}")
                # From now on, seeds are changed like sources, and snapshots take part in every round.
                left_out = ["test", "unit_test", *(["seed"] if number else [])]
                results = dbt.build(left_out, selection)
                failed = failures(results)
                for name_, why in failed.items():
                    found.failures.setdefault(name_, Failure(number, why))
                built = [one for one in results if shown_name(one.node) not in failed]
                if not number:
                    churn.load(one.node for one in built if one.node.resource_type == "seed")
                _compare(session, target, built, number, found)
            found.rounds = checks.rounds
    return found


class _Churn:
    """The tables that change, by the id of their source or seed."""

    def __init__(self, session: TargetSession, declared: Mapping[str, Declared], logs: set[str]) -> None:
        self._operator = session
        self._declared = declared
        self._logs = logs
        self._tables: dict[str, ChangedCopy] = {}

    def copy(self, unique_id: str, source: Name, copy: Name, seed: int, sources: Mapping[str, Name]) -> None:
        originals = {one: (name,) for one, name in sources.items()}
        referring = referring_to(self._operator, unique_id, self._declared, originals)
        declared = self._declared_tests(unique_id)
        self._tables[unique_id] = copied(self._operator, source, copy, seed, declared, referring)

    def load(self, seeds: Iterable[Any]) -> None:
        for node in seeds:
            name = Name(node.database, node.schema, node.alias)
            self._tables[node.unique_id] = loaded(self._operator, name, self._declared_tests(node.unique_id))

    def change(self, seed: int) -> None:
        rows = {
            unique_id: (one.name, held_rows_table(one.name), deleted_rows_table(one.name))
            for unique_id, one in self._tables.items()
        }
        for unique_id, one in self._tables.items():
            referring = referring_to(self._operator, unique_id, self._declared, rows)
            # A table that does not exist has no references.
            change(self._operator, one, seed, unique_id in self._logs, referring or ())

    def _declared_tests(self, unique_id: str) -> Declared:
        declared = self._declared.get(unique_id, Declared())
        referred = [
            (reference.parent_column,)
            for other in self._declared.values()
            for reference in other.references
            if reference.parent == unique_id
        ]
        return replace(declared, keys=[*declared.keys, *referred])


def copy_schemas(
    sources: Iterable[Name], own: str, copy: str, written: Sequence[Mapping[str, Any]]
) -> dict[Name, str]:
    """The schema of each source's copy. A copy has the identifier of its source.

    A schema of the target is replaced in the same way as for the project's models, because a model may look
    up a table there by name. If a model is written to that name, or for other schemas, a separate schema is
    used.

    :param own: the schema of the target.
    :param copy: the schema that replaces it.
    :param written: the nodes that the project writes on the copy.
    """
    taken = {(str(node["schema"]).lower(), str(node["alias"]).lower()) for node in written}
    found = {}
    for source in sources:
        schema = f"{copy}{source.schema[len(own) :]}" if is_schema_of(source.schema, own) else ""
        if not schema or (schema.lower(), source.identifier.lower()) in taken:
            schema = f"{copy}_source_{source.schema}"
        found[source] = schema
    return found


def _refuse_nothing_to_compare(
    target: Target, checks: Checks, written: Sequence[Mapping[str, Any]], stay: Mapping[str, str]
) -> None:
    """Refuse a check without automatic models, because it would never find a difference.

    :param stay: models that were selected to be automatic but cannot be, and the reason.
    """
    configs = ({key.removeprefix("config."): value for key, value in node.items()} for node in written)
    if any(is_automatic(config) for config in configs):
        return
    selected = " ".join(checks.select)
    cannot = "".join(f"; {name} cannot be made automatic: {why}" for name, why in sorted(stay.items()))
    raise ConfigError(
        f"no automatic model is selected by {selected}" if selected else "no model is automatic",
        where=str(target.project_root),
        why="a check compares automatic models with their full query, and there is nothing to compare"
        + cannot,
        fix="set incremental_strategy='auto' and a unique_key in the config of an incremental model; to "
        "check other models as if they were automatic, use --automatic MODEL; to list automatic models: "
        f"dbt ls --select {' '.join(AUTOMATIC)}",
    )


def _refuse_writes_outside(target: Target, copy: Name, written: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to write outside of the copy.

    A project may name schemas freely, but a check must not write to its tables.
    """
    for node in written:
        if node["config.materialized"] == "ephemeral":
            continue
        place = Name(node["database"], node["schema"], node["alias"])
        known = is_known(place.catalog, target.credentials.catalog_names)
        if not (known and is_schema_of(place.schema, copy.schema)):
            raise ConfigError(
                f"{node['unique_id']} would be written to {place.dotted}",
                where=str(target.project_root),
                why="a check writes to schemas whose name begins with target.schema only; a macro "
                "generate_schema_name, or a target_schema, puts this one in_other_schemas",
                fix="let generate_schema_name begin with target.schema, or check models that do without it: "
                "dbt-arctic check MODEL",
            )


def _compare(
    session: TargetSession, target: Target, built: Sequence[Any], number: int, found: CheckReport
) -> None:
    for entry in built:
        node = entry.node
        if node.resource_type != "model" or not is_automatic(node.config.to_dict()):
            continue
        model = shown_name(node)
        try:
            compared = compare(session, target.credentials, node)
        except ArcticError as error:  # an error of this model; the others are still compared
            found.failures.setdefault(model, Failure(number, f"it could not be compared: {error}"))
            continue
        if compared.not_compared:
            found.not_compared[model] = compared.not_compared
            continue
        found.looked_at.add(model)
        if compared.differing or compared.rows:
            found.models.add(model)
        strategy, reason = (entry.adapter_response.get(part) for part in ("strategy", "reason"))
        if number:
            found.refreshes[model][f"full ({reason})" if strategy == "full" else str(strategy)] += 1
        if compared.differing:
            found.differences[ModelRound(model, number)] = compared.differing
        if compared.open:
            before = found.nondeterministic.get(model)
            most = compared.open if before is None else max(before.rows, compared.open)
            found.nondeterministic[model] = Nondeterministic(most, compared.why)


@contextmanager
def _dropped_at_the_end(
    session: TargetSession, name: Name, catalogs: Iterable[str], keep: bool
) -> Iterator[None]:
    """Create the schema of a copy, and drop it and those derived from it, in all catalogs, at the end."""
    _create(session, name)
    try:
        yield
    finally:
        for catalog in () if keep else catalogs:
            place = Name(catalog, "", "")
            for existing in session.catalog.of(place).list_schemas():
                if is_schema_of(existing, name.schema):
                    _drop(session, Name(catalog, existing, ""))


def _create(session: TargetSession, schema: Name) -> None:
    sql = f"{quote(schema.catalog)}.{quote(schema.schema)}"
    session.context.run("create_schema", f"CREATE SCHEMA IF NOT EXISTS {sql}")


def _drop(session: TargetSession, schema: Name) -> None:
    entries = sorted(
        session.catalog.of(schema).list_names(schema.schema), key=lambda entry: entry.kind != "view"
    )
    for entry in entries:
        kind, purge = ("VIEW", "") if entry.kind == "view" else ("TABLE", " PURGE")
        session.context.run("drop", f"DROP {kind} {schema.sibling(entry.name).sql}{purge}")
    session.context.run("drop", f"DROP SCHEMA {quote(schema.catalog)}.{quote(schema.schema)}")
