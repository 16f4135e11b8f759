"""A query as a tree of operators, with its output columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dbt_arctic.planner.algebra.operators import Node

Schemas = Mapping[str, Sequence[tuple[str, str]]]
"""Columns (name and type) of each relation that a query may read, by the relation's dotted name in lower
case."""


class OutputColumn(NamedTuple):
    """A column of a query's result: its name, and the identifier that the operators give it."""

    name: str
    identifier: str


@dataclass(frozen=True)
class Built:
    """A query as operators."""

    node: Node
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True)
class Query:
    """The SQL of a model as a tree of operators.

    :param columns: the names are those that Spark returns.
    :param types: the types of the columns of scans, by identifier.
    :param is_named: whether the text gives a name to all columns but at most one, so that the columns can be
        matched by name in any order.
    """

    node: Node
    columns: tuple[OutputColumn, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = True

    def identifiers(self, names: Sequence[str]) -> frozenset[str]:
        """The identifiers of some output columns; empty if one of the names is not an output column."""
        known = {name.lower(): identifier for name, identifier in self.columns}
        found = [known.get(name.lower()) for name in names]
        return frozenset(one for one in found if one is not None) if None not in found else frozenset()
