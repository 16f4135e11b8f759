"""The suite's class on the types of columns."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.column_types import fixtures
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes


class TestColumnTypes(BasePostgresColumnTypes):
    """Types in Spark's words. Iceberg stores a SMALLINT as an INT."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        sql = """
            select
                1::smallint as smallint_col,
                2::integer as int_col,
                3::bigint as bigint_col,
                4.0::real as real_col,
                5.0::double as double_col,
                6.0::numeric as numeric_col,
                '7'::string as text_col,
                '8'::varchar(20) as varchar_col
            """
        return {"model.sql": sql, "schema.yml": fixtures.schema_yml}
