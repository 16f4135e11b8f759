"""The suite's microbatch class: on a keyed table (its model has a key), and on plain ones."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental import test_incremental_microbatch as suite
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch


@pytest.mark.long
class TestMicrobatchOfKeyedTables(BaseMicrobatch):
    pass


@pytest.mark.long
class TestMicrobatch(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return suite._microbatch_model_sql.replace("unique_key='id', ", "")


@pytest.mark.long
class TestMicrobatchByPartition(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return suite._microbatch_model_sql.replace("unique_key='id'", "partition_by='day(event_time)'")
