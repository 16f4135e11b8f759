"""Type promotion: which wider types a column can get without rewriting its files."""

from __future__ import annotations

from dbt_arctic.data_type import decimal_digits

_WIDENINGS = {("int", "bigint"), ("float", "double")}
PROMOTED = frozenset({"int", "float", "decimal"})
"""The kinds of types to which a column may have been widened from another type."""


def can_widen(old: str, new: str) -> bool:
    """Whether Iceberg can promote a column from one type to another in place.

    >>> can_widen("int", "bigint"), can_widen("decimal(10,2)", "decimal(12,2)")
    (True, True)
    """
    if (old, new) in _WIDENINGS:
        return True
    before, after = decimal_digits(old), decimal_digits(new)
    return (
        before is not None
        and after is not None
        and before.scale == after.scale
        and before.precision <= after.precision
    )


def is_widened(then: str, now: str) -> bool:
    """Whether a stored type is read as a different, wider one."""
    return then != now and can_widen(then, now)
