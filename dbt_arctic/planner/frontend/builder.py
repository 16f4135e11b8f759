"""The interface of the builder that the modules of the front end call."""

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
        """Create an identifier that is unique in the query and resembles the given name."""

    def query(self, tree: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Built:
        """The operators of a query, which may be part of another one."""

    def from_(self, tree: exp.Select, ctes: Mapping[str, Cte], scope: Scope) -> Node:
        """The relations of a FROM clause, whose columns become visible in ``scope``."""

    def plain_expression(self, tree: exp.Expression, scope: Scope) -> exp.Expression:
        """An expression in a place where no subquery is allowed."""

    def expression(
        self, tree: exp.Expression, scope: Scope, ctes: Mapping[str, Cte], subqueries: list[Subquery]
    ) -> exp.Expression:
        """An expression with columns as identifiers. Its subqueries are appended to ``subqueries``."""
