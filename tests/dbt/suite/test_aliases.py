"""The suite's classes on aliases."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)


class SparkLiterals:
    """The suite's macro for literals casts to PostgreSQL's TEXT, which Spark calls STRING."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL.replace("::text", "::string"),
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(SparkLiterals, BaseAliases):
    pass


@pytest.mark.long
class TestAliasErrors(SparkLiterals, BaseAliasErrors):
    pass


@pytest.mark.long
class TestSameAliasDifferentSchemas(SparkLiterals, BaseSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(SparkLiterals, BaseSameAliasDifferentDatabases):
    pass
