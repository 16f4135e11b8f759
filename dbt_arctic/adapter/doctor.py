"""``dbt debug``: the engine's checks, told in dbt's way."""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.engine.doctor import diagnose
from dbt_arctic.errors import ProfileError

logger = AdapterLogger("Arctic")


def check(credentials: ArcticCredentials, project_root: str | None) -> None:
    """Run every check and log each result.

    :raises ProfileError: the first check that failed, with what to do about it.
    """
    for result in diagnose(credentials.spark_settings(project_root)):
        logger.info(f"  {result.name}: {'ok' if result.ok else 'FAILED'} ({result.detail})")
        if not result.ok:
            raise ProfileError(f"the check of {result.name} failed", why=result.detail, fix=result.fix)
