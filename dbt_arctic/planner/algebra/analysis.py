"""How an analysis states what it does with each operator of ``algebra``.

An analysis is a function over operators. It has one entry for each operator, in one of two forms:

* ``match node`` without ``case _``. mypy reports the operator that has no case (``exhaustive-match``).
* ``functools.singledispatch``, where an operator has a file of its own, as in ``rules``.

An entry that gives up is written as well, with ``conservative`` and the reason. So a new operator cannot fall
through to a default that nobody has thought about. ``tests/unit/planner/test_analyses.py`` lists the analyses
and fails for each missing pair of operator and analysis.
"""

from __future__ import annotations

from typing import TypeVar, get_args

from dbt_arctic.planner.algebra.operators import Node

OPERATORS: tuple[type, ...] = get_args(Node)

T = TypeVar("T")


def conservative(answer: T, because: str) -> T:
    """The answer of an analysis about an operator of which it knows no better.

    :param answer: right for any operator: no key, no origin, the whole relation.
    :param because: why the analysis cannot tell more, or need not.
    """
    assert because
    return answer


__all__ = ["OPERATORS", "conservative"]
