"""``dbt-arctic check``: a project on a copy of its sources, changed at random, compared with its own SQL.

After each round dbt runs as always; then each automatic model is compared, row for row, with its whole
query. What is made for it lives in a schema of its own, and is dropped at the end.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.adapter.advice import is_automatic
from dbt_arctic.adapter.churning import Churned, change, copied, keys_told, loaded, pulled
from dbt_arctic.adapter.comparing import compare
from dbt_arctic.adapter.databases import is_of, is_schema_of
from dbt_arctic.adapter.elsewhere import Elsewhere, elsewhere
from dbt_arctic.adapter.operator import Operator
from dbt_arctic.adapter.project import Target
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, quote

AUTOMATIC = "config.incremental_strategy:auto"
"""What dbt calls the models in question."""
WRITTEN_KEYS = (
    *("unique_id", "database", "schema", "alias"),
    *("config.materialized", "config.incremental_strategy"),
)
"""What has to be known, before anything runs, of all that a check would write."""


@dataclass
class Checked:
    """What a check found.

    :param refreshes: how often each model was refreshed in which way, after its build.
    """

    models: set[str] = field(default_factory=set)
    refreshes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    rounds: int = 0
    differences: dict[tuple[str, int], int] = field(default_factory=dict)
    """Rows that differ, by model and round."""
    undetermined: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Rows that differed at most, of models of which two runs of the query may differ; in what, and why."""
    not_compared: dict[str, str] = field(default_factory=dict)
    """Models that could not be compared, and why. They are not among ``models``."""

    @property
    def incremental(self) -> set[str]:
        """Models that were refreshed incrementally at least once."""
        return {model for model, ways in self.refreshes.items() if ways["incremental"]}

    @property
    def last_line(self) -> str:
        return (
            f"check: {len(self.models)} models, {len(self.incremental)} incremental, {self.rounds} rounds, "
            f"{sum(self.differences.values())} differences"
        )


def check_project(
    operator: Operator,
    target: Target,
    select: Sequence[str],
    rounds: int,
    seed: int,
    tell: Callable[[str], None],
    keep: bool = False,
) -> Checked:
    """:param select: as in dbt; what the selection reads is built too.
    :raises ConfigError: no model is automatic, something would be written outside of the copy, or dbt
        failed on it.
    """
    schema = f"{target.credentials.schema}_check_{secrets.token_hex(3)}"
    catalog = target.credentials.database
    selection = ["--select", *(f"+{part}" for part in select or (AUTOMATIC,))]
    found = Checked()
    with elsewhere(Elsewhere(schema)):
        written = _list(target, ["model", "seed", "snapshot"], WRITTEN_KEYS, selection)
        _refuse_nothing_to_compare(target, select, written)
        _refuse_writes_outside(target, Name(catalog, schema, ""), written)
    with _schema(operator, Name(catalog, schema, ""), keep):
        needed = {node["unique_id"] for node in _list(target, ["source"], ["unique_id"], selection)}
        manifest = _dbt(target, "parse").result
        copies = {
            (node.schema.lower(), node.identifier.lower()): (node, f"source_{place}_{node.identifier}")
            for place, node in enumerate(manifest.sources.values())
            if node.unique_id in needed and is_of(node.database, catalog)
        }
        place = Elsewhere(schema, {key: table for key, (_, table) in copies.items()})
        keys = keys_told(manifest.nodes.values())
        logs = pulled(manifest.nodes.values(), manifest.macros)
        churned: list[tuple[Churned, bool]] = []
        for node, table in copies.values():
            name = Name(catalog, node.schema, node.identifier)
            tell(f"copying {name.dotted}")
            copy = Name(catalog, schema, table)
            made = copied(operator, name, copy, seed, keys.get(node.unique_id, ()))
            churned.append((made, node.unique_id in logs))
        with elsewhere(place):
            for number in range(rounds + 1):
                for one, only_new in churned if number else ():
                    change(operator, one, seed + 1000 * number, only_new)
                tell(f"round {number}")
                # Seeds are changed like sources from now on, and snapshots take part in every round.
                left_out = ["test", "unit_test", *(["seed"] if number else [])]
                built = _dbt(target, "build", "--exclude-resource-type", *left_out, *selection).result
                if not number:
                    seeds = [one.node for one in built.results if one.node.resource_type == "seed"]
                    for node in seeds:
                        name = Name(catalog, node.schema, node.alias)
                        made = loaded(operator, name, keys.get(node.unique_id, ()))
                        churned.append((made, node.unique_id in logs))
                _compare(operator, target, built, number, found)
            found.rounds = rounds
    return found


def _refuse_nothing_to_compare(
    target: Target, select: Sequence[str], written: Sequence[Mapping[str, Any]]
) -> None:
    """Without an automatic model a check would find no difference, whatever is wrong."""
    configs = ({key.removeprefix("config."): value for key, value in node.items()} for node in written)
    if any(is_automatic(config) for config in configs):
        return
    raise ConfigError(
        f"no automatic model is selected by {' '.join(select)}" if select else "no model is automatic",
        where=str(target.project_root),
        why="a check compares automatic models with their whole query, and would compare nothing",
        fix="set incremental_strategy='auto' and a unique_key in the config of an incremental model, or see "
        f"which ones are: dbt ls --select {AUTOMATIC}",
    )


def _refuse_writes_outside(target: Target, copy: Name, written: Sequence[Mapping[str, Any]]) -> None:
    """A project may name schemas as it likes: a check must not write to its tables, and change its seeds."""
    for node in written:
        if node["config.materialized"] == "ephemeral":
            continue
        place = Name(node["database"], node["schema"], node["alias"])
        if not (is_of(place.catalog, copy.catalog) and is_schema_of(place.schema, copy.schema)):
            raise ConfigError(
                f"{node['unique_id']} would be written to {place.dotted}",
                where=str(target.project_root),
                why="a check writes to schemas whose name begins with target.schema only; a macro "
                "generate_schema_name, or a target_schema, puts this one elsewhere",
                fix="let generate_schema_name begin with target.schema, or check models that do without it: "
                "dbt-arctic check MODEL",
            )


def _list(
    target: Target, types: Sequence[str], keys: Sequence[str], selection: Sequence[str]
) -> list[dict[str, Any]]:
    """What dbt selects: those keys of each node."""
    chosen = [part for kind in types for part in ("--resource-type", kind)]
    # What it lists would be printed in the middle of what the check tells.
    quiet = ["--log-level", "none", "--output", "json", "--output-keys", *keys]
    return [json.loads(line) for line in _dbt(target, "ls", *chosen, *quiet, *selection).result]


def _compare(operator: Operator, target: Target, built: Any, number: int, found: Checked) -> None:
    for entry in built.results:
        node = entry.node
        if node.resource_type != "model" or not is_automatic(node.config.to_dict()):
            continue
        compared = compare(operator, target.credentials, node)
        if compared.not_compared:
            found.not_compared[node.name] = compared.not_compared
            continue
        found.models.add(node.name)
        strategy, reason = (entry.adapter_response.get(part) for part in ("strategy", "reason"))
        if number:
            found.refreshes[node.name][f"full ({reason})" if strategy == "full" else str(strategy)] += 1
        if compared.differing:
            found.differences[(node.name, number)] = compared.differing
        if compared.open:
            most, _ = found.undetermined.get(node.name, (0, ""))
            found.undetermined[node.name] = (max(most, compared.open), compared.why)


@contextmanager
def _schema(operator: Operator, name: Name, keep: bool) -> Iterator[None]:
    schema = f"{quote(name.catalog)}.{quote(name.schema)}"
    operator.edge.run("create_schema", f"CREATE SCHEMA {schema}")
    try:
        yield
    finally:
        if not keep:
            for existing in operator.catalog.list_schemas():
                if is_schema_of(existing, name.schema):
                    _drop(operator, Name(name.catalog, existing, ""))


def _drop(operator: Operator, schema: Name) -> None:
    entries = sorted(operator.catalog.list_names(schema.schema), key=lambda entry: entry.kind != "view")
    for entry in entries:
        kind, purge = ("VIEW", "") if entry.kind == "view" else ("TABLE", " PURGE")
        operator.edge.run("drop", f"DROP {kind} {schema.sibling(entry.name).sql}{purge}")
    operator.edge.run("drop", f"DROP SCHEMA {quote(schema.catalog)}.{quote(schema.schema)}")


def _dbt(target: Target, *arguments: str) -> Any:
    places = ["--project-dir", str(target.project_root), "--target", target.name, "--quiet"]
    # The project's own artifacts tell of its last run, and of its own schemas.
    places += ["--target-path", str(target.artifacts / "check")]
    if target.profiles_dir is not None:
        places += ["--profiles-dir", str(target.profiles_dir)]
    try:
        outcome = dbtRunner().invoke([*arguments, *places])
    finally:
        reset_adapters()  # type: ignore[no-untyped-call]
    if not outcome.success:
        raise ConfigError(
            f"dbt {arguments[0]} failed on the copy",
            where=str(target.project_root),
            why=str(outcome.exception or "dbt has said why"),
            fix="--keep leaves the copy for a look",
        )
    return outcome
