"""The settings of an incremental model on a plain table, checked before anything is written."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.errors import ConfigError, KeyColumnMissing, StatementError
from dbt_arctic.keyed.layout import same_fields
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.config import PARTIAL_SETTINGS, choose_strategy, refuse_both, writes_keyed
from dbt_arctic.refresh.schema_policy import parse_on_schema_change

SNAPSHOT = "snapshot"
"""In the place of a strategy: a snapshot, which is never rebuilt."""
_BY_KEY = ("merge", "delete+insert")
_USED_BY = {
    "incremental_predicates": _BY_KEY,
    "predicates": _BY_KEY,
    "merge_update_columns": ("merge",),
    "merge_exclude_columns": ("merge",),
}
"""The strategies that use each setting. A custom strategy of a project may use any."""
_BUILT_IN = ("append", "insert_overwrite", "microbatch", *_BY_KEY)


@dataclass(frozen=True)
class PlainConfig:
    """The settings of a plain incremental model.

    :param key: the columns by which rows are replaced.
    :param predicates: SQL conditions that restrict the rows that a statement may change. All must hold.
    :param predicates_setting: the setting that contains them.
    :param update: the columns that a MERGE changes.
    :param exclude: the columns that a MERGE leaves unchanged.
    :param partition_by: Iceberg transforms of columns.
    """

    model: str
    strategy: str
    key: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
    predicates_setting: str = "incremental_predicates"
    update: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()

    @property
    def named_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns that settings name, as pairs of setting and column."""
        named = {
            "unique_key": self.key if self.strategy in _BY_KEY else (),
            "merge_update_columns": self.update,
            "merge_exclude_columns": self.exclude,
        }
        return tuple((setting, column) for setting, columns in named.items() for column in columns)


def of_snapshot(model: str, config: Mapping[str, Any]) -> PlainConfig:
    """The settings of a snapshot that it shares with incremental models."""
    return PlainConfig(model, SNAPSHOT, partition_by=_listed(config.get("partition_by")))


def replaces_by_key(model: str, config: Mapping[str, Any]) -> bool:
    """Whether an incremental model replaces rows by key, so that writing a row again changes nothing."""
    return writes_keyed(model, config) or choose_strategy(model, config) in _BY_KEY


def parse_plain(model: str, strategy: str, config: Mapping[str, Any]) -> PlainConfig:
    """Read and check the settings of an incremental model on a plain table.

    :raises ConfigError: a setting has no effect on the strategy, is not possible, or contradicts another.
    """
    idle = [
        setting
        for setting, strategies in _USED_BY.items()
        if config.get(setting) and strategy in _BUILT_IN and strategy not in strategies
    ]
    if idle:
        raise ConfigError(
            f"{idle[0]} has no effect on the strategy {strategy!r}",
            where=model,
            why=f"only {' and '.join(_USED_BY[idle[0]])} use it",
            fix="remove it, or choose another incremental_strategy",
        )
    parse_on_schema_change(model, config)
    update, exclude = (_listed(config.get(setting)) for setting in PARTIAL_SETTINGS)
    refuse_both(model, *PARTIAL_SETTINGS, update, exclude)
    setting, predicates = _predicates(model, config)
    return PlainConfig(
        model=model,
        strategy=strategy,
        key=_listed(config.get("unique_key")),
        predicates=predicates,
        predicates_setting=setting,
        update=update,
        exclude=exclude,
        partition_by=_listed(config.get("partition_by")),
    )


def _predicates(model: str, config: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """The predicates, and the setting that contains them. A user may use either name, as in dbt."""
    usual, short = "incremental_predicates", "predicates"
    value, other = _listed(config.get(usual)), _listed(config.get(short))
    if value != other:
        refuse_both(model, usual, short, value, other)
    return (usual, value) if value else (short, other)


def check_named_columns(config: PlainConfig, columns: Sequence[str]) -> None:
    """Check that the model has the columns that its settings name.

    :raises ConfigError: a setting names a column that the model lacks, or no column is left that changes.
    :raises KeyColumnMissing: the key names a column that the model lacks.
    """
    known = {column.lower(): column for column in columns}
    for setting, named in config.named_columns:
        if named.lower() in known:
            continue
        meant = difflib.get_close_matches(named.lower(), known, n=1)
        kind = KeyColumnMissing if setting == "unique_key" else ConfigError
        raise kind(
            f"{setting} contains {named}, which the model does not return",
            where=config.model,
            why=f"its columns are: {', '.join(columns)}",
            fix=f"did you mean {known[meant[0]]}?" if meant else f"select the column, or correct {setting}",
        )
    if known.keys() <= {column.lower() for column in config.exclude}:
        raise ConfigError(
            "merge_exclude_columns contains every column",
            where=config.model,
            why="MERGE has no column to change in the rows that exist",
            fix="leave unique_key out of merge_exclude_columns: then only new rows are written",
        )


def check_predicates(
    config: PlainConfig,
    columns: Mapping[str, str],
    this: Name,
    analyse: Callable[[str], object],
) -> None:
    """Check the predicates in the scope of a later run's statement, so that the first run finds a mistake.

    A custom strategy may use them in any other scope.

    :param columns: the columns of the model, and their types.
    :param this: the table of the model. A predicate may read it, and it does not exist yet.
    :param analyse: analyses a query of Spark, without a job.
    :raises ConfigError: Spark rejects a predicate.
    """
    if config.strategy not in _BY_KEY:
        return
    row = ", ".join(f"CAST(NULL AS {type_}) AS {quote(name)}" for name, type_ in columns.items())
    read = f"(SELECT {row}) AS DBT_INTERNAL_DEST"
    if config.strategy == "merge":
        read += f" CROSS JOIN (SELECT {row}) AS DBT_INTERNAL_SOURCE"
    for predicate in config.predicates:
        try:
            analyse(f"SELECT 1 AS checked FROM {read} WHERE (\n{predicate}\n)")
        except StatementError as error:
            reason = error.why or error.what
            if "TABLE_OR_VIEW_NOT_FOUND" in reason and quote(this.identifier) in reason:
                continue
            raise ConfigError(
                f"{config.predicates_setting} contains a condition that Spark rejects: {predicate.strip()}",
                where=config.model,
                why=reason,
                fix=_scope(config.strategy),
            ) from error


def _scope(strategy: str) -> str:
    if strategy == "merge":
        return "columns need a prefix: DBT_INTERNAL_DEST. for the table, DBT_INTERNAL_SOURCE. for the batch"
    return "only columns of the table can be used, with or without DBT_INTERNAL_DEST before them"


def check_partitions(config: PlainConfig, stored: Iterable[str] | None) -> str:
    """Compare ``partition_by`` with the partitioning of the table.

    :param stored: the partitioning in the catalog; ``None`` if unknown.
    :returns: a warning, or an empty string. The setting has no effect on an existing table.
    :raises ConfigError: the strategy replaces partitions, and would replace other ones than configured.
    """
    if stored is None:
        return ""
    wanted, there = set(same_fields(config.partition_by)), set(same_fields(tuple(stored)))
    if {field.lower() for field in wanted} == {field.lower() for field in there}:
        return ""
    described = f"the table is partitioned by {_shown(there)}, but partition_by is {_shown(wanted)}"
    if config.strategy == "insert_overwrite":
        raise ConfigError(
            described,
            where=config.model,
            why="insert_overwrite replaces the partitions of the table, which are not those of the model: "
            "rows of other partitions would be lost",
            fix=f"set partition_by back, or rebuild: dbt run --full-refresh --select {config.model}",
        )
    if config.strategy == SNAPSHOT:
        effect = "on a snapshot that exists. ALTER TABLE with ADD or DROP PARTITION FIELD changes the table"
    else:
        effect = "until the table is rebuilt with --full-refresh"
    return f"{config.model}: {described}. It has no effect {effect}."


def refuse_old_files(config: PlainConfig, table: Name) -> None:
    """Refuse to replace partitions of a table of which a file has an older partitioning.

    Iceberg replaces the files of a partition of the current partitioning only.

    :raises ConfigError: always.
    """
    raise ConfigError(
        "files of the table have an older partitioning, from before its partitioning was changed",
        where=config.model,
        why="insert_overwrite replaces partitions of the current one: the rows in these files would stay, "
        "next to the new rows",
        fix=f"rewrite the files: dbt-arctic compact {table.schema}.{table.identifier} --kind merge; "
        f"or rebuild: dbt run --full-refresh --select {config.model}",
    )


def _listed(value: Any) -> tuple[str, ...]:
    return ((value,) if value.strip() else ()) if isinstance(value, str) else tuple(value or ())


def _shown(fields: set[str]) -> str:
    return ", ".join(sorted(fields)) or "nothing"
