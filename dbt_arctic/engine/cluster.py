"""The settings of a Spark whose executors run on a cluster. Pure functions; nothing is started."""

from __future__ import annotations

import ipaddress
import re

from dbt_arctic.errors import ProfileError

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<name>[^:]+))(?::\d+)?$")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def is_on_this_machine(master: str) -> bool:
    """Whether all executors of a cluster are on the machine of the driver.

    A master that listens on a loopback address can only be reached by workers of the same machine.

    >>> is_on_this_machine("spark://127.0.0.1:7077"), is_on_this_machine("spark://head:7077")
    (True, False)
    """
    if master.startswith("local-cluster["):
        return True
    scheme, found, addresses = master.partition("://")
    return bool(found) and scheme == "spark" and all(map(_is_loopback, addresses.split(",")))


def cluster_conf(
    master: str, executor_memory: str | None, executor_cores: int | None, max_executors: int | None
) -> dict[str, str]:
    """Spark's settings for the executors, and for the address at which they reach the driver."""
    conf: dict[str, str] = {}
    if is_on_this_machine(master):
        # The name of the machine may not be resolvable, and nothing outside has to reach the driver.
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if executor_memory is not None:
        conf["spark.executor.memory"] = executor_memory
    if executor_cores is not None:
        conf["spark.executor.cores"] = str(executor_cores)
    if max_executors is not None:
        conf |= {
            "spark.dynamicAllocation.enabled": "true",
            # Executors that have shuffled rows stay, so that no external shuffle service is needed.
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.maxExecutors": str(max_executors),
        }
    return conf


def check_warehouse(master: str, warehouse: str) -> None:
    """Refuse a folder of this machine as the warehouse of executors on other machines.

    They would write data files to disks of their own. A URI with the scheme ``file`` is accepted, because it
    says that each machine has that folder, for instance by NFS.

    :raises ProfileError: the warehouse is a folder without a scheme.
    """
    if not warehouse or _WITH_SCHEME.match(warehouse) or is_on_this_machine(master):
        return
    raise ProfileError(
        f"The warehouse {warehouse} is a folder of this machine, and the executors run on others.",
        where=f"profiles.yml, warehouse and master: {master}",
        why="Each executor would write its files to its own disk.",
        fix="use a catalog and a store that all machines reach (catalog: {type: postgres, uri: .., "
        f"warehouse: s3://..}}). If each machine has that folder, write warehouse: file://{warehouse}",
    )


def _is_loopback(address: str) -> bool:
    matched = _ADDRESS.match(address.strip())
    if matched is None:
        return False
    host = matched["v6"] or matched["name"]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False
