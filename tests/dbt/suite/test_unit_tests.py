"""The suite's classes on dbt's unit tests."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
)
from dbt.tests.adapter.unit_testing.test_types import (
    BaseUnitTestingTypes,
    BaseUnitTestingVarcharFixtureNoTruncation,
)
from dbt.tests.util import run_dbt


class TestUnitTestCaseInsensitivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestQuotedReservedWordColumnNames(BaseUnitTestQuotedReservedWordColumnNames):
    """As in the suite; Spark quotes a name with backticks."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": test_quoted_reserved_word_column_names.my_model_sql,
            "my_upstream_model.sql": "select 1 as `GROUP`",
            "unit_tests.yml": test_quoted_reserved_word_column_names.test_my_model_csv_fixtures_yml,
        }


DATA_TYPES = [
    ["1", "1"],
    ["'1'", "1"],
    ["true", "true"],
    ["1.5D", "1.5"],
    ["DATE '2020-01-02'", "2020-01-02"],
    ["TIMESTAMP '2013-11-03 00:00:00-00:00'", "2013-11-03 00:00:00-00:00"],
    ["TIMESTAMP_NTZ '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
    ["cast('1' as decimal(10, 2))", "1"],
    [
        """'{"bar": "baz", "balance": 7.77, "active": false}'""",
        """'{"bar": "baz", "balance": 7.77, "active": false}'""",
    ],
    ["array('a', 'b', 'c')", '''"array('a', 'b', 'c')"'''],
    ["array(1, 2, 3)", '"array(1, 2, 3)"'],
    ["map('a', 1)", '''"map('a', 1)"'''],
    ["named_struct('a', 1, 'b', 'c')", '''"named_struct('a', 1, 'b', 'c')"'''],
]
"""Every kind of type that Spark has, as SQL and in a unit test: none for JSON, and the complex ones."""


@pytest.mark.long
class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return DATA_TYPES


class TestUnitTestingTypesOfOneModel:
    """As the class above, in one model with a column of each type."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        columns = [f"{sql} as c{place}" for place, (sql, _) in enumerate(DATA_TYPES)]
        row = ", ".join(f"c{place}: {value}" for place, (_, value) in enumerate(DATA_TYPES))
        return {
            "upstream.sql": f"select {', '.join(columns)}",
            "kept.sql": "select * from {{ ref('upstream') }}",
            "changed.sql": "select * except (c0), c0 + 1 as c0 from {{ ref('upstream') }}",
            "unit_tests.yml": "unit_tests:\n"
            + "".join(UNIT_TEST % {"model": name, "row": row} for name in ("kept", "changed")),
        }

    def test_values_of_every_type_are_given_and_expected(self, project: Any) -> None:
        run_dbt(["run", "--select", "upstream"])
        results = run_dbt(["test"], expect_pass=False).results
        found = {one.node.name.partition("_")[0]: str(one.status) for one in results}
        assert found == {"kept": "pass", "changed": "fail"}


UNIT_TEST = """
  - name: %(model)s_has_the_row
    model: %(model)s
    given:
      - input: ref('upstream')
        rows:
          - {%(row)s}
    expect:
      rows:
        - {%(row)s}
"""


class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass
