"""How an analysis defines its result for each operator of ``algebra``.

An analysis is a function over operators. It has one entry for each operator, in one of two forms:

* ``match node`` without ``case _``. mypy reports an operator that has no case (``exhaustive-match``).
* ``functools.singledispatch``, if each operator has its own module, as in ``rules``.

A default is written explicitly, with ``conservative`` and its reason. So a new operator never gets an
implicit default. ``tests/unit/planner/test_analyses.py`` lists the analyses and fails for each missing pair
of operator and analysis.
"""

from __future__ import annotations

from typing import TypeVar, get_args

from dbt_arctic.planner.algebra.operators import Node

OPERATORS: tuple[type, ...] = get_args(Node)

T = TypeVar("T")


def conservative(answer: T, because: str) -> T:
    """Return the conservative result of an analysis for an operator.

    :param answer: a result that is right for any operator: no key, no origin, the whole relation.
    :param because: why the analysis has no better result for the operator, or needs none.
    """
    assert because
    return answer


__all__ = ["OPERATORS", "conservative"]
