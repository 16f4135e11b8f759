"""String literals that stay strings: Spark reads `'today'` as a date only in a cast to a date or timestamp.

Spark does so during analysis, for a literal that is cast directly, including implicit casts in a comparison
or a CASE. A string that reaches a cast through a column is cast for each row, where it is not a date. But
rules may substitute the literal for the column, so that it does not count as a string either.
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
    KeySemiJoin,
    Limit,
    Node,
    Project,
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
    """The string literals that are selected and only reach the result, by ``id``."""
    used = {
        name
        for part in walk(node)
        for one in (*(one for one in expressions(part) if plain(one) is None), *_of_subqueries(part))
        for name in columns_of(one)
    }
    found = set()
    # ``walk`` returns an operator before its inputs, so the uses of an item are known.
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
                pass  # The operands of their expressions are in ``used`` already.
            case Scan() | Values() | Filter() | Join() | KeySemiJoin() | Limit():
                pass  # They do not rename columns.
    return found


def stays_text(literal: exp.Expr, types: Mapping[str, str], items: set[int]) -> bool:
    """Whether a string literal is never cast.

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
