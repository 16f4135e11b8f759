"""What makes dbt runs in tests cheap."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from dbt.contracts.graph.manifest import Manifest


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
