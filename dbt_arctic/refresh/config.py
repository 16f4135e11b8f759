"""Reads, checks and completes the config of a keyed model. Chooses the strategy, and keyed or plain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import Check
from dbt_arctic.keyed.table import DEFAULT_TOMBSTONE_RETENTION_S
from dbt_arctic.refresh.auto_config import Sampling, parse_auto
from dbt_arctic.refresh.listed_columns import listed_columns
from dbt_arctic.refresh.materializations import configured_strategy, strategy_of
from dbt_arctic.refresh.schema_policy import OnSchemaChange, parse_on_schema_change
from dbt_arctic.refresh.table_properties import require_keyed_format
from dbt_arctic.store.duration import parse_duration

DEFAULT_LEASE_TIMEOUT_S = 600

OWN_SETTINGS = (
    "buckets",
    "bucket_by",
    "sort_by",
    "delete_when",
    "deduplicate_by",
    "sequence_by",
    "tombstone_retention",
    "lease_timeout",
    "partition_by",
    "tblproperties",
    "unique_key",
    "incremental_strategy",
    "on_schema_change",
    "merge_update_columns",
    "merge_exclude_columns",
    "overwrite",
    "auto",
    "full_refresh_above",
    "before_images",
    "ignore_cols",
    "compaction",
    "indexes",
    "sql_extensions",
    "target_lag",
    "schedule",
)
"""The settings of this adapter, in addition to those of dbt."""

KEYED_STRATEGIES = ("upsert", "microbatch", "insert_overwrite", "auto", "history")
"""With a ``unique_key``, these strategies create a keyed table."""

_DIRECTION = re.compile(
    r"(?<=\S)\s+(?:(asc|desc)(?:\s+nulls\s+(?:first|last))?|nulls\s+(?:first|last))\s*$", re.IGNORECASE
)
ONLY_KEYED = ("delete_when", "deduplicate_by", "sequence_by", "tombstone_retention", "overwrite")
"""Settings that only a keyed table can have. Layout settings are excluded: a project may set `+buckets`
for all models.
"""

NOT_AUTOMATIC = ("delete_when", "deduplicate_by", "sequence_by")
"""Settings that choose between rows of one key or mark a row as a delete. In an automatic model, its SQL
does that.
"""

ONLY_AUTOMATIC = ("auto", "full_refresh_above", "before_images")
"""Settings of the refresh of an automatic model."""

PLAIN_SETTINGS = ("incremental_predicates", "predicates")
"""Settings that restrict the rows that a statement on a plain table may change."""

PARTIAL_SETTINGS = ("merge_update_columns", "merge_exclude_columns")
"""dbt's settings for the columns that change in existing rows."""

Overwrite = Literal["partitions", "table"]


@dataclass(frozen=True)
class KeyedConfig:
    """The config of a model that writes a keyed table."""

    model: str
    unique_key: tuple[str, ...]
    buckets: int | None = None
    bucket_by: str | None = None
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    deduplicate_by: tuple[str, ...] = ()
    delete_when: str | None = None
    sequence_by: str | None = None
    tombstone_retention_s: int = DEFAULT_TOMBSTONE_RETENTION_S
    lease_timeout_s: int = DEFAULT_LEASE_TIMEOUT_S
    on_schema_change: OnSchemaChange = "ignore"
    tblproperties: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    """The CHECK constraints of the model's contract."""
    required: tuple[str, ...] = ()
    """The NOT NULL columns of the model's contract."""
    merge_update_columns: tuple[str, ...] = ()
    merge_exclude_columns: tuple[str, ...] = ()
    is_automatic: bool = False
    """Whether the table is the result of the model's SQL, as with the strategy ``auto``."""
    auto: Literal["strict"] | None = None
    """Whether an automatic model refuses a full refresh after its first build."""
    accept: frozenset[str] = frozenset()
    """The deviations from a full refresh that are accepted for an automatic model."""
    ties: Literal["by_key"] | None = None
    """How an automatic model orders rows that an order of its SQL leaves equal."""
    verify: Sampling | None = None
    """The keys that are recomputed after an incremental refresh; ``None`` for none."""
    declared_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The keys of tables that an automatic model reads, as the project declares them: see ``auto.inputs``."""
    full_refresh_above: float = 0.3
    """The share of rows or keys above which an automatic model is refreshed in full."""
    before_images: bool | None = None
    """Whether an automatic model stores before-images of changed rows; ``None`` if not configured."""
    overwrite: Overwrite | None = None
    """The rows that a batch replaces, for the strategy ``insert_overwrite``."""
    small_data: bool = False
    """Whether tables have few rows, by the profile's ``small_data``: a new table has one bucket, and an
    automatic model reads all rows where finding the changed ones takes several statements."""

    @property
    def is_partial(self) -> bool:
        """Whether an upsert changes only some columns of an existing row."""
        return bool(self.merge_update_columns or self.merge_exclude_columns)


def _without_key(model: str, strategy: str) -> ConfigError:
    without = "incremental_strategy='append' for a table without a key"
    if strategy == "auto":
        without = "use materialized='table' if no columns are unique in the result of the query"
    return ConfigError(
        f"the strategy {strategy!r} needs a unique_key",
        where=model,
        why="it replaces rows by key",
        fix=f"set unique_key, or {without}",
    )


def choose_strategy(model: str, config: Mapping[str, Any]) -> str:
    """Choose the strategy.

    The default is ``upsert`` with a key and ``append`` without one, unless the config names another.

    :raises ConfigError: the strategy needs a key and there is none.
    """
    strategy, has_key = strategy_of(config), bool(config.get("unique_key"))
    if strategy in ("upsert", "merge", "delete+insert", "auto", "history") and not has_key:
        raise _without_key(model, strategy)
    keyed = has_key and strategy in KEYED_STRATEGIES
    only_plain = [name for name in PLAIN_SETTINGS if config.get(name)]
    if keyed and only_plain:
        raise ConfigError(
            f"{only_plain[0]} has no effect on a keyed table",
            where=model,
            why="it restricts a MERGE or DELETE; an upsert only appends and does not read the table",
            fix="remove it, or use incremental_strategy='merge' on a plain table",
        )
    partial = [name for name in PARTIAL_SETTINGS if config.get(name)]
    if keyed and partial and strategy != "upsert":
        raise ConfigError(
            f"{partial[0]} has no effect with the strategy {strategy!r}",
            where=model,
            why="it replaces rows and writes all of their columns",
            fix="remove it, or use incremental_strategy='upsert'",
        )
    determined = [name for name in NOT_AUTOMATIC if config.get(name)]
    if strategy == "auto" and determined:
        raise ConfigError(
            f"{determined[0]} has no effect with the strategy 'auto'",
            where=model,
            why="the table is exactly the result of the model's SQL",
            fix="express it in the SQL, or use incremental_strategy='upsert'",
        )
    only_auto = [name for name in ONLY_AUTOMATIC if config.get(name)]
    if strategy != "auto" and only_auto:
        raise ConfigError(
            f"{only_auto[0]} has no effect with the strategy {strategy!r}",
            where=model,
            why="it configures the refresh of automatic models",
            fix="remove it, or use incremental_strategy='auto'",
        )
    if config.get("overwrite") and strategy != "insert_overwrite":
        raise ConfigError(
            f"overwrite has no effect with the strategy {strategy!r}",
            where=model,
            why="it sets what a batch of the strategy 'insert_overwrite' replaces",
            fix="remove it, or use incremental_strategy='insert_overwrite' with a unique_key",
        )
    only_keyed = [name for name in ONLY_KEYED if config.get(name)]
    if not keyed and only_keyed:
        raise ConfigError(
            f"{only_keyed[0]} has no effect with the strategy {strategy!r}",
            where=model,
            why="it applies only to keyed tables",
            fix="remove it, or use incremental_strategy='upsert' with a unique_key",
        )
    return str(strategy)


def writes_keyed(model: str, config: Mapping[str, Any]) -> bool:
    """Whether an incremental model writes a keyed table."""
    return choose_strategy(model, config) in KEYED_STRATEGIES and bool(config.get("unique_key"))


def parse_config(model: str, config: Mapping[str, Any], *, small_data: bool = False) -> KeyedConfig:
    """Read the config of a keyed model.

    :param config: dbt's config of the node, as a mapping.
    :param small_data: the profile's ``small_data``.
    :raises ConfigError: a setting has an invalid value.
    """
    on_schema_change = parse_on_schema_change(model, config)
    key = listed_columns(model, "unique_key", config.get("unique_key"))
    if not key:
        strategy = configured_strategy(config)
        raise _without_key(model, "upsert" if strategy == "default" else strategy)
    buckets = None if config.get("buckets") == "auto" else config.get("buckets")
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int)):
        raise ConfigError(
            f"buckets is {buckets!r}, not a whole number",
            where=model,
            fix="for instance: buckets=16, or 'auto'",
        )
    bucket_by = config.get("bucket_by")
    if bucket_by is not None and not isinstance(bucket_by, str):
        raise ConfigError(
            f"bucket_by is {bucket_by!r}", where=model, fix="set it to one column of unique_key"
        )
    delete_when = config.get("delete_when")
    if delete_when is not None and not isinstance(delete_when, str):
        raise ConfigError(
            f"delete_when is {delete_when!r}",
            where=model,
            fix="""a SQL condition, as in delete_when="status = 'gone'" """,
        )
    sequence_by = config.get("sequence_by")
    if sequence_by is not None and not isinstance(sequence_by, str):
        raise ConfigError(
            f"sequence_by is {sequence_by!r}", where=model, fix="set it to one column of the model"
        )
    strategy = choose_strategy(model, config)
    if sequence_by and strategy in ("microbatch", "insert_overwrite"):
        raise ConfigError(
            f"sequence_by cannot be used with the strategy {strategy!r}",
            where=model,
            why="a batch replaces existing rows, even newer ones",
            fix="remove one of the two",
        )
    if config.get("tombstone_retention") is not None and not sequence_by:
        raise ConfigError(
            "tombstone_retention has no effect without sequence_by",
            where=model,
            why="without sequence_by there are no late rows",
            fix="remove it, or set sequence_by",
        )
    properties = config.get("tblproperties") or {}
    if not isinstance(properties, Mapping):
        raise ConfigError(
            "tblproperties is not a mapping", where=model, fix="tblproperties={'name': 'value'}"
        )
    own = [name for name in properties if str(name).startswith("arctic.")]
    if own:
        raise ConfigError(
            f"tblproperties sets {', '.join(own)}",
            where=model,
            why="properties that start with 'arctic.' describe the keyed table itself",
            fix="use another prefix",
        )
    require_keyed_format(model, properties)
    updated, excluded = _partial_columns(model, config)
    auto = parse_auto(model, config.get("auto"))
    return KeyedConfig(
        model=model,
        unique_key=key,
        buckets=buckets,
        bucket_by=bucket_by,
        partition_by=listed_columns(model, "partition_by", config.get("partition_by")),
        sort_by=listed_columns(model, "sort_by", config.get("sort_by")),
        deduplicate_by=_ascending(
            model, listed_columns(model, "deduplicate_by", config.get("deduplicate_by"))
        ),
        delete_when=delete_when,
        sequence_by=sequence_by,
        is_automatic=strategy == "auto",
        auto=auto.strict,
        accept=auto.accept,
        ties=auto.ties,
        verify=auto.verify,
        full_refresh_above=_share(model, config.get("full_refresh_above")),
        before_images=_flag(model, "before_images", config.get("before_images")),
        tombstone_retention_s=parse_duration(
            model, "tombstone_retention", config.get("tombstone_retention"), DEFAULT_TOMBSTONE_RETENTION_S
        ),
        lease_timeout_s=parse_duration(
            model, "lease_timeout", config.get("lease_timeout"), DEFAULT_LEASE_TIMEOUT_S
        ),
        on_schema_change=on_schema_change,
        tblproperties={str(name): str(value) for name, value in properties.items()},
        merge_update_columns=updated,
        merge_exclude_columns=excluded,
        overwrite=_overwrite(model, config) if strategy == "insert_overwrite" else None,
        small_data=small_data,
    )


def _partial_columns(model: str, config: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    updated, excluded = (listed_columns(model, setting, config.get(setting)) for setting in PARTIAL_SETTINGS)
    refuse_both(model, *PARTIAL_SETTINGS, updated, excluded)
    return updated, excluded


def refuse_both(model: str, one: str, other: str, value: Any, other_value: Any) -> None:
    """Refuse two settings of which only one can be in effect.

    :raises ConfigError: both have a value.
    """
    if value and other_value:
        raise ConfigError(
            f"both {one} and {other} are set",
            where=model,
            why="only one of them can be in effect",
            fix="remove one of the two",
        )


def _overwrite(model: str, config: Mapping[str, Any]) -> Overwrite:
    """Replace the partitions that the batch has rows for.

    Without partitions, the table is replaced, as in dbt-spark.
    """
    chosen: Overwrite = config.get("overwrite") or ("partitions" if config.get("partition_by") else "table")
    if chosen not in get_args(Overwrite):
        raise ConfigError(
            f"overwrite is {chosen!r}", where=model, fix=f"use one of: {', '.join(get_args(Overwrite))}"
        )
    if chosen == "partitions" and not config.get("partition_by"):
        raise ConfigError(
            "overwrite is 'partitions', but the model has none",
            where=model,
            fix="set partition_by, or overwrite='table'",
        )
    return chosen


def match_columns(wanted: Sequence[str], existing: Sequence[str]) -> tuple[str, ...]:
    """Column names of the config in the spelling of the model's columns.

    Spark's names are case-insensitive.
    """
    by_lower = {name.lower(): name for name in existing}
    return tuple(by_lower.get(name.lower(), name) for name in wanted)


def _ascending(model: str, expressions: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse the direction of an ``ORDER BY`` after an expression: the greatest value always wins."""
    for expression in expressions:
        match = _DIRECTION.search(expression)
        if match is None:
            continue
        column = expression[: match.start()].strip()
        least = match[1] is not None and match[1].lower() == "desc"
        raise ConfigError(
            f"deduplicate_by is {expression!r}",
            where=model,
            why="an expression has no direction: the row with the greatest value wins, and NULLs lose",
            fix=f"deduplicate_by='{column}'"
            + (f" keeps the greatest value; for the least one of a number: '-({column})'" if least else ""),
        )
    return expressions


def _share(model: str, value: object) -> float:
    if value is None:
        return KeyedConfig.full_refresh_above
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(
            f"full_refresh_above is {value!r}", where=model, fix="a share of the rows, for instance 0.3"
        )
    return float(value)


def _flag(model: str, name: str, value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r}", where=model, fix="true or false")
    return value
