"""Unique keys of an operator's output, derived from the keys of the upstreams (Paulley and Larson 1994)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from sqlglot import exp

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
    scans,
    walk,
)
from dbt_arctic.planner.algebra.scalars import equalities, plain
from dbt_arctic.planner.properties.column_equivalences import equal_columns
from dbt_arctic.planner.properties.constant_columns import constant_of, fixed_columns
from dbt_arctic.planner.properties.disjoint_unions import key_of_disjoint_parts
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.functional_dependencies import (
    Dependency,
    dependencies,
    key_of,
    numbered,
    under,
    without_dependent,
)
from dbt_arctic.planner.properties.not_null_columns import not_null_columns
from dbt_arctic.planner.spark.functions import function_name

Keys = frozenset[frozenset[str]]

_NONE: Keys = frozenset()
_NOTHING: frozenset[str] = frozenset()
_SMALLEST_LITERAL: dict[type[exp.Expr], int] = {exp.EQ: 1, exp.LTE: 1, exp.LT: 2}
"""The smallest literal for which a comparison restricts a row number to 1."""
_FIRST_OF = frozenset(["coalesce", "ifnull", "nvl"])
_MAX_KEYS = 8
"""The most unique keys of one operator that are tracked."""


def has_small_groups(node: Aggregate, keys_of: Mapping[str, Sequence[str]]) -> bool:
    """Whether each group is as small as the lines of an order, so that recomputing affected groups is cheap.

    This holds if the first column of an upstream's key is among the groups.

    :param keys_of: the keys of upstreams, by stored names.
    """
    groups = {plain(value) for _, value in node.groups}
    for part in walk(node.child):
        if isinstance(part, Project):  # ``walk`` returns an operator before its inputs.
            groups |= {plain(value) for name, value in part.items if name in groups}
    return any(
        name in groups and stored in keys_of.get(scan.source, ())[:1]
        for scan in scans(node.child)
        for name, stored in scan.columns
    )


def unique_keys(node: Node, facts: Facts) -> Keys:
    """Sets of columns in which no two rows of ``node`` have the same values. NULLs count as equal."""
    match node:
        case Scan():
            key = key_of(node, facts)
            return _NONE if key is None else frozenset({key})
        case Filter():
            firsts = (numbered(node, name) for name in _ones(node.conditions))
            return unique_keys(node.child, facts) | {one for one in firsts if one is not None}
        case Window():
            return unique_keys(node.child, facts) | frozenset(_numbers(node))
        case Limit():
            return unique_keys(node.child, facts)
        case Project():
            named = (under(dict(node.items), key) for key in unique_keys(node.child, facts))
            return frozenset(key for key in (*named, _of_both_sides(node, facts)) if key is not None)
        case Aggregate():
            if node.grouping_sets is not None:
                return _of_sets(node, node.grouping_sets, facts)
            # A value that is grouped by twice is needed only once.
            groups = {name: value for value, name in {value: name for name, value in node.groups}.items()}
            determining = without_dependent(groups, dependencies(node.child, facts))
            return frozenset({frozenset(groups), determining, determining - fixed_columns(node)})
        case Join():
            return _of_join(node, facts)
        case Generate():
            return conservative(_NONE, "one row of the child becomes several")
        case KeySemiJoin():
            return conservative(_NONE, "only rules create it, after this analysis")
        case UnionAll():
            return _of_union(node, facts)
        case Values() | SetOperation():
            return conservative(_NONE, "nothing is known about constants, or about rows of several parts")


def is_unique(node: Node, columns: Iterable[str | None], facts: Facts, own: Keys = _NONE) -> bool:
    """Whether no two rows have the same values in some columns, and in the columns that depend on them.

    :param own: sets of columns that are unique for another reason.
    """
    named = frozenset(name for name in columns if name is not None)
    known = determined_by(node, fixed_columns(node) | named, facts)
    return _covered(unique_keys(node, facts) | own, known)


def determined_by(node: Node, columns: Iterable[str], facts: Facts) -> frozenset[str]:
    """Some columns, and those in which rows are equal that are equal in these (NULLs as values)."""
    known = frozenset(columns)
    found = [*dependencies(node, facts)]
    found += [Dependency(frozenset({one}), group) for group in equal_columns(node) for one in group]
    before: frozenset[str] | None = None
    while known != before:
        before = known
        known = known.union(*(columns for key, columns in found if key <= known))
    return known


def _numbers(node: Window) -> Iterator[frozenset[str]]:
    """The partition columns with a ``row_number()`` are unique, whatever the order leaves undetermined."""
    partition = [plain(part) for part in node.partition]
    for name, item in node.items:
        if None not in partition and function_name(item.this) == "row_number":
            yield frozenset([name, *(one for one in partition if one is not None)])


def _of_union(node: UnionAll, facts: Facts) -> Keys:
    """The keys of all parts, with a constant that differs in each part, if they do not exclude each other."""
    keys = [min(unique_keys(part, facts), key=len, default=None) for part in node.children]
    for place, name in enumerate(node.columns):
        constants = [constant_of(part, part.output[place]) for part in node.children]
        alike = len({type(one) for one in constants}) == 1 and None not in constants
        if alike and len(set(constants)) == len(constants) and None not in keys:
            parts = zip(node.children, keys, strict=True)
            places = {part.output.index(one) for part, key in parts for one in key or ()}
            return frozenset({frozenset([name, *(node.columns[one] for one in places)])})
    if None in keys:
        return _NONE
    needed = [(key or _NOTHING) - fixed_columns(part) for part, key in zip(node.children, keys, strict=True)]
    made = key_of_disjoint_parts(node, needed, facts)
    return _NONE if made is None else frozenset({made})


def has_one_row(node: Node) -> bool:
    """Whether the result has exactly one row in every state of the upstreams."""
    match node:
        case Aggregate():
            return not node.groups and node.grouping_sets is None
        case Project() | Window():
            return has_one_row(node.child)
        case Join():
            return (
                node.kind == "inner"
                and not node.conditions
                and all(map(has_one_row, (node.left, node.right)))
            )
        case (
            Scan() | Values() | Filter() | UnionAll() | SetOperation() | Generate() | Limit() | KeySemiJoin()
        ):
            return conservative(False, "there may be no row, or several")


def _ones(conditions: Iterable[exp.Expression]) -> Iterator[str]:
    """Columns whose value is restricted to at most 1."""
    for condition in conditions:
        sides = [one.unnest() for one in condition.unnest().iter_expressions()]
        if isinstance(condition.unnest(), exp.EQ) and isinstance(sides[0], exp.Literal):
            sides.reverse()
        smallest = _SMALLEST_LITERAL.get(type(condition.unnest()))
        if (
            smallest is not None
            and sides[1] == exp.Literal.number(smallest)
            and isinstance(sides[0], exp.Column)
        ):
            yield sides[0].name


def _of_join(node: Join, facts: Facts) -> Keys:
    left = unique_keys(node.left, facts)
    if node.kind == "semi":
        return left
    right = unique_keys(node.right, facts)
    found = {one | other for one, other in product(left, right)}
    if node.kind == "full":
        # Where a key is NULL in a row of each side, both rows are NULL in the keys of both sides.
        present = not_null_columns(node.left, facts) | not_null_columns(node.right, facts)
        return _limited(key for key in found if key & present)
    pairs = [
        (mine, theirs)
        for mine, theirs in equalities(node.conditions)
        if mine in node.left.output and theirs in node.right.output
    ]
    of_left, of_right = (
        (frozenset(side) for side in zip(*pairs, strict=True)) if pairs else (_NOTHING, _NOTHING)
    )
    # A row matches at most one row of the other side if the condition covers a key of that side.
    if node.kind in ("inner", "left") and _covered(right, of_right):
        found |= left
    if node.kind in ("inner", "right") and _covered(left, of_left):
        found |= right
    return _limited(found)


def _limited(found: Iterable[frozenset[str]]) -> Keys:
    return frozenset(sorted(found, key=lambda key: (len(key), sorted(key)))[:_MAX_KEYS])


def _of_sets(node: Aggregate, sets: Sequence[Sequence[int]], facts: Facts) -> Keys:
    """The groups, with columns that distinguish the sets: a group that is not in the set is NULL."""
    present = not_null_columns(node.child, facts)
    groups = frozenset(name for name, _ in node.groups)
    every = next((name for name, call in node.aggregates if _is_number_of_set(call, node)), None)
    if every is not None:
        return frozenset({groups | {every}}) if len({frozenset(one) for one in sets}) == len(sets) else _NONE
    levels: dict[int, str | None] = {}
    for place, (_, value) in enumerate(node.groups):
        flag = exp.Anonymous(this="grouping", expressions=[value])
        if plain(value) in present:
            levels[place] = None
        elif (name := next((one for one, call in node.aggregates if call == flag), None)) is not None:
            levels[place] = name
    if len({frozenset(set(one) & levels.keys()) for one in sets}) < len(sets):
        return _NONE
    return frozenset({groups | {name for name in levels.values() if name is not None}})


def _is_number_of_set(call: exp.Expression, node: Aggregate) -> bool:
    values = [value for _, value in node.groups]
    return function_name(call) == "grouping_id" and list(call.iter_expressions()) in ([], values)


def _of_both_sides(node: Project, facts: Facts) -> frozenset[str] | None:
    """The columns of a FULL JOIN on keys of both sides that hold the key of the existing side."""
    join = node.child
    while isinstance(join, Filter | Window | Limit):
        join = join.child
    if not isinstance(join, Join) or join.kind != "full":
        return None
    left, right = join.left, join.right
    pairs = {
        _Coalesced(*pair)
        for pair in equalities(join.conditions, same_type=True)
        if pair.left in left.output and pair.right in right.output
    }
    if not pairs or len(pairs) != len(join.conditions):
        return None
    of_left, of_right = (frozenset(side) for side in zip(*pairs, strict=True))
    if not (_covered(unique_keys(left, facts), of_left) and _covered(unique_keys(right, facts), of_right)):
        return None
    # Rows of the two sides that are NULL in a key meet no row, and are NULL in the same column.
    if not (of_left <= not_null_columns(left, facts) or of_right <= not_null_columns(right, facts)):
        return None
    named = {sides: name for name, value in node.items if (sides := _coalesced(value)) is not None}
    found = [named.get(pair) or named.get(_Coalesced(pair.second, pair.first)) for pair in pairs]
    return frozenset(name for name in found if name is not None) if all(found) else None


class _Coalesced(NamedTuple):
    """The columns of ``coalesce(first, second)``."""

    first: str
    second: str


def _coalesced(written: exp.Expression) -> _Coalesced | None:
    """The two columns of ``coalesce(a, b)``, also where it is written as a ``CASE``."""
    value = written.unnest()
    sides: list[exp.Expression] = []
    if function_name(value) in _FIRST_OF or isinstance(value, exp.Coalesce):
        sides = [one for one in value.iter_expressions() if isinstance(one, exp.Expression)]
    elif isinstance(value, exp.Case) and value.this is None and len(value.args["ifs"]) == 1:
        tested = value.args["ifs"][0].this.unnest()
        default = value.args.get("default")
        is_present = exp.Not(this=exp.Is(this=value.args["ifs"][0].args["true"], expression=exp.Null()))
        if default is not None and tested == is_present:
            sides = [value.args["ifs"][0].args["true"], default]
    names = [plain(side) for side in sides]
    if len(names) != 2 or names[0] is None or names[1] is None:
        return None
    return _Coalesced(names[0], names[1])


def _covered(keys: Iterable[frozenset[str]], columns: frozenset[str]) -> bool:
    return any(key <= columns for key in keys)
