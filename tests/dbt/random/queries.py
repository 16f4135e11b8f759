"""The queries of automatic models over another model of the project."""

from __future__ import annotations

from tests.dbt.random.values import quote

QUERIES = ("counted", "distinct", "filtered", "joined")
BY_PART = ("counted", "distinct")
"""Queries that need no key of their upstream: theirs is ``p``."""


def sql_of_query(query: str, model: str, unique_key: list[str]) -> str:
    upstream = f"{{{{ ref('{model}') }}}}"
    keys = ", ".join(f"u.{quote(key)}" for key in unique_key)
    return {
        "counted": "select coalesce(part, -1) as p, count(*) as n, sum(part) as s, min(part) as least\n"
        f"from {upstream}\ngroup by coalesce(part, -1)",
        "distinct": f"select distinct coalesce(part, -1) as p from {upstream}",
        "filtered": f"select {keys}, u.part from {upstream} as u where u.part >= 1",
        "joined": f"select {keys}, c.n\nfrom {upstream} as u\n"
        f"join (select part, count(*) as n from {upstream} group by part) as c on u.part = c.part",
    }[query]
