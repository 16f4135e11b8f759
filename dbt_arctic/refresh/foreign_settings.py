"""Settings that would have no effect: misspelled ones, those of other adapters or materializations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import check_partition_field
from dbt_arctic.refresh.config import ONLY_KEYED, OWN_SETTINGS
from dbt_arctic.refresh.materializations import check_materialization, is_incremental

STRATEGIES = (
    "upsert",
    "auto",
    "history",
    "append",
    "microbatch",
    "merge",
    "delete+insert",
    "insert_overwrite",
)
"""The incremental strategies of this adapter."""

_PROPERTIES = "set Iceberg's table properties with tblproperties"
_LOCATION = "the catalog decides where tables are stored: set warehouse in the profile"
_LAYOUT = "sort rows within files with sort_by, or divide them with partition_by and buckets"
_LOADING = "configure Spark with spark_conf in the profile"
_VIEW = "each dbt run refreshes a model with materialized='materialized_view' from what changed"
_GRANTS = "grant access in the catalog or the store; no grants are written"
_EVERY_TIME = "each table is an Iceberg table, and its older versions are kept until dbt-arctic expire"
_CLUSTER = "run the model on another cluster with another target of the profile"


class _Group(NamedTuple):
    adapters: str
    settings: tuple[str, ...]
    instead: str


_IGNORED = (
    _Group(
        "dbt-spark and dbt-databricks",
        ("file_format",),
        "tables are Iceberg tables; tblproperties={'write.format.default': 'orc'} sets the format of files",
    ),
    _Group("dbt-spark and dbt-databricks", ("location_root", "include_full_name_in_path"), _LOCATION),
    _Group("dbt-spark", ("options",), _PROPERTIES),
    _Group("dbt-spark and dbt-databricks", ("clustered_by",), "use bucket_by with buckets on a keyed table"),
    _Group("dbt-databricks", ("liquid_clustered_by", "auto_liquid_cluster", "zorder"), _LAYOUT),
    _Group(
        "dbt-databricks",
        ("compression",),
        "set tblproperties={'write.parquet.compression-codec': 'zstd'}",
    ),
    _Group("dbt-databricks", ("databricks_tags",), _PROPERTIES),
    _Group("dbt-databricks", ("databricks_compute", "create_notebook", "job_cluster_config"), _CLUSTER),
    _Group("dbt-snowflake and dbt-bigquery", ("cluster_by",), _LAYOUT),
    _Group("dbt-snowflake", ("transient",), _EVERY_TIME),
    _Group("dbt-snowflake", ("snowflake_warehouse",), _CLUSTER),
    _Group("dbt-snowflake", ("query_tag",), "dbt's query_comment is part of each statement"),
    _Group("dbt-snowflake", ("copy_grants", "row_access_policy", "secure"), _GRANTS),
    _Group("dbt-snowflake", ("automatic_clustering",), "run dbt-arctic compact, which also sorts"),
    _Group("dbt-snowflake", ("refresh_mode", "initialize"), _VIEW),
    _Group("dbt-snowflake", ("external_volume", "base_location_subpath", "base_location_root"), _LOCATION),
    _Group("dbt-snowflake", ("tmp_relation_type", "table_tag"), "remove it"),
    _Group("dbt-bigquery", ("require_partition_filter", "labels", "resource_tags"), _PROPERTIES),
    _Group(
        "dbt-bigquery",
        ("partition_expiration_days", "hours_to_expiration"),
        "delete old rows with delete_when, or with dbt-arctic sql 'delete from ..'",
    ),
    _Group("dbt-bigquery", ("kms_key_name",), "configure encryption in the store"),
    _Group("dbt-bigquery", ("grant_access_to",), _GRANTS),
    _Group(
        "dbt-bigquery",
        ("enable_refresh", "refresh_interval_minutes", "max_staleness"),
        _VIEW,
    ),
    _Group("dbt-redshift", ("dist", "sort", "sort_type"), _LAYOUT),
    _Group("dbt-redshift", ("bind", "backup", "auto_refresh"), "remove it"),
    _Group("dbt-postgres", ("unlogged",), _LAYOUT),
    _Group("dbt-athena", ("s3_data_naming", "s3_data_dir", "external_location"), _LOCATION),
    _Group("dbt-athena", ("partitioned_by",), "use partition_by"),
    _Group("dbt-athena", ("bucketed_by", "bucket_count"), "use bucket_by and buckets on a keyed table"),
    _Group("dbt-athena", ("table_properties",), _PROPERTIES),
    _Group(
        "dbt-athena",
        ("write_compression",),
        "set tblproperties={'write.parquet.compression-codec': 'zstd'}",
    ),
    _Group("dbt-athena", ("lf_tags_config",), _GRANTS),
    _Group("dbt-glue", ("glue_version", "worker_type", "number_of_workers"), _LOADING),
)
"""Settings of other adapters that decide how a table is stored or refreshed, but not which rows it has."""

_OF_ROWS = (
    _Group(
        "dbt-databricks",
        (
            "matched_condition",
            "not_matched_condition",
            "not_matched_by_source_condition",
            "not_matched_by_source_action",
            "skip_matched_step",
            "skip_not_matched_step",
        ),
        "write the condition in the model's SQL; mark deletes with delete_when or a column _action",
    ),
    _Group("dbt-databricks", ("merge_with_schema_evolution",), "use on_schema_change"),
    _Group(
        "AUTO CDC and other products",
        ("apply_as_deletes", "apply_as_truncates", "delete_if"),
        "mark deletes with delete_when or a column _action",
    ),
    _Group("AUTO CDC", ("sequence_col",), "use sequence_by"),
    _Group("AUTO CDC", ("stored_as_scd_type",), "use incremental_strategy='history' for SCD type 2"),
    _Group(
        "dbt-athena",
        ("delete_condition", "update_condition", "insert_condition"),
        "write the condition in the model's SQL; mark deletes with delete_when",
    ),
    _Group(
        "dbt-bigquery",
        ("partitions",),
        "incremental_strategy='insert_overwrite' replaces the partitions of the batch",
    ),
)
"""Settings of other adapters that decide which rows a table has."""

SETTINGS_OF_OTHERS = frozenset(name for group in (*_IGNORED, *_OF_ROWS) for name in group.settings)
"""All known settings of other adapters. They are not misspellings of settings of this adapter."""

_DELTA = re.compile(r"delta\.|hoodie\.", re.IGNORECASE)


def reject_misspelled(model: str, settings: Sequence[str], known: Sequence[str]) -> None:
    """Refuse an unknown setting whose name resembles one of this adapter.

    Other unknown settings are left to dbt, which asks to move them under ``meta``.

    :raises ConfigError: names the setting that was probably meant.
    """
    for name in settings:
        if name in known or name in SETTINGS_OF_OTHERS:
            continue
        meant = difflib.get_close_matches(name, OWN_SETTINGS, n=1, cutoff=0.75)
        if meant:
            raise ConfigError(
                f"{name!r} is not a setting; did you mean {meant[0]!r}?",
                where=model,
                why="an unknown setting would be ignored silently",
                fix=f"write {meant[0]}, or move your own settings to meta",
            )


def reject_without_effect(
    model: str, config: Mapping[str, Any], has_macro: Callable[[str], bool] = lambda name: False
) -> None:
    """Refuse settings that would change the rows of the table if they had an effect.

    :param has_macro: whether the project has a macro of that name, which may define a strategy.
    :raises ConfigError: such a setting, an unknown strategy, or an unknown form of ``partition_by``.
    """
    for group in _OF_ROWS:
        for name in group.settings:
            if config.get(name):
                raise ConfigError(
                    f"{name} has no effect",
                    where=model,
                    why=f"it is a setting of {group.adapters} that decides which rows the table has",
                    fix=group.instead,
                )
    materialized = config.get("materialized")
    if materialized in ("table", "view", "ephemeral", "seed", "snapshot"):
        for name in ONLY_KEYED:
            if config.get(name):
                raise ConfigError(
                    f"{name} has no effect with materialized={materialized!r}",
                    where=model,
                    why="it applies only to keyed tables",
                    fix="remove it, or use materialized='incremental' with a unique_key",
                )
    if is_incremental(config):
        check_materialization(model, config)
        _check_strategy(model, config.get("incremental_strategy"), has_macro)
    _check_partition_by(model, config.get("partition_by"))


def settings_without_effect(model: str, config: Mapping[str, Any]) -> list[tuple[str, ConfigError]]:
    """The settings of other adapters that a model has, each with the text of a warning."""
    found = []
    for group in _IGNORED:
        for name in group.settings:
            value = config.get(name)
            if value and not (name == "file_format" and str(value).lower() == "iceberg"):
                found.append(
                    (
                        name,
                        ConfigError(
                            f"{name} has no effect",
                            where=model,
                            why=f"it is a setting of {group.adapters}",
                            fix=group.instead,
                        ),
                    )
                )
    properties = config.get("tblproperties")
    for name in properties if isinstance(properties, Mapping) else ():
        if _DELTA.match(str(name)):
            found.append(
                (
                    str(name),
                    ConfigError(
                        f"the table property {name} has no effect",
                        where=model,
                        why="it belongs to another table format",
                        fix="use a property of Iceberg, or remove it",
                    ),
                )
            )
    return found


def reject_materialization(model: str, materialized: str) -> None:
    """Refuse a materialization of other adapters.

    :raises ConfigError: always; names what to use.
    """
    raise ConfigError(
        f"materialized={materialized!r} does not exist here",
        where=model,
        why="tables are refreshed by dbt runs, not by a service in the background",
        fix="materialized='materialized_view' and a unique_key: a run computes only what changed, and the "
        "table equals its query",
    )


def _check_strategy(model: str, strategy: object, has_macro: Callable[[str], bool]) -> None:
    """Refuse an undefined strategy whose name resembles a defined one; dbt refuses others."""
    if not isinstance(strategy, str) or strategy in (*STRATEGIES, "default"):
        return
    macro = f"get_incremental_{strategy.replace('+', '_')}_sql"
    meant = difflib.get_close_matches(strategy.lower(), STRATEGIES, n=1)
    if not meant or has_macro(macro):
        return
    raise ConfigError(
        f"incremental_strategy is {strategy!r}",
        where=model,
        why=f"the strategies are: {', '.join(STRATEGIES)}; and the project has no macro {macro}",
        fix=f"did you mean {meant[0]!r}?",
    )


def _check_partition_by(model: str, value: object) -> None:
    if isinstance(value, Mapping):
        raise ConfigError(
            "partition_by is a mapping",
            where=model,
            why="this is the form of dbt-bigquery",
            fix=f"partition_by='{_transform_of_bigquery(value)}'",
        )
    fields = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    for field in fields:
        if isinstance(field, str):
            check_partition_field(model, field)


def _transform_of_bigquery(value: Mapping[str, Any]) -> str:
    """Iceberg's transform for a partition of dbt-bigquery: by a unit of time, or by ranges of numbers."""
    column, ranges = value.get("field", "ordered_at"), value.get("range")
    if isinstance(ranges, Mapping):
        return f"truncate({ranges.get('interval', 1000)}, {column})"
    return f"{value.get('granularity', 'day')}({column})"
