"""Rules of Spark's are left out for subqueries in a select list alone: they make reads less."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from dbt_arctic.auto import select_list_subqueries
from dbt_arctic.planner.frontend.parse import parse


class _Context:
    def tuned(self, conf: dict[str, str]) -> Any:
        return conf


@pytest.mark.parametrize(
    ("sql", "is_left_out"),
    [
        ("SELECT (SELECT max(v) FROM b WHERE b.k = a.k) AS m FROM a", True),
        ("SELECT k IN (SELECT k FROM b) AS m FROM a", True),
        ("SELECT m FROM (SELECT EXISTS (SELECT 1 FROM b WHERE b.k = a.k) AS m FROM a) AS q", True),
        ("SELECT a.k, l.m FROM a, LATERAL (SELECT max(v) AS m FROM b WHERE b.k = a.k) AS l", True),
        ("SELECT k, e FROM a LATERAL VIEW explode(l) AS e", False),
        ("SELECT CASE WHEN k IN (1, 2) THEN 1 END AS m, exists(l, x -> x > 1) AS e FROM a", False),
        ("SELECT k FROM (SELECT k FROM a) AS q WHERE k IN (SELECT k FROM b)", False),
    ],
)
def test_for_which_queries(sql: str, is_left_out: bool) -> None:
    context: Any = _Context()
    found: Any = select_list_subqueries.over(context, [None, parse(sql)])
    assert (found == select_list_subqueries.CONF) == is_left_out
    assert isinstance(found, nullcontext) != is_left_out
