"""Casts in the parts of a UNION, INTERSECT or EXCEPT whose columns have different types.

Rules look up and aggregate the rows of one part separately. There, a column needs the common type that Spark
gives it in the set operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Node, Project, SetOperation, UnionAll, map_children
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.typing.common_type import common_type
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import DataType, type_text


def with_common_types(node: Node, types: Mapping[str, str], identifier: Callable[[str], str]) -> Node:
    """The tree with casts to the common type in the parts, if the types of all parts are known.

    :param types: the types of the columns of scans.
    :param identifier: creates an identifier that is unique in the query.
    """

    def change(part: Node) -> Node:
        part = map_children(part, change)
        if not isinstance(part, UnionAll | SetOperation):
            return part
        known = [Types(one, types).exact() for one in part.parts]
        wanted: dict[int, DataType] = {}
        for place in range(len(part.columns)):
            found = {of.get(one.output[place]) for of, one in zip(known, part.parts, strict=True)}
            known_types = {one for one in found if one is not None}
            made = common_type(known_types) if len(found) == len(known_types) > 1 else None
            if made is not None:
                wanted[place] = made
        if not wanted:
            return part
        left, *others = (
            _cast(
                one,
                {place: type_ for place, type_ in wanted.items() if of[one.output[place]] != type_},
                identifier,
            )
            for of, one in zip(known, part.parts, strict=True)
        )
        if isinstance(part, UnionAll):
            return replace(part, children=(left, *others))
        return replace(part, left=left, right=others[0])

    return change(node)


def _cast(part: Node, wanted: Mapping[int, DataType], identifier: Callable[[str], str]) -> Node:
    if not wanted:
        return part
    items: list[tuple[str, exp.Expression]] = []
    for place, name in enumerate(part.output):
        if place in wanted:
            items.append(
                (identifier(name), exp.cast(column(name), type_text(wanted[place]), dialect="spark"))
            )
        else:
            items.append((name, column(name)))
    return Project(part, tuple(items))


__all__ = ["with_common_types"]
