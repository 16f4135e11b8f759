"""``dbt debug``: the engine's checks in dbt's format."""

from __future__ import annotations

from collections.abc import Iterator

from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.engines import choose_engine
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.doctor import Check, diagnose, diagnose_server
from dbt_arctic.engine.thrift import ThriftEngine
from dbt_arctic.errors import ProfileError

logger = AdapterLogger("Arctic")


def check(credentials: ArcticCredentials, project_root: str | None) -> None:
    """Run every check, and log each result as soon as it is known.

    :raises ProfileError: the first failed check, with its fix.
    """
    logger.info("checking Java, Spark and the catalog; this can take half a minute")
    failed: list[Check] = []
    for result in results_of(credentials, project_root):
        instead = f" {result.fix}" if result.state == "missing" else ""
        logger.info(f"  {result.name}: {result.shown_state} ({result.detail}){instead}")
        failed += [] if result.ok else [result]
    for result in failed:
        raise ProfileError(f"the check of {result.name} failed", why=result.detail, fix=result.fix)


def results_of(credentials: ArcticCredentials, project_root: str | None) -> Iterator[Check]:
    """The results of all checks of a profile, each as soon as it is known."""
    chosen = choose_engine(credentials, project_root)
    if isinstance(chosen.engine, ConnectEngine | ThriftEngine):
        return diagnose_server(chosen.engine, chosen.description, credentials.catalog_names[1:])
    return diagnose(credentials.spark_settings(project_root))
