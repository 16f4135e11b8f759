"""The suite's models for dbt's cross-database macros and types that we define, in one project.

The long form has the suite's classes, with a project each (`test_utils.py`).
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from dbt.tests.adapter.utils import (
    base_utils,
    fixture_dateadd,
    fixture_datediff,
    fixture_escape_single_quotes,
    fixture_get_intervals_between,
    fixture_listagg,
    fixture_safe_cast,
    fixture_split_part,
    test_current_timestamp,
    test_timestamps,
)
from dbt.tests.adapter.utils.data_types import test_type_float, test_type_int, test_type_numeric
from dbt.tests.util import get_relation_columns, run_dbt

from tests.dbt.suite.test_utils import TIMESTAMP_SQL, in_iso

MACROS = {
    "dateadd": fixture_dateadd,
    "datediff": fixture_datediff,
    "get_intervals_between": fixture_get_intervals_between,
    "listagg": fixture_listagg,
    "safe_cast": fixture_safe_cast,
    "split_part": fixture_split_part,
}
TYPES = {"float": test_type_float, "int": test_type_int, "numeric": test_type_numeric}
QUOTES = ("quote", "backslash")


class TestMacrosAndTypesOfOurs(base_utils.BaseUtils):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """A seed's numbers are BIGINT or DOUBLE, and its times strings, unless it says more."""
        types = {
            "data_dateadd": {"from_time": "timestamp", "result": "timestamp"},
            "expected_float": {"float_col": "float"},
            "expected_int": {"int_col": "int"},
        }
        return {"seeds": {"test": {name: {"+column_types": columns} for name, columns in types.items()}}}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        seeds = {f"expected_{name}.csv": module.seeds__expected_csv for name, module in TYPES.items()}
        described = test_type_numeric.seeds__expected_yml.format("numeric(28,6)")
        seeds["expected_numeric.yml"] = described.replace("name: expected", "name: expected_numeric")
        prefix, suffix = "seeds__", "_csv"
        for module in MACROS.values():
            for name in dir(module):
                if name.startswith(prefix):
                    seeds[f"{name.removeprefix(prefix).removesuffix(suffix)}.csv"] = getattr(module, name)
        return seeds

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        models = {f"actual_{name}.sql": module.models__actual_sql for name, module in TYPES.items()}
        for name, module in MACROS.items():
            models[f"test_{name}.sql"] = in_iso(getattr(module, f"models__test_{name}_sql"))
            models[f"test_{name}.yml"] = getattr(module, f"models__test_{name}_yml")
        fixture = fixture_escape_single_quotes
        for kind in QUOTES:
            models[f"test_{kind}.sql"] = getattr(fixture, f"models__test_escape_single_quotes_{kind}_sql")
            described = fixture.models__test_escape_single_quotes_yml
            models[f"test_{kind}.yml"] = described.replace("test_escape_single_quotes", f"test_{kind}")
        models["current_ts.sql"] = test_current_timestamp.models__current_ts_sql
        models["current_timestamps.sql"] = test_timestamps._MODEL_CURRENT_TIMESTAMP
        return models

    def test_build_assert_equal(self, project: Any) -> None:
        results = {one.node.name: one for one in run_dbt(["build"])}
        # One test of each macro, and two of either way to quote.
        assert sum(name.startswith("assert_equal") for name in results) == len(MACROS) + 2 * len(QUOTES)
        for name in TYPES:
            expected, actual = (f"{side}_{name}" for side in ("expected", "actual"))
            assert get_relation_columns(project.adapter, expected) == get_relation_columns(
                project.adapter, actual
            )
            rows = [
                project.run_sql(f"select * from {{schema}}.{side}", fetch="all")
                for side in (expected, actual)
            ]
            assert rows[0] == rows[1]
        (now,) = project.run_sql("select current_ts_column from {schema}.current_ts", fetch="one")
        assert abs(now - dt.datetime.now(dt.timezone.utc)) < dt.timedelta(minutes=5)
        # Spark's TIMESTAMP is an instant, so there is one current timestamp for all three.
        assert {type_ for _, type_, *_ in get_relation_columns(project.adapter, "current_timestamps")} == {
            "timestamp"
        }
        code = results["current_timestamps"].node.compiled_code
        assert "".join(code.lower().split()) == "".join(TIMESTAMP_SQL.split())
