"""Automatic models for tests: their plan, their refresh, and what was written by it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from dbt_arctic.auto.auxiliary_tables import find_state
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.config import parse_config
from tests.spark.keyed.conftest import Orders


class Model:
    """An automatic model that reads ``orders``."""

    def __init__(self, orders: Orders, key: str | list[str], sql: str) -> None:
        self.session, self.name, self.sql = orders.session, orders.name.sibling("model"), sql
        config = parse_config("model", {"unique_key": key, "incremental_strategy": "auto"})
        self.config = replace(config, full_refresh_above=math.inf)

    def plan(self) -> RefreshPlan:
        context = self.session.context
        return plan_refresh(context.catalog, self.name, self.config, self.sql, context.query_schema)

    def refresh(self) -> str:
        outcome = run_refresh(self.session.context, self.name, self.config, self.plan(), owner="model.test")
        return str(outcome.choice)

    def rows(self, sql: str = "") -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.session.query(sql or f"SELECT * FROM {self.name.sql}")))

    @property
    def state(self) -> KeyedTable | None:
        return find_state(self.session.catalog, self.name)

    @property
    def written_by(self) -> str:
        """The statement that wrote last."""
        ran = self.session.statements.ran
        return next(one.sql for one in reversed(ran) if one.sql.startswith("INSERT"))
