"""LATERAL VIEW: a generator over each row."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Generate, Node
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.scope import Scope
from dbt_arctic.planner.frontend.unsupported import no_lateral, refused
from dbt_arctic.planner.spark.functions import GENERATORS, function_name
from dbt_arctic.planner.spark.syntax import names_of_generated


def lateral_view(
    builder: QueryBuilder, node: Node, lateral: exp.Lateral, scope: Scope, types: Mapping[str, str]
) -> Node:
    """Build a LATERAL VIEW, whose columns become visible in ``scope``.

    :param types: the types of columns.

    :raises CannotPlan: its function has no operator, or its columns have no names.
    """
    name = function_name(lateral.this)
    if not lateral.args.get("view") or name not in GENERATORS:
        raise no_lateral(lateral)
    function = builder.plain_expression(lateral.this, scope)
    alias = lateral.args["alias"]
    names = [part.name for part in alias.args.get("columns") or []]
    names = names or names_of_generated(function, types)
    if not names:
        raise refused(f"{name}() without column names", "name the columns with AS", lateral)
    made = tuple(builder.identifier(column_name) for column_name in names)
    scope.relations[alias.name.lower()] = {n.lower(): m for n, m in zip(names, made, strict=True)}
    return Generate(node, function, bool(lateral.args.get("outer")), made)


__all__ = ["lateral_view"]
