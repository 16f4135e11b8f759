"""The record of a keyed table: what the properties of its view describe, in a catalog without views.

A record is an Iceberg table without rows, next to base and change table. Its properties and columns are those
that the view would have, and ``CREATE OR REPLACE TABLE`` keeps properties as ``CREATE OR REPLACE VIEW`` does,
so every check of a switch works with either. No relation has the name of the keyed table itself: a table of
that name could be read without its pending changes, and nothing would show it.
"""

from __future__ import annotations

_SUFFIX = "__arctic_keyed"


def record_of(identifier: str) -> str:
    """The identifier of the record of a keyed table.

    >>> record_of("orders")
    'orders__arctic_keyed'
    """
    return identifier + _SUFFIX


def recorded(identifier: str) -> str | None:
    """The identifier of the keyed table whose record would have this identifier; ``None`` for others.

    >>> recorded("orders__arctic_keyed"), recorded("orders")
    ('orders', None)
    """
    of = identifier.removesuffix(_SUFFIX)
    return of if of not in ("", identifier) else None
