"""The query to refresh, and the parameters that all queries of a model's refresh share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dbt_arctic.auto.inputs import ModelInputs, Until, find_inputs
from dbt_arctic.auto.session_settings import in_effect
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.refresh.config import KeyedConfig

Schema = Callable[[str], list[ColumnInfo]]
"""Returns the columns of a query, by Spark's analysis."""


@dataclass(frozen=True)
class RefreshParameters:
    """The common parameters of all queries of a model's refresh.

    :param settings: the declared settings that change the meaning of SQL.
    :param until: the version at which a relation is read, if it is not the newest.
    :param now: the time for functions of time. Without it, a model that calls one is refreshed in full.
    :param session: the settings of the session that executes the queries; ``None`` if they are unknown,
        because they will not be executed.
    """

    settings: str = ""
    until: Until = lambda name: None
    now: Clock | None = None
    session: str | None = None

    @property
    def in_effect(self) -> str:
        """The settings with which the queries are executed."""
        return in_effect(self.settings, self.session)


DEFAULT_PARAMETERS = RefreshParameters()
"""No declared settings, the newest versions, and neither a time nor the settings of a session."""


@dataclass(frozen=True)
class Request:
    """The query to refresh: the SQL of a model, or a query over ``states`` of its states."""

    name: Name
    config: KeyedConfig
    sql: str
    terms: RefreshParameters
    states: int = 0


def inputs_of(
    catalog: CatalogReader, request: Request, last_consumed: Mapping[str, Consumed] | None = None
) -> ModelInputs:
    """What a query reads, at the versions and with the settings of its refresh.

    :param last_consumed: the versions that its table has consumed; without them, the query is analysed for
        any time.
    """
    terms = request.terms
    return find_inputs(
        catalog,
        request.name,
        request.sql,
        last_consumed or {},
        terms.until,
        None if last_consumed is None else terms.now,
        request.config.declared_keys,
        settings=terms.in_effect,
    )


__all__ = ["DEFAULT_PARAMETERS", "RefreshParameters", "Request", "Schema", "inputs_of"]
