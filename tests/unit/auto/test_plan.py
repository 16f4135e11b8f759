"""The plan of a refresh is a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import get_args, get_origin, get_type_hints

from dbt_arctic.auto import plan


def test_no_field_of_a_plan_is_a_function() -> None:
    """Except for the one that returns the version at which a relation is read."""
    waiting = [*plan.RefreshPlan.__subclasses__(), *plan.IncrementalPlan.__subclasses__()]
    kinds: dict[str, type] = {}
    functions = []
    while waiting:
        kind = waiting.pop()
        if kind.__name__ in kinds:
            continue
        kinds[kind.__name__] = kind
        for name, type_ in get_type_hints(kind).items():
            inside = [type_]
            while inside:
                one = inside.pop()
                inside += get_args(one)
                if get_origin(one) is Callable:
                    functions.append(f"{kind.__name__}.{name}")
                if dataclasses.is_dataclass(one) and one.__module__.startswith("dbt_arctic.auto"):
                    waiting.append(one)
    assert {"ByKeys", "OverState", "StatePlan", "Request", "HiddenColumns", "Upstream"} <= kinds.keys()
    assert functions == ["RefreshParameters.until"]
