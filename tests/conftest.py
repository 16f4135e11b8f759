"""Configuration of all tests."""

from __future__ import annotations

import gc
import json
from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.behavior_flags import BehaviorFlagRendered
from dbt_common.tests import enable_test_caching
from xdist.scheduler import LoadScopeScheduling

from dbt_arctic import secret
from tests import java
from tests.extent import leave_out_long


def dump_at_once(value: Any, file: Any, **options: Any) -> None:
    """Like ``json.dump``, but with the C encoder, which cannot write to a file incrementally."""
    file.write(json.dumps(value, **options))


def pytest_configure(config: pytest.Config) -> None:
    java.choose()
    # A project of dbt has a hundred thousand objects. Searches for cycles among all objects take a fourth of
    # the time of dbt's parser. New objects are searched as often as usual, because resources that a test has
    # not closed should be found in this test.
    gc.set_threshold(700, 10, 100)
    # Like dbt's own suite: the 600 macros of dbt and its adapters are parsed once per worker instead of once
    # per project, which takes a second each time.
    enable_test_caching()
    # dbt looks up in the stack which module sets each of its flags. The stack of a test is deep, so this
    # takes a sixth of the time of a test that runs dbt. No test reads the result.
    BehaviorFlagRendered._default_source = staticmethod(lambda: "tests")  # type: ignore[method-assign]
    # dbt writes its manifest with the Python encoder of `json` at each run: a fifth of a test's time.
    json.dump = dump_at_once
    config.addinivalue_line(
        "markers", "modelled: in the short form on the lake in memory, in the long form on Spark"
    )
    config.addinivalue_line(
        "markers", "without_views: a modelled test that also runs in a catalog without views, in memory"
    )


@pytest.fixture(autouse=True)
def _secrets_of_one_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A password that one test makes up is not removed from the messages of the next test.

    Fixtures of a wider scope ran before: their secrets are kept.
    """
    monkeypatch.setattr(secret, "_known", set(secret._known))


LONGEST_FIRST = (
    "tests/matrix",
    "tests/connect",
    "tests/spark/keyed/test_auto_shared.py",
    "tests/dbt/test_example.py",
    "tests/spark/keyed/test_erase.py",
    "tests/dbt/keyed/test_check.py",
    "tests/dbt/keyed/test_auto.py",
    "tests/spark/keyed/test_auto_nested_views.py",
    "tests/faults/test_disk.py",
    "tests/spark/keyed/test_auto_types.py",
    "tests/spark/keyed/test_functions.py",
    "tests/dbt/keyed/test_churn.py",
    "tests/spark/keyed/test_random_operations.py",
    "tests/spark/test_tpch.py",
    "tests/spark/keyed/test_auto_random.py",
)
"""Modules and folders that take a minute or more. A module runs on one worker. If it started last, the other
worker would be idle meanwhile.
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out_long(config, items)
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    reject_unordered_names(items)

    def place(item: pytest.Item) -> int:
        module = item.nodeid.split("::")[0]
        return next((at for name, at in places.items() if module.startswith(name)), len(places))

    items.sort(key=place)


class Scopes(LoadScopeScheduling):
    """Classes and modules, as ``--dist loadscope`` has them, but that some folders stay together."""

    def _split_scope(self, nodeid: str) -> str:
        folder = next((folder for folder in TOGETHER if nodeid.startswith(f"{folder}/")), None)
        return folder or str(super()._split_scope(nodeid))


TOGETHER = ("tests/connect",)
"""Each worker that has tests of such a folder starts a server of its own for them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return Scopes(config, log) if config.getvalue("dist") == "loadscope" else None


def reject_unordered_names(items: list[pytest.Item]) -> None:
    """A set is spelled in another order by each worker: they would collect different tests, and run none."""
    unordered = [
        item.nodeid
        for item in items
        for value in getattr(item, "callspec", SimpleNamespace(params={})).params.values()
        if isinstance(value, set | frozenset) and str(value) in item.nodeid
    ]
    if unordered:
        raise pytest.UsageError(f"the name of a test has a set in it; make it a sorted list: {unordered[0]}")
