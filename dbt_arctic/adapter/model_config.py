"""The settings of a model that dbt accepts without a warning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt.adapters.base.impl import AdapterConfig


@dataclass
class ArcticConfig(AdapterConfig):
    """The settings of a model in addition to those of all dbt adapters."""

    buckets: int | str | None = None
    bucket_by: str | None = None
    sort_by: str | list[str] | None = None
    partition_by: str | list[str] | None = None
    delete_when: str | None = None
    deduplicate_by: str | list[str] | None = None
    sequence_by: str | None = None
    tombstone_retention: str | int | None = None
    lease_timeout: str | int | None = None
    tblproperties: dict[str, str] | None = None
    incremental_predicates: list[str] | None = None
    predicates: list[str] | None = None
    merge_update_columns: list[str] | None = None
    merge_exclude_columns: list[str] | None = None
    overwrite: str | None = None
    auto: str | dict[str, Any] | None = None
    before_images: bool | None = None
    sql_extensions: str | list[str] | None = None
    full_refresh_above: float | None = None
    check_cols: str | list[str] | None = None
    ignore_cols: str | list[str] | None = None
    updated_at: str | None = None
    hard_deletes: str | None = None
    dbt_valid_to_current: str | None = None
    snapshot_meta_column_names: dict[str, str] | None = None
    compaction: dict[str, Any] | None = None
    target_lag: str | int | None = None
    schedule: dict[str, Any] | None = None
    submission_method: str | None = None


__all__ = ["ArcticConfig"]
