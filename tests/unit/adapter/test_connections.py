"""Transactions, which dbt counts and Iceberg does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.adapter.connections import ArcticConnectionManager


@pytest.mark.parametrize("is_open", [True, False])
def test_a_macro_may_commit_whether_or_not_a_statement_began_a_transaction(
    is_open: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager: Any = ArcticConnectionManager.__new__(ArcticConnectionManager)
    connection = SimpleNamespace(name="model.shop.orders", transaction_open=is_open)
    monkeypatch.setattr(manager, "get_thread_connection", lambda: connection)
    manager.commit()
    assert connection.transaction_open is False
