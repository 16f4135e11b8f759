"""Name resolution: the relations of a SELECT, of its outer queries, and common table expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Node, Project
from dbt_arctic.planner.algebra.query import Built
from dbt_arctic.planner.algebra.scalars import column


@dataclass(frozen=True)
class Cte:
    """A common table expression with those that are visible to it."""

    query: exp.Expression
    ctes: Mapping[str, Cte]
    columns: tuple[str, ...]


@dataclass
class Scope:
    """The relations that a SELECT can refer to: alias to column name to identifier."""

    relations: dict[str, dict[str, str]] = field(default_factory=dict)
    outer: Scope | None = None
    linked: set[str] = field(default_factory=set)
    """The identifiers of outer queries that were used."""
    groups: Mapping[str, exp.Expression] = field(default_factory=dict)
    """How groups are written, by their identifiers."""

    def find(self, table: str, name: str) -> str | None:
        """The identifier of a column of this SELECT; ``None`` if it has none."""
        return self.relations.get(table.lower(), {}).get(name.lower())

    def names(self) -> dict[str, exp.Expression]:
        """How columns are written, by their identifiers."""
        named = {
            identifier: exp.column(name, table=table, quoted=True)
            for table, columns in self.relations.items()
            if table != LIFTED
            for name, identifier in columns.items()
        }
        return {**named, **self.groups}

    def resolve(self, table: str, name: str) -> str | None:
        """The identifier of a column of this SELECT or of an outer query; ``None`` if there is none."""
        inside, scope = [], self
        while (found := scope.find(table, name)) is None:
            # A column with the relation's name takes precedence, and the reference is to its field.
            if scope.outer is None or any(table.lower() in columns for columns in scope.relations.values()):
                return None
            inside.append(scope)
            scope = scope.outer
        for one in inside:
            one.linked.add(found)
        return found


LIFTED = "\0lifted"
"""The alias of columns that an operator computes. No SQL text can refer to it."""


def lifted(name: str) -> exp.Column:
    """A column that an operator computes."""
    return exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(LIFTED, quoted=True))


def projected(built: Built) -> Node:
    """The node with exactly the columns of the query, in order."""
    wanted = tuple(one.identifier for one in built.columns)
    if built.node.output == wanted:
        return built.node
    return Project(built.node, tuple((identifier, column(identifier)) for identifier in wanted))


def is_linked(tree: exp.Expression, scope: Scope) -> bool:
    """Whether a subquery refers to a relation of its outer query."""
    own = {table.alias_or_name.lower() for table in tree.find_all(exp.Table)}
    own |= {sub.alias.lower() for sub in tree.find_all(exp.Subquery) if sub.alias}
    own |= {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    own |= {
        lateral.args["alias"].name.lower()
        for lateral in tree.find_all(exp.Lateral)
        if lateral.args.get("alias")
    }
    own |= {values.alias.lower() for values in tree.find_all(exp.Values) if values.alias}
    return any(found.table and found.table.lower() not in own for found in tree.find_all(exp.Column))
