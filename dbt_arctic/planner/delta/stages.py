"""Relations that are computed before a statement because several of its parts read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import Aggregate, Node, Scan, State, own_names
from dbt_arctic.planner.algebra.render import Renderer, Sources
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta.affected_keys import Wanted
from dbt_arctic.planner.delta.shared_lookups import SharedLookup
from dbt_arctic.planner.delta.weighted_delta import Inline


@dataclass(frozen=True)
class AffectedValues:
    """Values that the changes affect.

    :param name: the relation that stands for them.
    :param rows: the query of the columns ``key_...``.
    """

    name: str
    rows: Node


class Collected(Inline):
    """Collects affected values as separate relations."""

    def __init__(self) -> None:
        self.found: list[AffectedValues] = []

    def keys(self, rows: Node, names: Wanted) -> Node:
        """A relation with the affected values of some columns, each once."""
        number = len(self.found)
        named = tuple(f"key_{number}_{place}" for place in range(len(names)))
        groups = tuple((key, column(name)) for key, name in zip(named, names, strict=True))
        made = AffectedValues(f"\0affected_values_{number}", prune_columns(Aggregate(rows, groups)))
        self.found.append(made)
        return Scan(made.name, "affected_values", own_names(named))


@dataclass(frozen=True)
class Staged:
    """The staged relations of a statement: first the affected values, then the rows of these values."""

    affected_values: tuple[AffectedValues, ...] = ()
    shared_lookups: tuple[SharedLookup, ...] = ()


@dataclass(frozen=True)
class WithStaged:
    """Sources that include the staged relations, by their names."""

    sources: Sources
    staged: Mapping[str, str]

    def relation(self, source: str, state: State) -> str:
        """The staged relation with this name, or that of the sources."""
        return self.staged.get(source) or self.sources.relation(source, state)


def affected_values_sql(values: AffectedValues, sources: Sources) -> str:
    """The SQL of affected values."""
    return Renderer(sources).query(values.rows)


def shared_lookup_sql(
    lookup: SharedLookup,
    sources: Sources,
    staged: Mapping[str, str],
    ranges: Ranges | None = None,
) -> str:
    """The SQL of a shared lookup.

    :param staged: the relations that stand for affected values, by name.
    :param ranges: MIN and MAX of affected values without NULLs, as literals.
    """
    return Renderer(WithStaged(sources, staged), ranges or {}).query(lookup.rows)
