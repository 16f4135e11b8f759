"""Hooks of several statements, and the rows that they write to a separate table.

Each statement adds a row: the model's name and the step. So the table shows which statements have run.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.dbt.random.project import HOOK_LOG, Model

_INTO = f"insert into {{{{ this.schema }}}}.{HOOK_LOG} values"
STEPS = {"pre_hook": ("a;b", "second"), "post_hook": ("c -- d",)}
"""The steps of each hook, in order."""


def hooks_of(name: str) -> dict[str, Any]:
    """The settings of a model with hooks: several statements, comments, semicolons inside of texts."""
    first, second = STEPS["pre_hook"]
    (last,) = STEPS["post_hook"]
    return {
        "pre_hook": [
            f"{_INTO} ('{name}', '{first}'); -- a; comment\n{_INTO} ('{name}', '{second}') ; ;",
            "-- nothing; at all",
        ],
        "post_hook": f"/* ; */ {_INTO} ('{name}', '{last}');",
    }


def has_hooks(model: Model) -> bool:
    return HOOK_LOG in str(model.config)


def wrong_steps(ran: Counter[str], failed: bool, cut: bool) -> str:
    """What is wrong with the steps that a run has left; empty if nothing is.

    :param cut: whether the run may have ended anywhere.
    """
    first, last = STEPS["pre_hook"], STEPS["post_hook"]
    steps = (*first, *last)
    shortest, longest = (0, len(steps) if cut else len(first)) if failed else (len(steps), len(steps))
    allowed = [Counter(steps[:count]) for count in range(shortest, longest + 1)]
    if failed and not cut:  # by a setting before the first hook, or by the model after the last statement
        allowed = [Counter(), Counter(first)]
    return "" if ran in allowed else f"its hooks left {sorted(ran.elements())}, allowed {allowed}"
