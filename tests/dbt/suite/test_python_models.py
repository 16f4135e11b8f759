"""The suite's Python models: run in dbt's own process, written as SQL models are."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import (
    PANDAS_MODEL,
    PANDAS_ON_SPARK_MODEL,
    PYSPARK_MODEL,
    BasePySparkTests,
)


class TestPythonModel(BasePythonModelTests):
    pass


@pytest.mark.long
class TestPythonIncremental(BasePythonIncrementalTests):
    pass


class TestPythonIncrementalKeyed(BasePythonIncrementalTests):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "upsert"}}


@pytest.mark.long
class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass


# Spark runs already when the first of these models imports pandas-on-Spark.
@pytest.mark.filterwarnings("ignore:'PYARROW_IGNORE_TIMEZONE'")
class TestPySpark(BasePySparkTests):
    """Koalas ended with Spark 3.2, as what pyspark.pandas is now: the fourth model says it in that name."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "pandas_df.py": PANDAS_MODEL,
            "pyspark_df.py": PYSPARK_MODEL,
            "pandas_on_spark_df.py": PANDAS_ON_SPARK_MODEL,
            "koalas_df.py": PANDAS_ON_SPARK_MODEL.replace("as ps", "as ks").replace("ps.", "ks."),
        }
