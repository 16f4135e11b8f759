"""Values that all rows share, as literals: of what Python was not given as it is stored there is none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.refresh import values


@pytest.mark.parametrize(
    ("found", "literals"),
    [
        (("caf\u00e9", "string"), {"v": "CAST('caf\u00e9' AS string)"}),
        (("caf\ufffd", "string"), {}),
        ((None, "string"), {"v": "CAST(NULL AS string)"}),
    ],
)
def test_bytes_that_are_no_text_have_no_literal(
    monkeypatch: pytest.MonkeyPatch, found: tuple[str | None, str], literals: dict[str, str]
) -> None:
    monkeypatch.setattr(values, "value_sql", lambda one, sources: "SELECT")
    edge: Any = SimpleNamespace(query=lambda sql: [found])
    asked: Any = [SimpleNamespace(name="v")]
    sources: Any = {}
    assert values.ask_values(edge, asked, sources) == literals
