"""The suite's class on `--sample`."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.sample_mode import fixtures
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest


class TestSampleMode(BaseSampleModeTest):
    @pytest.fixture(scope="class")
    def input_model_sql(self) -> str:
        """Spark writes an offset with its minutes."""
        return fixtures.input_model_sql.replace("00-0'", "00-00:00'")
