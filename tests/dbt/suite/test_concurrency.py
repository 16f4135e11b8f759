"""The suite's concurrency class: several models at once, some of which fail."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.concurrency.test_concurrency import BaseConcurrency


@pytest.mark.long
class TestConcurrency(BaseConcurrency):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "threads": 4}
