"""The smoke part of dbt's suite on a Spark Connect server: the profile names the server and no catalog."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.engine.server import Server
from tests.connect.conftest import SPARK_CONF
from tests.dbt.suite.conftest import *  # noqa: F403
from tests.dbt.suite.conftest import _schemas_are_left  # noqa: F401  # for every test

del pytest_collection_modifyitems  # it is about that folder  # noqa: F821


@pytest.fixture(scope="class")
def dbt_profile_target(server: Server) -> dict[str, Any]:
    return {
        "type": "arctic",
        "method": "connect",
        "host": "sc://localhost",
        "port": server.port,
        "token": server.token,
        "catalog": "lake",
        "threads": 2,
        "spark_conf": SPARK_CONF,
    }
