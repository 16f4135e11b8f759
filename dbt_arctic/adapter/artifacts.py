"""Reads the files that dbt leaves in its target folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt_arctic.errors import ConfigError

_WITHOUT_RUNS = frozenset({"compile", "generate", "show"})
"""Commands whose ``run_results.json`` lists compiled nodes as successful, although none of them ran."""


def ran_nodes(results: Mapping[str, Any]) -> bool:
    """Whether a ``run_results.json`` is that of a command that runs nodes."""
    return (results.get("args") or {}).get("which") not in _WITHOUT_RUNS


def read_artifact(path: Path) -> Mapping[str, Any] | None:
    """The content of an artifact; ``None`` if there is no such file.

    :raises ConfigError: the file is not JSON.
    """
    if not path.exists():
        return None
    with as_written_by_dbt(path):
        found: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found


@contextmanager
def as_written_by_dbt(path: Path) -> Iterator[None]:
    """Within it, an artifact that is not as dbt writes it is a ``ConfigError``."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "an artifact of dbt cannot be read",
            where=str(path),
            why=f"{type(error).__name__}: {error}",
            fix="run the dbt command again, which writes it",
        ) from error
