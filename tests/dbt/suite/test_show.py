"""The suite's classes on `dbt show`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.graph.thread_pool import DbtThreadPool
from dbt.tests.adapter.dbt_show.test_dbt_show import (
    BaseShowDoesNotHandleDoubleLimit,
    BaseShowLimit,
    BaseShowSqlHeader,
)


class TestShowLimit(BaseShowLimit):
    pass


class TestShowSqlHeader(BaseShowSqlHeader):
    pass


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    """In Spark's words."""

    DATABASE_ERROR_MESSAGE = "[PARSE_SYNTAX_ERROR] Syntax error at or near"

    @pytest.fixture(autouse=True)
    def _no_pool_is_left(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """dbt leaves its threads open when an inline query fails, and a later test would be warned of it."""
        made: list[DbtThreadPool] = []
        make = DbtThreadPool.__init__

        def noted(pool: DbtThreadPool, *arguments: Any, **named: Any) -> None:
            make(pool, *arguments, **named)
            made.append(pool)

        monkeypatch.setattr(DbtThreadPool, "__init__", noted)
        yield
        for pool in made:
            pool.terminate()
