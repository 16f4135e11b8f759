"""The settings of executors on a cluster, and warehouses that they cannot reach."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.cluster import check_warehouse, is_on_this_machine
from dbt_arctic.engine.settings import SparkSettings, session_conf
from dbt_arctic.errors import ProfileError


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://127.0.0.2:7077,127.0.0.3:7077", True),
        ("spark://[::1]:7077", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://head:7077", False),
        ("spark://10.0.0.1:7077", False),
        ("spark://127.0.0.1:7077,head:7077", False),
        ("spark://", False),
        ("k8s://https://127.0.0.1:6443", False),
        ("yarn", False),
    ],
)
def test_only_a_master_on_loopback_has_all_executors_here(master: str, here: bool) -> None:
    assert is_on_this_machine(master) == here
    address = session_conf(SparkSettings("lake", "/w", master=master)).get("spark.driver.host")
    assert address == ("127.0.0.1" if here else None)


def test_the_size_and_number_of_executors_are_settings_of_the_profile() -> None:
    settings = SparkSettings(
        "lake", "/w", master="yarn", executor_memory="4g", executor_cores=3, max_executors=8
    )
    wanted = {
        "spark.executor.memory": "4g",
        "spark.executor.cores": "3",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.maxExecutors": "8",
    }
    assert session_conf(settings).items() >= wanted.items()
    bare = session_conf(SparkSettings("lake", "/w", master="yarn"))
    assert not wanted.keys() & bare.keys()


def test_spark_conf_has_the_last_word_on_a_cluster() -> None:
    own = {"spark.driver.host": "10.0.0.7", "spark.dynamicAllocation.shuffleTracking.enabled": "false"}
    settings = SparkSettings("lake", "/w", master="spark://127.0.0.1:1", max_executors=2, spark_conf=own)
    assert session_conf(settings).items() >= own.items()


@pytest.mark.parametrize(
    ("master", "warehouse"),
    [
        ("yarn", "s3://bucket/w"),
        ("yarn", "hdfs:///w"),
        ("yarn", "file:///mnt/w"),
        ("yarn", ""),
        ("spark://localhost:7077", "/w"),
    ],
)
def test_a_warehouse_that_each_executor_reaches_is_accepted(master: str, warehouse: str) -> None:
    check_warehouse(master, warehouse)


def test_a_folder_of_this_machine_is_refused_for_executors_on_others() -> None:
    with pytest.raises(ProfileError, match=r"file:///data/lake") as raised:
        check_warehouse("spark://head:7077", "/data/lake")
    assert "own disk" in str(raised.value)
