"""``ANY`` and ``ALL`` without a subquery."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from dbt_arctic.planner.reasons import at_line, line_of


def mark_quantifiers(tree: exp.Query) -> None:
    """Mark the aggregate ``any(x > 1)``, and expand ``LIKE ANY ('a', 'b')`` into comparisons."""
    for found in list(tree.find_all(exp.Any, exp.All)):
        parent, listed = found.parent, found.this
        if isinstance(listed, exp.Query | exp.Subquery):
            continue
        if isinstance(parent, exp.Like | exp.ILike) and found is parent.expression:
            patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed.unnest()]
            made = [_compared(parent, pattern) for pattern in patterns]
            word = exp.Or if isinstance(found, exp.Any) else exp.And
            both = reduce(lambda left, right: word(this=left, expression=right), made)
            parent.replace(exp.Paren(this=both))
        elif isinstance(found, exp.Any):
            called = exp.Anonymous(this="any", expressions=[listed.unnest()])
            at_line(called, line_of(found))
            found.replace(called)


def _compared(like: exp.Like | exp.ILike, pattern: exp.Expression) -> exp.Expression:
    one = type(like)(this=like.this.copy(), expression=pattern.copy())
    return exp.Not(this=one) if like.args.get("negate") else one
