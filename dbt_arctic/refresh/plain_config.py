"""The settings of an incremental model on a plain table, checked before anything is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.errors import ConfigError, KeyColumnMissing
from dbt_arctic.keyed.layout import same_fields

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
    :param update: the columns that a MERGE changes.
    :param exclude: the columns that a MERGE leaves unchanged.
    :param partition_by: Iceberg transforms of columns.
    """

    model: str
    strategy: str
    key: tuple[str, ...] = ()
    predicates: tuple[str, ...] = ()
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


def parse_plain(model: str, strategy: str, config: Mapping[str, Any]) -> PlainConfig:
    """Read and check the settings of an incremental model on a plain table.

    :raises ConfigError: a setting has no effect on the strategy.
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
    return PlainConfig(
        model=model,
        strategy=strategy,
        key=_listed(config.get("unique_key")),
        predicates=_listed(config.get("predicates")) or _listed(config.get("incremental_predicates")),
        update=_listed(config.get("merge_update_columns")),
        exclude=_listed(config.get("merge_exclude_columns")),
        partition_by=_listed(config.get("partition_by")),
    )


def check_named_columns(config: PlainConfig, columns: Sequence[str]) -> None:
    """Check that the model has the columns that its settings name.

    :raises ConfigError: a setting names a column that the model lacks.
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
    return f"{config.model}: {described}. It has no effect until the table is rebuilt with --full-refresh."


def _listed(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _shown(fields: set[str]) -> str:
    return ", ".join(sorted(fields)) or "nothing"
