"""The columns of a view have the types that it was made with, whatever its text gives by now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbt_arctic.planner.algebra import Project
from dbt_arctic.planner.alike import types_of_columns
from dbt_arctic.planner.dialect import verbatim
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.scalars import column
from dbt_arctic.planner.scope import Built


def as_stored(
    text: Built,
    columns: Sequence[tuple[str, str]],
    scanned: Mapping[str, str],
    identifier: Callable[[str], str],
) -> Built:
    """What a view's text gives, cast as Spark does where it is not sure to have the view's types.

    :param columns: names and types of the view's. :param scanned: types of the columns of scans.
    """
    # Of other expressions the sort is known at most: an INT may have fewer bits, a DECIMAL any digits.
    known = types_of_columns(text.node, scanned, certain=True)
    names: list[tuple[str, str]] = []
    items: dict[str, exp.Expression] = {}
    for (name, found), stored in zip_longest(text.names, columns[: len(text.names)]):
        is_sure = stored is None or known.get(found) == stored[1]
        made = found if is_sure else identifier(name)
        items[made] = column(found) if is_sure else _cast(found, stored[1])
        names.append((name, made))
    if tuple(names) == text.names:
        return text
    return Built(Project(text.node, tuple(items.items())), tuple(names))


def _cast(name: str, type_: str) -> exp.Expression:
    try:
        made = sqlglot.parse_one(f"CAST(x AS {type_})", dialect=verbatim())
    except SqlglotError as error:
        what = f"a column of a view of the type {type_}"
        raise CannotPlan("unsupported", what, "cast it to another type in the view", 0) from error
    assert isinstance(made, exp.Cast)
    made.set("this", column(name))
    return made
