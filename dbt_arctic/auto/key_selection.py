"""Chooses the declared keys that a model needs to be refreshed incrementally."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import NamedTuple

from dbt_arctic.auto.advice import advise
from dbt_arctic.auto.decided_order import with_decided_order
from dbt_arctic.auto.inputs import DeclaredKeys, ModelInputs, Until, find_inputs
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig


class ProjectKey(NamedTuple):
    """A key that a project declares for a table.

    :param where: the file that names the columns; empty for a key from tests, whose columns may be
        expressions.
    """

    columns: tuple[str, ...]
    where: str = ""


ProjectKeys = Mapping[str, Sequence[ProjectKey]]
"""All keys that a project declares for tables, by the table's dotted name in lower case."""

_MAX_TRIED = 16
"""The most combinations of keys that are tried, if tables have several."""


def with_needed_keys(
    catalog: CatalogReader,
    name: Name,
    config: KeyedConfig,
    sql: str,
    keys: ProjectKeys,
    settings: str,
    until: Until = lambda name: None,
) -> KeyedConfig:
    """The config with the declared keys without which the model is never refreshed incrementally.

    A key that it does not need is not used, so it costs no check.

    :param settings: the session's, as for ``plan_refresh``; so is ``until``.

    :raises ConfigError: a file declares a key of columns that the table does not have.
    """

    def read_with(declared: DeclaredKeys) -> tuple[ModelInputs, KeyedConfig]:
        own = replace(config, declared_keys=declared)
        text = with_decided_order(catalog, name, own, sql, settings, until)
        return find_inputs(catalog, name, text, {}, until, declared=declared, settings=settings), own

    def suffices(declared: DeclaredKeys) -> bool:
        return _is_incremental(*read_with(declared))

    if not keys or unsupported_setting(settings) is not None:
        return config
    without = read_with({})
    candidates = {
        table: _of_columns(keys[table], one)
        for table, one in without[0].upstreams.items()
        if table in keys and not one.key
    }
    candidates = {table: found for table, found in candidates.items() if found}
    if not candidates or _is_incremental(*without):
        return config
    for chosen in islice(product(*candidates.values()), _MAX_TRIED):
        declared = dict(zip(candidates, chosen, strict=True))
        if suffices(declared):
            return replace(config, declared_keys=_needed(declared, suffices))
    return config


def _is_incremental(inputs: ModelInputs, config: KeyedConfig) -> bool:
    return not any(one.always for one in advise(inputs, config))


def _of_columns(keys: Sequence[ProjectKey], upstream: Upstream) -> list[tuple[str, ...]]:
    """The keys whose columns a table has."""
    known = {name.lower() for name, _ in upstream.columns}
    for key in keys:
        missing = [column for column in key.columns if column not in known]
        if missing and key.where:
            raise ConfigError(
                f"unique_key names {missing[0]}, which is not a column of {upstream.name}",
                where=key.where,
                fix=f"name one of its columns: {', '.join(name for name, _ in upstream.columns)}",
            )
    return [key.columns for key in keys if known.issuperset(key.columns)]


def _needed(declared: DeclaredKeys, suffices: Callable[[DeclaredKeys], bool]) -> DeclaredKeys:
    """The keys without those that are not needed."""
    for table in sorted(declared):
        fewer = {other: key for other, key in declared.items() if other != table}
        if suffices(fewer):
            declared = fewer
    return declared


__all__ = ["ProjectKey", "ProjectKeys", "with_needed_keys"]
