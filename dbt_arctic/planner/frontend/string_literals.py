"""String literals that stay strings: Spark reads `'today'` as a day only in a cast to a date or timestamp.

It does so while it analyses a query, for a text that stands right where it is cast, also where a comparison
or a CASE casts it unasked. A text that a column carries to a cast further outside is cast for each row, and
is then no time; but rules may put it where the column stands, so it is not taken to stay a text either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import expressions
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    Node,
    Project,
    Restrict,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    walk,
)
from dbt_arctic.planner.algebra.scalars import columns_of, plain

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.In)


def labels(node: Node) -> set[int]:
    """The values of items that are nothing but texts, and that nothing but the result gets; by ``id``."""
    used = {
        name
        for part in walk(node)
        for one in (*(one for one in expressions(part) if plain(one) is None), *_of_subqueries(part))
        for name in columns_of(one)
    }
    found = set()
    # What stands above comes first in a walk, so that it is known here what becomes of an item.
    for part in walk(node):
        match part:
            case Project() | Aggregate():
                for name, value in part.items:
                    source = plain(value)
                    if name not in used:
                        found.add(id(value))
                    elif source is not None:
                        used.add(source)
            case UnionAll() | SetOperation():
                for place, name in enumerate(part.columns):
                    if name in used:
                        used.update(one.output[place] for one in part.parts)
            case Window() | Generate():
                pass  # What their expressions compute with is in ``used`` already.
            case Scan() | Values() | Filter() | Join() | Restrict() | Limit():
                pass  # They name no column anew.
    return found


def stays_text(literal: exp.Expr, types: Mapping[str, str], items: set[int]) -> bool:
    """Whether nothing casts a text.

    :param types: of the columns of scans.
    :param items: see ``labels``.
    """
    here = literal
    while isinstance(here.parent, exp.Paren | exp.If | exp.Case):
        above = here.parent
        if isinstance(above, exp.Case) and not all(_is_text(value, types) for value in _results(above)):
            return False
        if isinstance(above, exp.If) and (above.this is here or not isinstance(above.parent, exp.Case)):
            return False
        here = above
    if id(here) in items:
        return True
    if not isinstance(here.parent, _COMPARISONS):
        return False
    others = [one for one in here.parent.iter_expressions() if one is not here]
    return all(_is_text(one, types) for one in others)


def _is_text(value: exp.Expr, types: Mapping[str, str]) -> bool:
    if isinstance(value, exp.Paren):
        return _is_text(value.this, types)
    if isinstance(value, exp.Column):
        return types.get(value.name, "").lower() == "string"
    return isinstance(value, exp.Null) or (isinstance(value, exp.Literal) and value.is_string)


def _results(case: exp.Case) -> Iterator[exp.Expr]:
    yield from (one.args["true"] for one in case.args["ifs"])
    if case.args.get("default") is not None:
        yield case.args["default"]


def _of_subqueries(node: Node) -> Iterator[exp.Expression]:
    for subquery in getattr(node, "subqueries", ()):
        yield from subquery.links
        if subquery.value is not None:
            yield subquery.value
