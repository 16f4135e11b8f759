"""What the parts of the front end ask of the builder that turns a syntax tree into operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Node, Subquery
from dbt_arctic.planner.algebra.query import Built
from dbt_arctic.planner.frontend.scope import Cte, Scope


class QueryBuilder(Protocol):
    """Builds the operators of one query."""

    @property
    def identifier(self) -> Callable[[str], str]:
        """Makes an identifier that is unique in the query, like the name given."""

    def query(self, tree: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        """The operators of a query, which may stand inside another one."""

    def from_(self, tree: exp.Select, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        """The relations of a FROM clause, whose columns become visible in ``scope``."""

    def plain_expression(self, tree: exp.Expression, scope: Scope) -> exp.Expression:
        """An expression in which no subquery may stand."""

    def expression(
        self, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte], subqueries: list[Subquery]
    ) -> exp.Expression:
        """An expression with columns as identifiers; its subqueries are appended to ``subqueries``."""
