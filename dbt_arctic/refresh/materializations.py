"""The materializations that are incremental models by another name, and the mark of a materialized view.

``materialized_view`` is an automatic model, and ``streaming_table`` is an incremental model that pulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.create import alter_description
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import is_keyed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import keyed_from_view

MATERIALIZED_VIEW = "materialized_view"
STREAMING_TABLE = "streaming_table"
INCREMENTAL = ("incremental", MATERIALIZED_VIEW, STREAMING_TABLE)
"""The materializations that run as incremental models."""

PROPERTY_MATERIALIZED_VIEW = "arctic.materialized-view"
"""Property of the view of a keyed table: whether its model is a materialized view. Empty if it is not any
more."""

Action = Literal["create", "refresh", "alter", "replace", "continue", "fail"]
"""What a run does with a materialized view."""


@dataclass(frozen=True)
class ConfigurationChange:
    """The settings of a materialized view that differ from the stored table.

    :param altered: the settings that are changed in place.
    :param replaced: the settings that need a rebuild.
    """

    altered: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.altered or self.replaced)


def is_incremental(config: Mapping[str, Any]) -> bool:
    """Whether a model is incremental, under one of its names."""
    return config.get("materialized") in INCREMENTAL


def configured_strategy(config: Mapping[str, Any]) -> str:
    """The strategy that a config sets; ``default`` if it sets none."""
    strategy = config.get("incremental_strategy") or "default"
    return "auto" if strategy == "default" and config.get("materialized") == MATERIALIZED_VIEW else strategy


def strategy_of(config: Mapping[str, Any]) -> str:
    """The strategy of an incremental model; by default ``upsert`` with a key and ``append`` without one."""
    strategy = configured_strategy(config)
    if strategy == "default":
        return "upsert" if config.get("unique_key") else "append"
    return strategy


def takes_part(config: Mapping[str, Any]) -> bool:
    """Whether a model that pulls may write a part of the rows (``--empty``, ``--sample``) to its table.

    The next whole run then rebuilds the table, which ``full_refresh: false`` forbids. Until then, only rows
    of the keys that were written may be wrong: an append would store rows twice, and an overwrite would
    replace other rows of the same partition, or all rows.
    """
    by_key = bool(config.get("unique_key")) and strategy_of(config) not in ("append", "insert_overwrite")
    return by_key and config.get("full_refresh") is not False


def is_automatic(config: Mapping[str, Any]) -> bool:
    """Whether the config declares a model as automatic. The config is validated when it is read."""
    return is_incremental(config) and configured_strategy(config) == "auto"


def check_materialization(model: str, config: Mapping[str, Any]) -> None:
    """Check that the settings fit the meaning of ``materialized_view`` and ``streaming_table``.

    :raises ConfigError: a strategy with another meaning, or a materialized view without a key.
    """
    materialized, strategy = config.get("materialized"), configured_strategy(config)
    if materialized == MATERIALIZED_VIEW:
        if strategy != "auto":
            raise ConfigError(
                f"incremental_strategy is {strategy!r} in a materialized view",
                where=model,
                why="a materialized view is exactly the result of its query",
                fix="remove incremental_strategy or set it to 'auto'; or use materialized='incremental'",
            )
        if not config.get("unique_key"):
            raise ConfigError(
                "a materialized view needs a unique_key",
                where=model,
                why="a refresh writes only the rows that changed, and finds them by their key",
                fix="set unique_key to the columns that are unique in the result of the query, for instance "
                "those of its GROUP BY; or use materialized='table'",
            )
    if materialized == STREAMING_TABLE and strategy in ("auto", "microbatch"):
        raise ConfigError(
            f"incremental_strategy is {strategy!r} in a streaming table",
            where=model,
            why="a streaming table pulls the changes of its upstreams",
            fix="use materialized='materialized_view'"
            if strategy == "auto"
            else "use materialized='incremental'",
        )


def require_pull(model: str, pulls: bool) -> None:
    """Refuse a streaming table that pulls nothing, because each run would read all rows.

    :raises ConfigError: its SQL does not call ``incremental_pull()``.
    """
    if not pulls:
        raise ConfigError(
            "a streaming table pulls nothing",
            where=model,
            why="without incremental_pull() each run would read all rows of its upstreams",
            fix="select from {{ incremental_pull(ref('..')) }}, or from a source in its place; or use "
            "materialized='incremental'",
        )


def is_materialized_view(properties: Mapping[str, str]) -> bool:
    """Whether a view with these properties shows a materialized view."""
    return is_keyed(properties) and properties.get(PROPERTY_MATERIALIZED_VIEW) == "true"


def mark(context: Context, name: Name, materialized: str) -> None:
    """Record in the view of a keyed table whether it is a materialized view, if that has changed.

    Readers do not depend on it. If a run ends before this statement, the next one makes up for it.
    """
    view = context.catalog.of(name).load_view(name.schema, name.identifier)
    wanted = materialized == MATERIALIZED_VIEW
    if view is None or not is_keyed(view.properties) or is_materialized_view(view.properties) == wanted:
        return
    table = keyed_from_view(name, view)
    assert table is not None, "its properties are those of a keyed table"
    value = literal("true" if wanted else "")
    property_ = literal(PROPERTY_MATERIALIZED_VIEW)
    context.run("mark_view", f"{alter_description(table)} SET TBLPROPERTIES ({property_} = {value})")


def choose_action(
    kind: str | None, change: ConfigurationChange, on_change: str, *, full_refresh: bool, may_rebuild: bool
) -> Action:
    """What a run does with a materialized view.

    :param kind: the kind of the stored relation; ``None`` if there is none.
    :param change: the settings that differ from a stored keyed table.
    :param on_change: dbt's ``on_configuration_change``.
    :param may_rebuild: whether the model's ``full_refresh`` allows a rebuild. If not, the refresh reports the
        settings that need one.
    """
    if kind is None:
        return "create"
    if full_refresh or kind not in ("keyed", "clone"):
        return "replace"
    if not change:
        return "refresh"
    if on_change == "continue":
        return "continue"
    if on_change == "fail":
        return "fail"
    if change.replaced:
        return "replace" if may_rebuild else "refresh"
    return "alter"
