"""``dbt_arctic.read``: rows of a table of the project's catalog, as Arrow without Spark.

Finds project and target as the commands do. A profile is read once for many calls, because that takes longer
than reading a few rows.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_arctic.adapter.project import find_profiles, find_project, load_target
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.maintenance.table_read import read_table

if TYPE_CHECKING:
    import pyarrow

_LOADING = threading.Lock()


def read_rows(
    table: str,
    *,
    columns: Sequence[str] | None = None,
    keys: Any = None,
    where: Mapping[str, Any] | None = None,
    at: str | int | date | None = None,
    limit: int | None = None,
    project_dir: str | Path | None = None,
    profiles_dir: str | Path | None = None,
    target: str | None = None,
) -> pyarrow.Table:
    """What ``dbt_arctic.read`` does; it documents the arguments."""
    project, profiles = find_project(_path(project_dir)), find_profiles(_path(profiles_dir)).resolve()
    files = tuple(_written(path) for path in (project / "dbt_project.yml", profiles / "profiles.yml"))
    # dbt has global settings, which two threads must not change at the same time.
    with _LOADING:
        session = _session(project, profiles, target, files, tuple(sorted(os.environ.items())))
    version = at.isoformat() if isinstance(at, date) else None if at is None else str(at)
    return read_table(session.catalog, session.name(table), columns, keys, version, limit, where)


@lru_cache(maxsize=16)
def _session(
    project: Path,
    profiles: Path,
    target: str | None,
    files: tuple[int, ...],
    environment: tuple[tuple[str, str], ...],
) -> TargetSession:
    """The target of a profile.

    :param files: when the files that describe it were written.
    :param environment: what the profile may refer to.
    """
    return TargetSession(load_target(project, profiles, target), "read")


def _written(path: Path) -> int:
    """When a file was last written, in nanoseconds; 0 if it does not exist."""
    return path.stat().st_mtime_ns if path.exists() else 0


def _path(text: str | Path | None) -> Path | None:
    return None if text is None else Path(text)
