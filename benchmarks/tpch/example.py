"""The example project's automatic models over TPC-H's own tables: rows with all about them, and sums."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

PROJECT = Path(__file__).resolve().parents[2] / "example_project" / "models"
LAYERS = ("dwd", "dws")
"""In the order in which they are refreshed. ``ods`` stands for the tables themselves, ``ads`` is views."""


@dataclass(frozen=True)
class ExampleModel:
    """:param sql: over the tables of TPC-H and other models, by their names alone.
    :param is_read: whether another automatic model reads it, so that it keeps what changed rows were.
    """

    name: str
    sql: str
    key: tuple[str, ...]
    bucket_by: str | None
    is_read: bool


def example_models() -> dict[str, ExampleModel]:
    """By name; what a model reads comes before it."""
    rendered = {
        path.stem: _rendered(path) for layer in LAYERS for path in sorted((PROJECT / layer).glob("*.sql"))
    }
    automatic = {
        name: (sql, config)
        for name, (sql, config) in rendered.items()
        if config.get("incremental_strategy") == "auto"
    }
    read = {name for sql, _ in automatic.values() for name in automatic if re.search(rf"FROM {name}\b", sql)}
    return {
        name: ExampleModel(name, sql, _listed(config["unique_key"]), config.get("bucket_by"), name in read)
        for name, (sql, config) in automatic.items()
    }


def _rendered(path: Path) -> tuple[str, Mapping[str, Any]]:
    found: dict[str, Any] = {}

    def config(**given: Any) -> str:
        found.update(given)
        return ""

    def ref(name: str) -> str:
        inlined = path.parent / f"{name}.sql"
        if inlined.exists() and "ephemeral" in inlined.read_text(encoding="utf-8"):
            return f"(\n{_rendered(inlined)[0]}\n)"
        return name.removeprefix("ods_")

    environment = Environment(undefined=StrictUndefined, autoescape=False)
    known = {
        "config": config,
        "ref": ref,
        "changed": str,
        "is_incremental": lambda: False,
        "upserts_and_deletes": lambda query, key: f"SELECT * FROM {query}",
    }
    text = environment.from_string(path.read_text(encoding="utf-8")).render(known)
    return text.strip(), found


def _listed(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
