"""Files of an object store: one client for all of a store, and one kind of error."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping

import pyiceberg.io
import pytest

from dbt_arctic.catalog.files import read_bytes

FILES = {"s3://one/a.json": b"{}", "s3://one/b.gz.json": gzip.compress(b"[]"), "s3://two/c": b"c"}


class Store:
    """A client; ``opened`` counts how many there are."""

    opened: int = 0

    def __init__(self, properties: Mapping[str, str], location: str) -> None:
        Store.opened += 1

    def new_input(self, location: str) -> Store:
        self.location = location
        return self

    def open(self) -> io.BytesIO:
        return io.BytesIO(FILES[self.location])  # a missing one is an error of its own kind


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "opened", 0)
    monkeypatch.setattr(pyiceberg.io, "load_file_io", Store)


def test_a_store_has_one_client_for_the_same_settings() -> None:
    settings = {"s3.endpoint": "test_a_store_has_one_client"}
    assert [read_bytes(name, settings) for name in FILES] == [b"{}", b"[]", b"c"]
    assert Store.opened == 2
    assert read_bytes("s3://one/a.json", {**settings, "s3.region": "here"}) == b"{}"
    assert Store.opened == 3


def test_an_error_of_a_client_is_one_of_the_operating_system() -> None:
    with pytest.raises(OSError, match="KeyError: 's3://one/missing'"):
        read_bytes("s3://one/missing", {})
