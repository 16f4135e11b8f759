"""The adapter class is put together of parts. The order of the parts has no meaning."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Mapping, Sequence

from dbt_arctic.adapter.impl import ArcticAdapter
from dbt_arctic.adapter.keyed_api import KeyedApi

PARTS = [one for one in ArcticAdapter.__mro__[1:] if one.__module__.startswith("dbt_arctic.")]


def defined_in_several(parts: Sequence[type]) -> Mapping[str, list[str]]:
    """Names with a definition in several classes, unless each of them calls the next one."""
    definitions = defaultdict(list)
    for part in parts:
        for name, value in vars(part).items():
            if inspect.isroutine(value) and (not name.startswith("__") or name == "__init__"):
                definitions[name].append((part.__name__, value))
    return {
        name: [part for part, _ in found]
        for name, found in definitions.items()
        if len(found) > 1 and not all(f"super().{name}(" in inspect.getsource(one) for _, one in found)
    }


def test_every_part_extends_the_same_class() -> None:
    assert PARTS[-1] is KeyedApi
    assert [one.__name__ for one in PARTS if not issubclass(one, KeyedApi)] == []


def test_no_two_parts_define_the_same_method() -> None:
    """A part may override a method of ``KeyedApi``, which all of them extend."""
    assert defined_in_several(PARTS[:-1]) == {}


def test_a_method_that_hides_another_is_found() -> None:
    class First:
        def plan(self) -> int:
            return 1

        def close(self) -> None:
            super().close()  # type: ignore[misc]

    class Second:
        def plan(self) -> int:
            return super().plan()  # type: ignore[misc]

        def close(self) -> None:
            super().close()  # type: ignore[misc]

    assert defined_in_several([First, Second]) == {"plan": ["First", "Second"]}
