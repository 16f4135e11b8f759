"""The suite's classes on functions that an adapter does not support, and what a SQL function meets."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.functions import files
from dbt.tests.adapter.functions.test_udfs import (
    ErrorForUnsupportedType,
    PythonUDFEntryPointRequired,
    PythonUDFNotSupported,
    PythonUDFRuntimeVersionRequired,
)
from dbt.tests.util import run_dbt


@pytest.mark.long
class TestErrorForUnsupportedType(ErrorForUnsupportedType):
    pass


class TestPythonUDFNotSupported(PythonUDFNotSupported):
    pass


@pytest.mark.long
class TestPythonUDFRuntimeVersionRequired(PythonUDFRuntimeVersionRequired):
    pass


@pytest.mark.long
class TestPythonUDFEntryPointRequired(PythonUDFEntryPointRequired):
    pass


class TestSqlFunctionIsRefused:
    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {"price_for_xlarge.sql": files.MY_UDF_SQL, "price_for_xlarge.yml": files.MY_UDF_YML}

    def test_it_says_what_to_do_instead(self, project: Any) -> None:
        message = run_dbt(["build"], expect_pass=False).results[0].message
        assert "AR-301" in message
        assert "make it a macro" in message
