"""py4j looks up a Java class once; each lookup takes longer than a commit of Iceberg."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dbt_arctic.engine.iceberg_api import table_identifier


class Package:
    """A Java package or class by its name, as py4j presents it."""

    def __init__(self, name: str, asked: list[str]) -> None:
        self._name, self._asked = name, asked

    def __getattr__(self, part: str) -> Package:
        self._asked.append(part)
        return Package(f"{self._name}.{part}", self._asked)

    def __call__(self, *arguments: Any) -> Any:
        return self._name, *arguments


class Gateway:
    def __init__(self, asked: list[str]) -> None:
        self.jvm = Package("jvm", asked)

    def new_array(self, kind: Any, size: int) -> list[Any]:
        return [None] * size


def test_a_class_is_looked_up_once_for_each_spark() -> None:
    for _ in range(2):
        asked: list[str] = []
        session = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=Gateway(asked)))
        of, namespace, name = table_identifier(session, "shop", "orders")
        assert of.endswith(".TableIdentifier.of")
        assert (namespace[1], name) == (["shop"], "orders")
        table_identifier(session, "shop", "customers")
        assert asked.count("TableIdentifier") == 1
