"""The suite's classes on `dbt debug`."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_debug.test_dbt_debug import BaseDebugInvalidProjectPostgres, BaseDebugPostgres


class TestDebug(BaseDebugPostgres):
    pass


@pytest.mark.long
class TestDebugInvalidProject(BaseDebugInvalidProjectPostgres):
    pass
