"""Parts of a ``UNION ALL`` whose conditions exclude each other, so that no row of a table is in two of them.

In ``SELECT .. FROM t WHERE open UNION ALL SELECT .. FROM t WHERE NOT open``, a row of ``t`` is in one part at
most. So what identifies a row of ``t`` identifies a row of the result, if both parts select it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp
from sqlglot.optimizer.simplify import Simplifier

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain, substitute
from dbt_arctic.planner.properties.constant_columns import compared_columns
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.functional_dependencies import has_one_row_a_key

_SIMPLE = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren),
    *(exp.Not, exp.Is, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
)
"""What conditions consist of whose value follows from the row alone: the value of a subquery does not."""


@dataclass(frozen=True)
class _Origin:
    """A table, of which each row of a part has one row.

    :param columns: the stored column that an output column of the part has the value of.
    :param conditions: what holds for this row, by stored names.
    """

    scan: Scan
    columns: Mapping[str, str]
    conditions: tuple[exp.Expression, ...]


def key_of_disjoint_parts(
    node: UnionAll, keys: Sequence[Collection[str]], facts: Facts
) -> frozenset[str] | None:
    """The columns that identify a row of a union whose parts exclude each other; ``None`` if they may not.

    :param keys: what identifies a row in each part.
    """
    places = {part.output.index(name) for part, key in zip(node.children, keys, strict=True) for name in key}
    inner = [list(_parts(part)) for part in node.children]
    pairs = (pair for one, other in combinations(inner, 2) for pair in product(one, other))
    for (part, mine), (other, theirs) in pairs:
        found = (_same_row(part, one, other, its, facts) for one, its in product(mine, theirs))
        shared = next((one for one in found if one is not None), None)
        if shared is None:
            return None
        places |= shared
    return frozenset(node.columns[place] for place in places)


def _parts(node: Node) -> Iterator[tuple[Node, list[_Origin]]]:
    """The parts of a part, in the same order of columns, with the tables whose rows they have."""
    if isinstance(node, UnionAll):
        for part in node.children:
            yield from _parts(part)
    else:
        yield node, list(_origins(node, {name: name for name in node.output}, ()))


def _same_row(part: Node, mine: _Origin, other: Node, theirs: _Origin, facts: Facts) -> set[int] | None:
    """The places in which rows of two parts would be equal only if one row of a table were in both parts.

    ``None`` if it may be in both, or if its key is not among the columns.
    """
    key = facts.of(mine.scan).key if has_one_row_a_key(mine.scan) else ()
    if (mine.scan.source, mine.scan.state) != (theirs.scan.source, theirs.scan.state) or not key:
        return None
    if not _exclude(mine.conditions, theirs.conditions):
        return None
    fixed = {name for one in mine.conditions if one in theirs.conditions for name in compared_columns(one)}
    names = list(zip(part.output, other.output, strict=True))
    found = set()
    for stored in (name for name in key if name not in fixed):
        both = (
            place
            for place, (one, its) in enumerate(names)
            if mine.columns.get(one) == stored == theirs.columns.get(its)
        )
        place = next(both, None)
        if place is None:
            return None
        found.add(place)
    return found


def _origins(
    node: Node, columns: Mapping[str, str], conditions: tuple[exp.Expression, ...]
) -> Iterator[_Origin]:
    """The tables of which each row of a query has exactly one row.

    :param columns: columns of this operator, by the output column that has their value.
    :param conditions: what holds for each row of the query, by columns of this operator.
    """
    match node:
        case Scan():
            stored = node.stored
            by_name = {name: column(one) for name, one in stored.items()}
            yield _Origin(
                node,
                {name: stored[one] for name, one in columns.items() if one in stored},
                tuple(_normal(substitute(one, by_name)) for one in conditions),
            )
        case Filter():
            own = tuple(one for one in node.conditions if _is_simple(one))
            yield from _origins(node.child, columns, (*conditions, *own))
        case Project():
            items = dict(node.items)
            below = {name: plain(items[one]) for name, one in columns.items() if one in items}
            kept = {name: one for name, one in below.items() if one is not None}
            yield from _origins(node.child, kept, tuple(_under(conditions, items)))
        case Window():
            outputs = node.child.output
            yield from _origins(node.child, _of(columns, outputs), _about(conditions, outputs))
        case Limit():
            yield from _origins(node.child, columns, conditions)
        case Join():
            own = tuple(one for one in node.conditions if _is_simple(one)) if node.kind == "inner" else ()
            sides = {"inner": (node.left, node.right), "right": (node.right,), "full": ()}
            for side in sides.get(node.kind, (node.left,)):
                outputs = side.output
                yield from _origins(side, _of(columns, outputs), _about((*conditions, *own), outputs))
        case Aggregate() | Generate() | KeySemiJoin() | SetOperation() | UnionAll() | Values():
            conservative(None, "a row may be of several rows, or of none")


def _of(columns: Mapping[str, str], outputs: Collection[str]) -> dict[str, str]:
    return {name: one for name, one in columns.items() if one in outputs}


def _about(conditions: tuple[exp.Expression, ...], outputs: Collection[str]) -> tuple[exp.Expression, ...]:
    return tuple(one for one in conditions if columns_of(one) <= set(outputs))


def _under(
    conditions: tuple[exp.Expression, ...], items: Mapping[str, exp.Expression]
) -> Iterator[exp.Expression]:
    for condition in conditions:
        if columns_of(condition) <= items.keys():
            made = substitute(condition, dict(items))
            if _is_simple(made):
                yield made


def _is_simple(condition: exp.Expression) -> bool:
    return bool(columns_of(condition)) and all(isinstance(one, _SIMPLE) for one in condition.walk())


def _exclude(conditions: Sequence[exp.Expression], others: Sequence[exp.Expression]) -> bool:
    """Whether conditions of two rows cannot both hold for one row; one that is NULL holds for none."""
    return any(_normal(exp.Not(this=one.copy())) in others for one in conditions)


def _normal(condition: exp.Expression, *, negated: bool = False) -> exp.Expression:
    """A condition with NOT inside comparisons, and without comparisons of truth values."""
    one = condition.unnest()
    if isinstance(one, exp.Not):
        return _normal(one.this, negated=not negated)
    if isinstance(one, exp.EQ | exp.NEQ) and isinstance(one.expression, exp.Boolean):
        differs = isinstance(one, exp.NEQ) == bool(one.expression.this)
        return _normal(one.this, negated=negated != differs)
    assert isinstance(one, exp.Expression)
    opposite = Simplifier.COMPLEMENT_COMPARISONS.get(type(one)) if isinstance(one, exp.Binary) else None
    if negated and opposite is not None:
        made = opposite(this=one.this.copy(), expression=one.expression.copy())
        assert isinstance(made, exp.Expression)
        return made
    return exp.Not(this=one.copy()) if negated else one.copy()


__all__ = ["key_of_disjoint_parts"]
