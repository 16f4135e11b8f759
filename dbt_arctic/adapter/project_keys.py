"""The keys of tables that a project declares: ``meta.arctic.unique_key``, or tests. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from dbt_arctic.adapter.declared_tests import plain_column, tested_nodes
from dbt_arctic.auto.key_selection import ProjectKey, ProjectKeys
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name

_UNIQUE_TOGETHER = "unique_combination_of_columns"
"""The test of dbt-utils for a key of several columns."""


def project_keys(manifest: Any) -> ProjectKeys:
    """The keys of the sources, seeds, snapshots and models of a project.

    A test counts if it applies to all rows and its failure is an error. The test ``unique`` ignores NULLs, so
    each column of the key needs the test ``not_null`` as well.

    :param manifest: dbt's manifest; ``None`` without a project.

    :raises ConfigError: ``unique_key`` is neither a name nor a list of names.
    """
    if manifest is None:
        return {}
    tables = {**manifest.nodes, **manifest.sources}
    found: dict[str, list[ProjectKey]] = defaultdict(list)
    for node in tables.values():
        columns = _in_meta(node)
        if columns:
            found[_name(node)].append(ProjectKey(columns, str(node.original_file_path)))
    for unique_id, keys in _tested_keys(manifest.nodes).items():
        if unique_id in tables:
            name = _name(tables[unique_id])
            found[name] += map(ProjectKey, keys)
    return dict(found)


def _name(node: Any) -> str:
    identifier = getattr(node, "identifier", None) or getattr(node, "alias", None) or node.name
    return Name(str(node.database), str(node.schema), str(identifier)).dotted.lower()


def _in_meta(node: Any) -> tuple[str, ...]:
    meta = {
        **(getattr(getattr(node, "config", None), "meta", None) or {}),
        **(getattr(node, "meta", None) or {}),
    }
    settings = meta.get("arctic")
    if not isinstance(settings, Mapping) or "from" in settings or "unique_key" not in settings:
        return ()
    given = settings["unique_key"]
    columns = [given] if isinstance(given, str) else given
    if not isinstance(columns, list) or not columns or not all(isinstance(one, str) for one in columns):
        raise ConfigError(
            f"unique_key is {given!r}",
            where=f"{node.name}, {node.original_file_path}",
            fix="write meta: {arctic: {unique_key: [column, ..]}}",
        )
    return tuple(map(plain_column, columns))


def _tested_keys(nodes: Mapping[str, Any]) -> dict[str, list[tuple[str, ...]]]:
    """The keys of each node by its tests, shortest first."""
    keys: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    required: dict[str, set[str]] = defaultdict(set)
    for test, tested in _tests(nodes):
        kwargs = test.test_metadata.kwargs
        if test.test_metadata.name == _UNIQUE_TOGETHER:
            keys[tested].add(tuple(map(plain_column, kwargs["combination_of_columns"])))
            continue
        column = plain_column(kwargs.get("column_name", ""))
        if test.test_metadata.name == "unique":
            keys[tested].add((column,))
        else:
            required[tested].add(column)
    without_nulls = {
        unique_id: [key for key in found if required[unique_id].issuperset(key)]
        for unique_id, found in keys.items()
    }
    return {unique_id: sorted(found, key=_shortest) for unique_id, found in without_nulls.items()}


def _shortest(key: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return len(key), key


def _tests(nodes: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The tests of uniqueness and NULLs in all rows, with the id of the node that each tests."""
    for test in nodes.values():
        metadata = getattr(test, "test_metadata", None)
        if metadata is None or metadata.name not in ("unique", "not_null", _UNIQUE_TOGETHER):
            continue
        config = test.config
        if config.where or str(config.severity).lower() != "error" or config.error_if != "!= 0":
            continue
        tested, _ = tested_nodes(test, metadata.kwargs)
        if tested is not None:
            yield test, tested


__all__ = ["project_keys"]
