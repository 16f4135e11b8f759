"""A session's setting for one statement: rows that are not bucketed are brought to where the table's lie.

Spark otherwise shuffles both sides of a join of which one is not bucketed, the whole table included. Only set
around statements that are made here: what it does to a user's own joins is not ours to choose.
"""

from __future__ import annotations

from dbt_arctic.keyed.names import quote

_ONE_SIDE = quote("spark.sql.sources.v2.bucketing.shuffle.enabled")


def set_one_side() -> str:
    return f"SET {_ONE_SIDE}=true"


def reset_one_side() -> str:
    return f"RESET {_ONE_SIDE}"
