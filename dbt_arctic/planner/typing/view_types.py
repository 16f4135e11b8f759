"""The columns of a view keep the types that it was created with, whatever its text returns now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

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
from dbt_arctic.planner.algebra.query import Built, OutputColumn
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import verbatim
from dbt_arctic.planner.typing.common_type import common_type
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import (
    BIGINT,
    BOOLEAN,
    INT,
    INTEGERS,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VOID,
    Atomic,
    DataType,
    digits_of,
    read_type,
)

_DOUBLE = Atomic("double")
_FIT_DOUBLES = (Atomic("float"), INT, SMALLINT, TINYINT)
_WAYS = (BIGINT, BOOLEAN, INT, TIMESTAMP)
"""Types to which each part's values can be cast directly, with the same result as through a common type that
has all values of the parts."""


def as_stored(
    text: Built,
    columns: Sequence[tuple[str, str]],
    scanned: Mapping[str, str],
    identifier: Callable[[str], str],
) -> Built:
    """The query of a view, cast to the view's types where they may differ, as Spark does.

    :param columns: the names and types of the view's columns.
    :param scanned: the types of the columns of scans.
    """
    known = Types(text.node, scanned).exact()
    unsure = [
        None if stored is None or _is_of_type(known.get(found), stored[1]) else stored[1]
        for (_, found), stored in zip_longest(text.columns, columns[: len(text.columns)])
    ]
    wanted: dict[str, set[str | None]] = {}
    for (_, found), type_ in zip(text.columns, unsure, strict=True):
        wanted.setdefault(found, set()).add(type_)
    parts = _InParts(known, identifier)
    # A column that is selected with two types is cast separately for each.
    below = {
        found: type_
        for found, (type_, *others) in wanted.items()
        if type_ is not None and not others and parts.may(text.node, found, type_)
    }
    pushed = parts.of(text.node, below) if below else None
    node, done = (text.node, frozenset[str]()) if pushed is None else (pushed, frozenset(below))
    output: list[OutputColumn] = []
    items: dict[str, exp.Expression] = {}
    for (name, found), type_ in zip(text.columns, unsure, strict=True):
        if type_ is None or found in done:
            made, items[found] = found, column(found)
        else:
            made = identifier(name)
            items[made] = _cast(found, type_)
        output.append(OutputColumn(name, made))
    if tuple(output) == text.columns:
        return replace(text, node=node)
    return Built(Project(node, tuple(items.items())), tuple(output))


def _is_of_type(known: DataType | None, stored: str) -> bool:
    # An untyped NULL can only be stored as void.
    type_ = read_type(stored)
    return type_ == VOID or (type_ is not None and known == type_)


def _keeps(found: DataType | None, stored: str) -> bool:
    """Whether a cast from one type to another keeps all values and their differences.

    >>> _keeps(Atomic("decimal(10,2)"), "decimal(12,2)"), _keeps(INT, "decimal(12,2)"), _keeps(INT, "bigint")
    (True, True, True)
    >>> _keeps(Atomic("decimal(10,4)"), "decimal(12,2)"), _keeps(BIGINT, "double"), _keeps(None, "int")
    (False, False, False)
    """
    into = read_type(stored)
    if found is None or _is_of_type(found, stored) or into is None:
        return found is not None and into is not None
    if into in INTEGERS:
        return found in INTEGERS and INTEGERS.index(found) <= INTEGERS.index(into)
    digits, room = digits_of(found), digits_of(into)
    if room is None or digits is None:
        return into == _DOUBLE and found in _FIT_DOUBLES
    return digits[1] <= room[1] and digits[0] - digits[1] <= room[0] - room[1]


@dataclass(frozen=True)
class _InParts:
    """Casts the columns of set operations in each of their parts.

    :param known: the types of columns.
    :param identifier: creates an unused name.
    """

    known: Mapping[str, DataType]
    identifier: Callable[[str], str]

    def may(self, node: Node, name: str, type_: str, *, compared: bool = False) -> bool:
        """Whether casting each part is equivalent to Spark's cast of the whole set operation.

        Spark casts the parts to a common type, compares rows to remove duplicates, and casts the result.

        :param compared: whether an operator above compares rows.
        """
        match node:
            case Project() | Aggregate():
                items = dict(node.items) if isinstance(node, Project) else dict(node.groups)
                below = plain(items[name]) if name in items else None
                by_row = compared or isinstance(node, Aggregate)
                return below is not None and self.may(node.child, below, type_, compared=by_row)
            case UnionAll() | SetOperation():
                by_row = compared or isinstance(node, SetOperation)
                place = node.columns.index(name)
                has_way = not by_row and read_type(type_) in _WAYS and self._is_widened(node.parts, place)
                return all(
                    _keeps(self.known.get(part.output[place]), type_)
                    or _is_null(part, part.output[place])
                    or has_way
                    or self.may(part, part.output[place], type_, compared=by_row)
                    for part in node.parts
                )
            case Scan() | Values() | Filter() | Join() | KeySemiJoin() | Window() | Generate() | Limit():
                return conservative(False, "only casts that give all parts one type are moved into the parts")

    def _is_widened(self, parts: Sequence[Node], place: int) -> bool:
        """Whether the parts' common type has all values of each part.

        That of BIGINT or a decimal and a float is DOUBLE, in which 2^53 + 1 becomes 2^53.
        """
        names = ((part, part.output[place]) for part in parts)
        found = {self.known.get(name) for part, name in names if not _is_null(part, name)}
        known = {one for one in found if one is not None}
        if len(known) < len(found):
            return conservative(False, "a type that is not known may be a float")
        return len(known) <= 1 or known <= {_DOUBLE, *_FIT_DOUBLES} or common_type(known) is not None

    def of(self, node: Node, types: Mapping[str, str]) -> Node | None:
        """A set operation whose parts return these types; ``None`` if ``node`` is not a set operation.

        Properties of a column can then be derived for each part.

        :param types: the types, by the names of its columns.
        """
        match node:
            case UnionAll():
                parts = tuple(self._typed(part, node.columns, types) for part in node.children)
                return replace(node, children=parts)
            case SetOperation():
                left, right = (self._typed(part, node.columns, types) for part in (node.left, node.right))
                return replace(node, left=left, right=right)
            case Project():
                items = node.items
            case Aggregate():
                if node.aggregates or node.grouping_sets is not None:
                    return conservative(None, "an aggregate has its own type")
                items = node.groups
            case Scan() | Values() | Filter() | Join() | KeySemiJoin() | Window() | Generate() | Limit():
                return conservative(None, "only casts that give all parts one type are moved into the parts")
        wanted: dict[str, set[str]] = {}
        for name, value in items:
            wanted.setdefault(plain(value) or "", set()).add(types.get(name, ""))
        # A column that is selected twice would need one type below, and an expression may return other
        # values.
        if "" in wanted or any(len(one) > 1 for one in wanted.values()):
            return None
        below = {name: type_ for name, (type_,) in wanted.items() if type_}
        child = self.of(node.child, below)
        return None if child is None else replace(node, child=child)

    def _typed(self, part: Node, columns: Sequence[str], types: Mapping[str, str]) -> Node:
        own = {mine: types[name] for name, mine in zip(columns, part.output, strict=True) if name in types}
        own = {name: type_ for name, type_ in own.items() if not _is_of_type(self.known.get(name), type_)}
        if not own:
            return part
        may = all(self.may(part, name, type_) for name, type_ in own.items())
        nested = self.of(part, own) if may else None
        if nested is not None:
            return nested
        items = tuple(
            (self.identifier(name), _cast(name, own[name])) if name in own else (name, column(name))
            for name in part.output
        )
        return Project(part, items)


def _is_null(node: Node, name: str) -> bool:
    return isinstance(node, Project) and isinstance(dict(node.items)[name], exp.Null)


def _cast(name: str, type_: str) -> exp.Expression:
    try:
        made = sqlglot.parse_one(f"CAST(x AS {type_})", dialect=verbatim())
    except SqlglotError as error:
        what = f"a column of a view of the type {type_}"
        raise CannotPlan("unsupported", what, "cast it to another type in the view") from error
    assert isinstance(made, exp.Cast)
    made.set("this", column(name))
    return made
