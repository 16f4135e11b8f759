"""dbt's own classes on Spark Connect: every materialization, seeds, snapshots, tests, docs, Python models.

The same classes run in ``tests/dbt/suite`` on a session: the short form has one of each way to use a server.
"""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.python_model.test_python_model import BasePythonIncrementalTests, BasePythonModelTests
from dbt.tests.util import run_dbt

# The suite defines fixtures in a way that pytest 10 will no longer accept.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning")


@pytest.mark.long
class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


@pytest.mark.long
class TestEphemeral(BaseEphemeral):
    pass


@pytest.mark.long
class TestGenericTests(BaseGenericTests):
    pass


@pytest.mark.long
class TestIncremental(BaseIncremental):
    pass


@pytest.mark.long
class TestKeyedIncremental(BaseIncremental):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"name": "incremental", "models": {"+unique_key": "id", "+buckets": 2}}


@pytest.mark.long
class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


@pytest.mark.long
class TestPythonModel(BasePythonModelTests):
    pass


@pytest.mark.long
class TestPythonIncremental(BasePythonIncrementalTests):
    pass


FUNCTIONS = """
from pyspark.sql import functions

def model(dbt, session):
    dbt.config(materialized="table")
    doubled = functions.udf(lambda number: number * 2, "bigint")
    numbers = session.range(3)
    return numbers.select(functions.col("id"), doubled("id").alias("twice"), functions.lit("x").alias("text"))
"""
PANDAS = """
def model(dbt, session):
    return dbt.ref("functions").toPandas()
"""


KEYED = """
{{ config(materialized="incremental", unique_key="id", buckets=2) }}
{% if is_incremental() %}
select id, -twice as twice from {{ ref("functions") }} where id > 0 union all select 3, 9
{% else %}
select id, twice from {{ ref("functions") }}
{% endif %}
"""


class TestPythonModelOnConnect:
    """What code usually imports works there too: functions, UDFs, pandas. A keyed table over its rows."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"functions.py": FUNCTIONS, "copied.py": PANDAS, "keyed.sql": KEYED}

    def test_functions_pandas_and_a_keyed_table(self, project: Any) -> None:
        results = run_dbt(["run"])
        assert [result.status for result in results] == ["success"] * 3
        rows = project.run_sql("select * from {schema}.copied order by id", fetch="all")
        assert rows == [(0, 0, "x"), (1, 2, "x"), (2, 4, "x")]
        assert [result.status for result in run_dbt(["run", "--select", "keyed"])] == ["success"]
        rows = project.run_sql("select * from {schema}.keyed order by id", fetch="all")
        assert rows == [(0, 0), (1, -2), (2, -4), (3, 9)]
