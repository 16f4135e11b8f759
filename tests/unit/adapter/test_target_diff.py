"""What is decided from metadata alone: which models are compared, and which targets can be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.relation_diff import DiffOptions
from dbt_arctic.adapter.target_diff import _diff, _Pair, _require_comparable
from dbt_arctic.catalog.api import CatalogColumn, ViewState
from dbt_arctic.errors import ConfigError, StatementError
from dbt_arctic.keyed.names import Name

HERE, THERE = Name("lake", "ci", "orders"), Name("lake", "prod", "orders")
COLUMNS = (CatalogColumn("id", "bigint"),)


class TargetSession:
    """Answers from views; a query fails."""

    def __init__(self, *views: tuple[Name, Name | None]) -> None:
        self.catalog = self
        self.views = {
            (name.schema, name.identifier): ViewState(
                name.schema,
                name.identifier,
                {} if of is None else {"arctic.clone": json.dumps([of.catalog, of.schema, of.identifier])},
                COLUMNS,
                "SELECT 1",
            )
            for name, of in views
        }

    def of(self, name: Name) -> TargetSession:
        return self

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.views.get((schema, name))

    def load_table(self, schema: str, name: str) -> None:
        return None

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        raise StatementError("a column has no such type")


@pytest.mark.parametrize(
    ("views", "there", "state"),
    [
        ([], THERE, "not built"),
        ([(THERE, None)], THERE, "not built"),
        ([(HERE, None)], THERE, "new"),
        ([(HERE, None)], None, "new"),
        ([(HERE, THERE), (THERE, None)], THERE, "clone"),
        ([(HERE, HERE), (THERE, None)], THERE, "failed"),
        ([(HERE, None), (THERE, None)], THERE, "failed"),
        ([(HERE, None)], HERE, "not compared"),
    ],
)
def test_a_model_is_compared_if_both_targets_have_rows_of_it(views: Any, there: Any, state: str) -> None:
    session: Any = TargetSession(*views)
    found = _diff(session, _Pair("orders", HERE, there), {}, DiffOptions())
    assert found.state == state
    assert ("no such type" in found.why) == (state == "failed")


def target(name: str, **settings: Any) -> Target:
    return Target(Path("/project"), name, ArcticCredentials(**settings), Path("/project/target"))


def test_the_targets_differ_in_their_schema_only() -> None:
    ci = target("ci", schema="ci", warehouse="lake")
    _require_comparable(ci, target("prod", schema="prod", warehouse="./lake", driver_memory="4g"))
    for settings, named in (
        ({"warehouse": "other"}, "warehouse"),
        ({"warehouse": "lake", "database": "other"}, "catalog"),
        ({"method": "connect", "host": "sc://spark.example.com", "warehouse": "lake"}, "method"),
        ({"warehouse": "lake", "catalog_properties": {"uri": "https://x"}}, "catalog: uri"),
    ):
        with pytest.raises(ConfigError) as caught:
            _require_comparable(ci, target("prod", **settings))
        assert caught.value.where == f"profiles.yml, {named}"
    with pytest.raises(ConfigError, match="both ci"):
        _require_comparable(ci, ci)
