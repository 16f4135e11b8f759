"""How long the operations table keeps its records.

The setting is ``compaction: {history: '90 days'}`` of a model or project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dbt_arctic.store.duration import parse_duration

DEFAULT_S = 90 * 24 * 3600


def longest_history(settings: Iterable[tuple[str, object]]) -> int:
    """The longest retention that any model sets, in seconds, because all models share one table.

    >>> longest_history([("a", {"history": "1 day"}), ("b", {"history": "2 days"}), ("c", None)])
    172800

    :param settings: the name of each model and its ``compaction`` setting.
    :raises ConfigError: a history is not a duration.
    """
    retentions = [
        parse_duration(model, "history", value["history"], DEFAULT_S)
        for model, value in settings
        if isinstance(value, Mapping) and value.get("history") is not None
    ]
    return max(retentions, default=DEFAULT_S)
