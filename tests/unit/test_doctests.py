"""The examples in docstrings, which are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import dbt_arctic

ROOT = Path(dbt_arctic.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
    for path in ROOT.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert len(MODULES) > 10


@pytest.mark.parametrize("module", MODULES)
def test_an_example_gives_what_it_says(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module))
    assert outcome.attempted
    assert not outcome.failed
