"""Values that all rows of a model share, as its commits record them. A known value is not recomputed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_arctic.auto.timings import PROPERTY_REFRESH
from dbt_arctic.data_type import without_parameters
from dbt_arctic.keyed.log import SnapshotLike, consumed_versions
from dbt_arctic.keyed.names import is_as_stored, literal

PROPERTY_VALUES = "arctic.values"
"""Property of a refresh's commit, JSON: SQL literals by names of values, at the versions that it consumed."""

WORTH_ROWS = 1_000_000
"""Over fewer rows, a value takes less time to compute than a separate query for it."""

_LONGEST = 200
_TYPES = ("tinyint", "smallint", "int", "bigint", "decimal", "string", "date", "boolean")
"""Types whose values have exact literals."""


def known_values(history: Sequence[SnapshotLike]) -> dict[str, str]:
    """The values in the last refresh's commit, unless a later commit has consumed other versions.

    :param history: the commits of the change table, newest first.
    """
    last = next((one for one in history if PROPERTY_REFRESH in one.summary), None)
    if last is None or consumed_versions([last]) != consumed_versions(history):
        return {}
    return {str(name): str(sql) for name, sql in json.loads(last.summary.get(PROPERTY_VALUES, "{}")).items()}


def note_values(values: Mapping[str, str]) -> dict[str, str]:
    """The property of a commit that records the values."""
    if not values:
        return {}
    return {PROPERTY_VALUES: json.dumps(dict(sorted(values.items())), separators=(",", ":"))}


def literal_of(rows: Sequence[tuple[Any, ...]]) -> str | None:
    """The literal of a value; ``None`` if it has none.

    :param rows: the result of ``value_sql``.
    """
    made = _literal(*rows[0]) if len(rows) == 1 else None
    return made if made is not None and len(made) <= _LONGEST else None


def _literal(value: str | None, type_: str) -> str | None:
    if without_parameters(type_) not in _TYPES:
        return None
    if value is None:
        return f"CAST(NULL AS {type_})"
    if not is_as_stored(value):
        return None
    return f"CAST({literal(value)} AS {type_})"


__all__ = ["PROPERTY_VALUES", "WORTH_ROWS", "known_values", "literal_of", "note_values"]
