"""``dbt debug``: the engine's checks in dbt's format."""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_engine
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.doctor import diagnose, diagnose_server
from dbt_arctic.errors import ProfileError

logger = AdapterLogger("Arctic")


def check(credentials: ArcticCredentials, project_root: str | None) -> None:
    """Run every check and log each result.

    :raises ProfileError: the first check that failed, with what to do about it.
    """
    chosen = choose_engine(credentials, project_root)
    if isinstance(chosen.engine, ConnectEngine):
        results = diagnose_server(chosen.engine.settings, chosen.description)
    else:
        results = diagnose(credentials.spark_settings(project_root))
    for result in results:
        logger.info(f"  {result.name}: {'ok' if result.ok else 'FAILED'} ({result.detail})")
        if not result.ok:
            raise ProfileError(f"the check of {result.name} failed", why=result.detail, fix=result.fix)
