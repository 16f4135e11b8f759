"""The settings of the strategy ``history``. Resolves them to columns of the model."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.history import ADDED_BY_SOURCES, PROPERTY_SETTINGS, History, MetaColumns
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import UNAVAILABLE
from dbt_arctic.refresh.config import KeyedConfig, match_columns

ONLY_HISTORY = (
    "check_cols",
    "ignore_cols",
    "hard_deletes",
    "dbt_valid_to_current",
    "snapshot_meta_column_names",
)
"""The settings of a history. All but ``ignore_cols`` are those of dbt's snapshots."""

_OWN = "_arctic_"
_COLUMN_SETTINGS = {
    "check_cols": "the columns whose changes begin an interval",
    "ignore_cols": "the columns whose changes do not",
}


@dataclass(frozen=True)
class HistoryConfig:
    """The settings of a history, as they are configured.

    :param check_cols: the tracked columns; empty for all that are not ignored.
    """

    check_cols: tuple[str, ...] = ()
    ignore_cols: tuple[str, ...] = ()
    updated_at: str | None = None
    records_deletes: bool = False
    meta: MetaColumns = field(default_factory=MetaColumns)
    open_until: str = "NULL"


def check_history(model: str, config: Mapping[str, Any], strategy: str) -> None:
    """Check the settings of a history, or that a model with another strategy has none.

    :raises ConfigError: a setting is missing, has an invalid value or has no effect.
    """
    if strategy == "history":
        parse_history(model, config)
        return
    idle = [setting for setting in ONLY_HISTORY if config.get(setting)]
    if idle:
        raise ConfigError(
            f"{idle[0]} has no effect with the strategy {strategy!r}",
            where=model,
            why="it is a setting of dbt's snapshots and of the strategy 'history'",
            fix="remove it, or set incremental_strategy='history'",
        )


def parse_history(model: str, config: Mapping[str, Any]) -> HistoryConfig:
    """Read the settings of a model with the strategy ``history``.

    :raises ConfigError: a setting is missing, has an invalid value or has no effect.
    """
    if not config.get("sequence_by"):
        raise ConfigError(
            "the strategy 'history' needs sequence_by",
            where=model,
            why="it decides where an event belongs in the history of its key, whenever the event arrives",
            fix="set sequence_by to the column that orders the events, for instance _source_sequence or "
            "changed_at",
        )
    on_schema_change = config.get("on_schema_change") or "ignore"
    if on_schema_change not in ("ignore", "fail"):
        raise ConfigError(
            f"on_schema_change is {on_schema_change!r} with the strategy 'history'",
            where=model,
            why="it is unknown which value a new column had in the intervals that are stored",
            fix="set it to 'ignore' or 'fail'; to add a column, compute the history again from its events: "
            f"dbt run --full-refresh --select {model}",
        )
    return HistoryConfig(
        *_tracked(model, config),
        updated_at=_text(model, config, "updated_at", "a column"),
        records_deletes=_records_deletes(model, config.get("hard_deletes")),
        meta=_meta(model, config.get("snapshot_meta_column_names")),
        open_until=_text(model, config, "dbt_valid_to_current", "a SQL expression") or "NULL",
    )


def _tracked(model: str, config: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for setting in _COLUMN_SETTINGS:
        value = config.get(setting)
        is_all = setting == "check_cols" and isinstance(value, str) and value.lower() == "all"
        names = [value] if isinstance(value, str) else list(value or [])
        if any(not isinstance(name, str) or not name.strip() for name in names):
            raise ConfigError(f"{setting} is {value!r}", where=model, fix="give a list of columns")
        found[setting] = () if is_all else tuple(names)
    if all(found.values()):
        raise ConfigError(
            "both check_cols and ignore_cols are set",
            where=model,
            why="each of them sets which columns begin an interval",
            fix="remove one of the two",
        )
    return found["check_cols"], found["ignore_cols"]


def _records_deletes(model: str, value: object) -> bool:
    if value not in (None, "invalidate", "new_record"):
        raise ConfigError(
            f"hard_deletes is {value!r} with the strategy 'history'",
            where=model,
            why="a history is what happened, deletes included",
            fix="use 'invalidate', which closes the interval, or 'new_record', which also adds a row; "
            "to leave deletes out, filter them out in the model",
        )
    return value == "new_record"


def _text(model: str, config: Mapping[str, Any], setting: str, what: str) -> str | None:
    value = config.get(setting)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ConfigError(f"{setting} is {value!r}", where=model, fix=f"give {what}")
    return value


def _meta(model: str, value: object) -> MetaColumns:
    known = {f"dbt_{one.name}": one.name for one in fields(MetaColumns)}
    if value is None:
        return MetaColumns()
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value.values()):
        raise ConfigError(
            f"snapshot_meta_column_names is {value!r}",
            where=model,
            fix="a mapping, for instance {'dbt_valid_from': 'valid_from'}",
        )
    unknown = [name for name in value if name not in known]
    if unknown:
        raise ConfigError(
            f"snapshot_meta_column_names contains {unknown[0]!r}",
            where=model,
            fix=f"its names are: {', '.join(known)}",
        )
    return MetaColumns(**{known[name]: new for name, new in value.items()})


def resolve(
    config: KeyedConfig,
    settings: HistoryConfig,
    columns: Mapping[str, str],
    scd_id: Callable[[Sequence[str]], str],
) -> History:
    """The history of a model with these columns.

    :param columns: Spark type by name, of the columns that the model returns, without ``_action``.
    :param scd_id: returns SQL of the id of an interval over quoted columns.
    :raises ConfigError: a setting names a column that does not exist, or a column has a reserved name.
    """
    names = list(columns)
    _require_free_names(config.model, settings, names)
    sequence, time = (
        _column(config.model, setting, name, names)
        for setting, name in (
            ("sequence_by", str(config.sequence_by)),
            ("updated_at", settings.updated_at or str(config.sequence_by)),
        )
    )
    key = tuple(_column(config.model, "unique_key", name, names) for name in config.unique_key)
    if sequence in key or time in key:
        setting = "sequence_by" if sequence in key else "updated_at"
        raise ConfigError(
            f"{setting} is a column of unique_key",
            where=config.model,
            why="unique_key names what has a history, and each of its events has another sequence and time",
            fix="remove the column from unique_key",
        )
    given = {
        setting: tuple(_column(config.model, setting, name, names) for name in getattr(settings, setting))
        for setting in _COLUMN_SETTINGS
    }
    fixed = {*key, sequence, time}
    for setting, chosen in given.items():
        if misplaced := [name for name in chosen if name in fixed]:
            raise ConfigError(
                f"{setting} contains {misplaced[0]}, which is a column of unique_key, sequence_by or "
                "updated_at",
                where=config.model,
                why=f"{setting} names {_COLUMN_SETTINGS[setting]}",
                fix="remove the column",
            )
    others = [name for name in names if name not in fixed]
    ignored = {
        name for name in others if name in given["ignore_cols"] or name.lower().startswith(ADDED_BY_SOURCES)
    }
    tracked = given["check_cols"] or tuple(name for name in others if name not in ignored)
    return History(
        model=config.model,
        key=key,
        sequence=sequence,
        time=time,
        columns=columns,
        tracked=tracked,
        ignored=tuple(name for name in others if name not in tracked),
        scd_id=scd_id([quote(name) for name in (*key, sequence)]),
        meta=settings.meta,
        records_deletes=settings.records_deletes,
        open_until=settings.open_until,
        deduplicate_by=config.deduplicate_by,
    )


def _require_free_names(model: str, settings: HistoryConfig, names: Sequence[str]) -> None:
    lower = {name.lower(): name for name in names}
    if UNAVAILABLE in lower:
        raise ConfigError(
            f"the model returns {UNAVAILABLE}, which the strategy 'history' does not complete",
            where=model,
            why="a late event would change the values that later events keep",
            fix="let the source send complete rows (PostgreSQL: REPLICA IDENTITY FULL); or complete them in "
            "a keyed model and pull the history from it",
        )
    reserved = [name for name in names if name.lower().startswith(_OWN)]
    taken = [lower[name.lower()] for name in asdict(settings.meta).values() if name.lower() in lower]
    if reserved or taken:
        name = (reserved or taken)[0]
        raise ConfigError(
            f"the model returns {name}, which is a column that the strategy 'history' adds",
            where=model,
            fix="give the column another name with AS"
            + ("" if reserved else ", or name the added one with snapshot_meta_column_names"),
        )
    added = [name.lower() for name in asdict(settings.meta).values()]
    if len(set(added)) < len(added):
        raise ConfigError(
            "snapshot_meta_column_names gives one name to two columns",
            where=model,
            fix="give each column its own name",
        )


def _column(model: str, setting: str, name: str, names: Sequence[str]) -> str:
    (found,) = match_columns([name], names)
    if found in names:
        return found
    meant = difflib.get_close_matches(name.lower(), [one.lower() for one in names], n=1)
    raise ConfigError(
        f"{setting} contains {name}, which the model does not return",
        where=model,
        why=f"its columns are: {', '.join(names)}",
        fix=f"did you mean {match_columns(meant, names)[0]}?" if meant else f"correct {setting}",
    )


def settings_property(history: History) -> dict[str, str]:
    """The settings that stored rows depend on, as a property of the base table."""
    described = {
        "unique_key": list(history.key),
        "sequence_by": history.sequence,
        "updated_at": history.time,
        "tracked columns": list(history.tracked),
        "hard_deletes": "new_record" if history.records_deletes else "invalidate",
        "dbt_valid_to_current": history.open_until,
        "snapshot_meta_column_names": asdict(history.meta),
    }
    return {PROPERTY_SETTINGS: json.dumps(described)}


def described_columns(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a table that describe its intervals.

    :param properties: those of the base table.
    """
    then = json.loads(properties.get(PROPERTY_SETTINGS) or "{}")
    names = dict(then.get("snapshot_meta_column_names") or {})
    if then.get("hard_deletes") != "new_record":
        names.pop("is_deleted", None)
    return tuple(names.values())


def require_same_settings(history: History, properties: Mapping[str, str]) -> None:
    """Refuse to write to a history that was computed with other settings.

    :param properties: those of the base table.
    :raises ConfigError: names the setting, and asks for a full refresh.
    """
    now = json.loads(settings_property(history)[PROPERTY_SETTINGS])
    then = json.loads(properties.get(PROPERTY_SETTINGS) or "{}")
    for setting, value in now.items():
        if then.get(setting) != value:
            raise ConfigError(
                f"{setting} changed from {_shown(then.get(setting))} to {_shown(value)}",
                where=history.model,
                why="the stored intervals were computed with the old setting",
                fix="set it back, or compute them again from all events: "
                f"dbt run --full-refresh --select {history.model}",
            )


def _shown(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
