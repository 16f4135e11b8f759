"""LATERAL VIEW: a generator over each row."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Generate, Node
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.scope import Scope
from dbt_arctic.planner.frontend.unsupported import no_lateral, refused
from dbt_arctic.planner.spark.function_types import OF_ARRAYS
from dbt_arctic.planner.spark.functions import GENERATORS, function_name
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import Array, Map


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
    names = names or _names_of_generated(function, Types(node, types))
    if not names:
        raise refused(f"{name}() without column names", "name the columns with AS", lateral)
    made = tuple(builder.identifier(column_name) for column_name in names)
    scope.relations[alias.name.lower()] = {n.lower(): m for n, m in zip(names, made, strict=True)}
    return Generate(node, function, bool(lateral.args.get("outer")), made)


def _names_of_generated(function: exp.Expression, types: Types) -> list[str]:
    """The column names that ``explode()`` or ``posexplode()`` returns without an alias.

    Empty if it is unknown whether the argument is an array or a map.
    """
    name, values = function_name(function), next(function.iter_expressions(), None)
    type_ = None if values is None else types.of(values)
    if isinstance(type_, Array) or (values is not None and function_name(values) in OF_ARRAYS):
        return {"explode": ["col"], "posexplode": ["pos", "col"]}.get(name or "", [])
    if isinstance(type_, Map):
        return {"explode": ["key", "value"], "posexplode": ["pos", "key", "value"]}.get(name or "", [])
    return []


__all__ = ["lateral_view"]
