"""Settings of this adapter and of dbt that have no effect on a model as it is configured.

They change no rows, so they are warnings. A setting without effect that would change rows is an error, which
``config``, ``plain_config`` and ``foreign_settings`` raise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any, NamedTuple

from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import KEYED_STRATEGIES
from dbt_arctic.refresh.materializations import is_incremental, strategy_of


class Kind(Enum):
    """What a model becomes."""

    KEYED = "in a keyed table"
    PLAIN = "without a keyed table"
    TABLE = "with materialized='table'"
    SEED = "in a seed"
    SNAPSHOT = "in a snapshot"
    VIEW = "with materialized='view'"
    EPHEMERAL = "with materialized='ephemeral'"


class _Rule(NamedTuple):
    settings: tuple[str, ...]
    kinds: frozenset[Kind]
    """Where the settings have an effect."""
    why: str
    fix: str


_INCREMENTAL = frozenset({Kind.KEYED, Kind.PLAIN})
_STORED = frozenset(Kind) - {Kind.VIEW, Kind.EPHEMERAL}
_ONLY_MICROBATCH = ("batch_size", "begin")

_RULES = (
    _Rule(
        ("buckets", "bucket_by", "sort_by", "lease_timeout", "indexes"),
        frozenset({Kind.KEYED}),
        "only keyed tables have it",
        "remove it, or use materialized='incremental' with a unique_key",
    ),
    _Rule(
        ("unique_key",),
        _INCREMENTAL | {Kind.SNAPSHOT},
        "each run rebuilds it, and nothing finds rows by key",
        "remove it; to declare a key of the rows, use meta: {arctic: {unique_key: ..}} or a test; to update "
        "the table by key, use materialized='incremental'",
    ),
    _Rule(
        (
            "incremental_strategy",
            "incremental_predicates",
            "predicates",
            "merge_update_columns",
            "merge_exclude_columns",
            "on_schema_change",
            "auto",
            "full_refresh_above",
            "before_images",
            *_ONLY_MICROBATCH,
        ),
        _INCREMENTAL,
        "it configures the runs of incremental models",
        "remove it, or use materialized='incremental'",
    ),
    _Rule(
        ("partition_by", "tblproperties", "compaction"),
        _STORED,
        "it describes how a table is stored, and nothing is stored",
        "remove it, or use materialized='table'",
    ),
)


def kind_of(config: Mapping[str, Any]) -> Kind | None:
    """What a model becomes; ``None`` for a materialization that the project defines."""
    if is_incremental(config):
        keyed = bool(config.get("unique_key")) and strategy_of(config) in KEYED_STRATEGIES
        return Kind.KEYED if keyed else Kind.PLAIN
    named = {
        "table": Kind.TABLE,
        "seed": Kind.SEED,
        "snapshot": Kind.SNAPSHOT,
        "view": Kind.VIEW,
        "ephemeral": Kind.EPHEMERAL,
    }
    return named.get(str(config.get("materialized")))


def settings_for_many(tree: object) -> frozenset[str]:
    """The names in a tree of settings of ``dbt_project.yml``, which sets them for whole folders.

    >>> sorted(settings_for_many({"shop": {"+buckets": 4, "marts": {"unique_key": "id"}}}))
    ['buckets', 'marts', 'shop', 'unique_key']
    """
    if not isinstance(tree, Mapping):
        return frozenset()
    inner = (settings_for_many(value) for value in tree.values())
    return frozenset(str(name).removeprefix("+") for name in tree).union(*inner)


def ineffective_settings(
    model: str, config: Mapping[str, Any], for_many: Collection[str] = ()
) -> list[tuple[str, ConfigError]]:
    """The settings without effect, each with the text of a warning.

    :param for_many: names of settings that ``dbt_project.yml`` sets for many models at once. They may be
        meant for some of the models only.
    """
    kind = kind_of(config)
    if kind is None:
        return []
    found = [
        (name, _problem(model, name, kind.value, rule.why, rule.fix))
        for rule in _RULES
        if kind not in rule.kinds
        for name in rule.settings
    ]
    if kind in _INCREMENTAL:
        found += _without_effect_on_strategy(model, strategy_of(config))
    return [(name, problem) for name, problem in found if _is_set(name, config) and name not in for_many]


def _without_effect_on_strategy(model: str, strategy: str) -> list[tuple[str, ConfigError]]:
    on, found = f"with the strategy {strategy!r}", []
    if strategy == "append":
        why, fix = "rows are added, and not found by key", "remove it, or use incremental_strategy='upsert'"
        found.append(("unique_key", _problem(model, "unique_key", on, why, fix)))
    if strategy != "microbatch":
        why, fix = "a run is not divided into batches", "remove it, or use incremental_strategy='microbatch'"
        found += [(name, _problem(model, name, on, why, fix)) for name in _ONLY_MICROBATCH]
    return found


def _is_set(name: str, config: Mapping[str, Any]) -> bool:
    value = config.get(name)
    # dbt's default of on_schema_change, which every config has.
    return bool(value) and not (name == "on_schema_change" and value == "ignore")


def _problem(model: str, name: str, on: str, why: str, fix: str) -> ConfigError:
    return ConfigError(f"{name} has no effect {on}", where=model, why=why, fix=fix)


__all__ = ["Kind", "ineffective_settings", "kind_of", "settings_for_many"]
