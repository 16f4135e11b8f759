"""A session setting for single statements: only the side of a join that is not bucketed is shuffled.

Otherwise Spark shuffles both sides, including the whole table. It is set only around dbt-arctic's own
statements, because it also affects the user's joins.
"""

from __future__ import annotations

from dbt_arctic.keyed.names import quote

_ONE_SIDED_SHUFFLE = quote("spark.sql.sources.v2.bucketing.shuffle.enabled")


def enable_one_sided_shuffle() -> str:
    """The statement that enables the setting."""
    return f"SET {_ONE_SIDED_SHUFFLE}=true"


def reset_one_sided_shuffle() -> str:
    """The statement that resets the setting."""
    return f"RESET {_ONE_SIDED_SHUFFLE}"
