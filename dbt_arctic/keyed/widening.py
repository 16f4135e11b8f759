"""Type promotion: which wider types a column can get without rewriting its files."""

from __future__ import annotations

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
    if old.startswith("decimal(") and new.startswith("decimal("):
        old_precision, old_scale = (int(part) for part in old[8:-1].split(","))
        new_precision, new_scale = (int(part) for part in new[8:-1].split(","))
        return old_scale == new_scale and new_precision >= old_precision
    return False


def is_widened(then: str, now: str) -> bool:
    """Whether a stored type is read as a different, wider one."""
    return then != now and can_widen(then, now)
