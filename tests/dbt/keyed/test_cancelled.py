"""Ctrl-C: what is not done when it comes is not done afterwards either."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from dbt_arctic.engine.session_cursor import SessionCursor
from tests.dbt.keyed.conftest import Shop


def test_after_ctrl_c_no_statement_of_a_model_is_sent(shop: Shop) -> None:
    hook = "create table {{ this.schema }}.h (x int) using iceberg"
    config = f"materialized='incremental', unique_key='id', post_hook=\"{hook}\""
    shop.model("a", f"{{{{ config({config}) }}}} select 1 as id")
    shop.model("b", "select 1 as id -- {{ ref('a') }}")
    execute = SessionCursor.execute

    def interrupted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
        if "a__" in sql and not interrupted_at:
            interrupted_at.append(sql)
            # Unlike `_thread.interrupt_main`, a signal also ends the lock for which dbt's main thread waits.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            assert cursor._running._cancelled.wait(60)
        execute(cursor, sql, bindings)

    interrupted_at: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionCursor, "execute", interrupted)
        outcome = shop.try_dbt("run")
    assert isinstance(outcome.exception, KeyboardInterrupt)
    assert interrupted_at
    assert not any(interrupted_at[0] in sql or "create table" in sql.lower() for sql in shop.script.ran)
    assert shop.sql("SHOW TABLES IN {s}") == []
    shop.dbt("run")
    assert shop.rows("b") == [(1,)]
