"""Reads dbt's artifact ``run_results.json``: how the last command refreshed each model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.artifacts import as_written_by_dbt, ran_nodes, read_artifact

_HEADING = re.compile(r"\w+ Error in \w+ ")
"""The first line of dbt's messages about a node."""


@dataclass(frozen=True)
class Refresh:
    """The result of one model, seed or snapshot.

    :param strategy: of an automatic model ``incremental``, ``full`` or ``skip``; otherwise empty.
    :param reason: the reason, if there is one, or the cause of a failure.
    :param rows: written rows; ``None`` if unknown.
    :param bytes_read: ``None`` if unknown; ``bytes_written`` likewise.
    """

    model: str
    status: str
    seconds: float
    strategy: str = ""
    reason: str = ""
    keys: int | None = None
    rows: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None


@dataclass(frozen=True)
class RunResults:
    """The artifact ``run_results.json`` of an earlier invocation.

    :param command: the dbt command, for example ``run``.
    :param at: its end in dbt's format (UTC).
    """

    command: str
    at: str
    seconds: float
    refreshes: tuple[Refresh, ...]


def read_run_results(target_folder: Path) -> RunResults | None:
    """Read the artifact; ``None`` if dbt has not run here, or if its last command ran no node.

    :raises ConfigError: the file was not written by dbt.
    """
    path = target_folder / "run_results.json"
    found = read_artifact(path)
    if found is None:
        return None
    with as_written_by_dbt(path):
        if not ran_nodes(found):
            return None
        return RunResults(
            command=str(found.get("args", {}).get("which", "")),
            at=str(found["metadata"]["generated_at"]),
            seconds=float(found["elapsed_time"]),
            refreshes=tuple(
                _refresh(result)
                for result in found["results"]
                if result["unique_id"].split(".")[0] in ("model", "seed", "snapshot")
            ),
        )


def _refresh(result: Mapping[str, Any]) -> Refresh:
    response: Mapping[str, Any] = result.get("adapter_response") or {}
    failed = result["status"] not in ("success", "skipped")
    return Refresh(
        model=result["unique_id"].split(".", 2)[2],
        status=result["status"],
        seconds=float(result["execution_time"]),
        strategy=response.get("strategy") or "",
        reason=(_cause(str(result.get("message") or "")) if failed else response.get("reason")) or "",
        keys=response.get("keys"),
        rows=response.get("rows_affected"),
        bytes_read=response.get("bytes_read"),
        bytes_written=response.get("bytes_written"),
    )


def _cause(message: str) -> str:
    """The line of an error that says what happened. The first one often only names the model.

    >>> _cause("Runtime Error in model late (late.sql)\\n  AR-302 unique_key contains x\\n    where: late")
    'AR-302 unique_key contains x'
    >>> _cause("Database Error in model late (late.sql)\\n  no such file"), _cause("Got 2 results")
    ('no such file', 'Got 2 results')
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    coded = [line for line in lines if line.startswith("AR-")]
    rest = lines[1:] if len(lines) > 1 and _HEADING.match(lines[0]) else lines
    return next(iter(coded or rest), "")
