"""What distinguishes two states of a table's columns in which the names may be the same. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple


class ColumnVersion(NamedTuple):
    """A column as the catalog of a database has it.

    :param number: of the column in its table. A column that is renamed keeps it, and no other one gets it.
    :param changed_by: the transaction that last changed the column's entry in the catalog.
    :param labels: of an enum, in the order in which they were added, each with the transaction that last
        changed it.
    :param fills_older: whether rows that are older than the column have its default, which is not in the log.
    :param shown_as: the same for columns whose types show the same bytes in the same way; empty if that is
        not known.
    """

    number: int
    changed_by: str
    labels: tuple[str, ...] = ()
    fills_older: bool = False
    shown_as: str = ""


class TableVersion(NamedTuple):
    """A table as the catalog of a database has it.

    :param storage: differs after all rows were written again; empty if it is not known.
    :param last_number: the greatest number that a column has had.
    :param columns: by name.
    :param logged: the columns that the log has, in its order.
    """

    storage: str
    last_number: int
    columns: Mapping[str, ColumnVersion]
    logged: tuple[str, ...]


@lru_cache(maxsize=1024)
def shape_of(names: tuple[str, ...], identity: tuple[str, ...] | None = None) -> str:
    """A short text that differs for other columns, or another order of them.

    :param identity: the columns whose old values a change has; ``None`` for all.

    >>> shape_of(("id", "name")) == shape_of(("name", "id"))
    False
    >>> shape_of(("id", "name"), ("id",))
    '45699401["id"]'
    """
    hashed = hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]
    if identity is None or set(identity) >= set(names):
        return hashed
    return hashed + json.dumps(identity, ensure_ascii=False, separators=(",", ":"))


def columns_shape(shape: str) -> str:
    """The part of a shape that depends on the columns alone.

    >>> columns_shape('45699401["id"]')
    '45699401'
    """
    return shape.partition("[")[0]


def identity_in(shape: str) -> tuple[str, ...] | None:
    """The columns whose old values a change of this shape has; ``None`` for all.

    >>> identity_in('45699401["id"]')
    ('id',)
    """
    _, bracket, listed = shape.partition("[")
    return tuple(json.loads(bracket + listed)) if bracket else None


__all__ = ["ColumnVersion", "TableVersion", "columns_shape", "identity_in", "shape_of"]
