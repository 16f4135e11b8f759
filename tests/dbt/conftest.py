"""What makes dbt runs in tests cheap: small manifests and contexts, and few buckets."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest
from dbt.context import base
from dbt.contracts.graph.manifest import Manifest

from dbt_arctic.keyed import layout


@pytest.fixture(autouse=True, scope="module")
def _manifests_have_no_macros() -> Iterator[None]:
    """Each run writes ``manifest.json`` twice, with the 600 macros of dbt and its adapters.

    Writing them took a sixth of a test's Python time. dbt itself reads macros from ``partial_parse.msgpack``.
    """
    write = Manifest.write

    def without_macros(manifest: Manifest, path: str) -> None:
        kept = manifest.macros, manifest.docs
        manifest.macros, manifest.docs = {}, {}
        try:
            write(manifest, path)
        finally:
            manifest.macros, manifest.docs = kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Manifest, "write", without_macros)
        yield


@pytest.fixture(autouse=True, scope="module")
def _modules_are_collected_once() -> Iterator[None]:
    """dbt collects the functions of Python's modules that macros may call, again for each node and macro."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "get_context_modules", functools.cache(base.get_context_modules))
        yield


@pytest.fixture(autouse=True, scope="module")
def _keyed_tables_have_two_buckets() -> Iterator[None]:
    """Unless the model sets their number. Each bucket is a file, and a task of every read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "DEFAULT_BUCKETS", 2)
        yield
