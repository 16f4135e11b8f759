"""Makes models automatic for a check, regardless of their config.

A ``config()`` in a model's file takes precedence over every setting outside of it. So the parsed project is
changed and passed to dbt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dbt_arctic.refresh.config import NOT_AUTOMATIC, PLAIN_SETTINGS
from dbt_arctic.refresh.materializations import is_automatic

_OF_OTHER_STRATEGIES = (
    *NOT_AUTOMATIC,
    *PLAIN_SETTINGS,
    "merge_update_columns",
    "merge_exclude_columns",
    "overwrite",
)
"""Settings that an automatic model must not have, because its rows are those of its query."""


def make_automatic(nodes: Mapping[str, Any], chosen: Collection[str]) -> dict[str, str]:
    """Change the config of some models of a parsed project.

    Returns the names of unchanged ones, and the reason.

    :param nodes: dbt's nodes by id.
    :param chosen: ids of models.
    """
    keys = _unique_columns(nodes)
    stay = {}
    for unique_id in chosen:
        node = nodes[unique_id]
        if is_automatic(node.config.to_dict()):
            continue
        key = node.config.unique_key or keys.get(unique_id)
        if node.language != "sql":
            stay[node.name] = f"its rows come from {node.language.capitalize()}, and not from a query"
        elif not key:
            stay[node.name] = "it has no unique_key, and no test says which of its columns are unique"
        else:
            node.config.materialized = "incremental"
            node.config.incremental_strategy = "auto"
            node.config.unique_key = key
            for name in _OF_OTHER_STRATEGIES:
                if node.config.get(name) is not None:
                    del node.config[name]
    return stay


def _unique_columns(nodes: Mapping[str, Any]) -> dict[str, str | list[str]]:
    """The columns that tests or a contract declare unique, by id of a model.

    Single columns are preferred.
    """
    found: dict[str, str | list[str]] = {}
    for node in nodes.values():
        if node.resource_type == "model":
            constraints = [one for one in node.constraints if str(one.type.value) == "primary_key"]
            if constraints:
                found.setdefault(node.unique_id, list(constraints[0].columns))
            for column in node.columns.values():
                if any(str(one.type.value) == "primary_key" for one in column.constraints):
                    found.setdefault(node.unique_id, column.name)
        test, model = getattr(node, "test_metadata", None), getattr(node, "attached_node", None)
        if test is None or model is None:
            continue
        if test.name == "unique":
            found[model] = str(test.kwargs["column_name"])
        elif test.name == "unique_combination_of_columns":
            found.setdefault(model, [str(one) for one in test.kwargs["combination_of_columns"]])
    return found
