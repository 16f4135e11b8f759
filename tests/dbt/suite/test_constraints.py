"""The suite's classes on contracts and constraints, on plain tables and views."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseIncrementalConstraintsColumnsEqual,
    BaseIncrementalConstraintsRollback,
    BaseIncrementalConstraintsRuntimeDdlEnforcement,
    BaseIncrementalContractSqlHeader,
    BaseIncrementalForeignKeyConstraint,
    BaseModelConstraintsRuntimeEnforcement,
    BaseTableConstraintsColumnsEqual,
    BaseTableContractSqlHeader,
    BaseViewConstraintsColumnsEqual,
    _find_and_replace,
)

from dbt_arctic.keyed.checks import Check, when_broken

ID_NOT_NULL = Check("not_null on id", "not_null on id", "`id` IS NULL")
ID_POSITIVE = Check("check on id", "check (id > 0)", "NOT ( (id > 0) )")
ID_FROM_ONE = Check("check on id", "check id >= 1", "NOT ( id >= 1 )")
PROPERTIES = """
using iceberg tblproperties ('format-version' = '3', 'write.delete.mode' = 'merge-on-read',
'write.merge.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read',
'write.spark.fanout.enabled' = 'false')
"""


def checked_by(checks: list[Check], shown: list[str], column: str, model: str = "my_model") -> str:
    """The column that carries a model's checks, as its statement computes it."""
    text = f"case {' '.join(when_broken(checks, shown, model))} else `{column}` end as `{column}`"
    return str(_find_and_replace(text, model, "<model_identifier>"))  # as the suite does with what was run


class SparkTypes:
    """Every kind of type, as Spark writes it in SQL and shows it; Spark has no type for JSON."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["TIMESTAMP '2013-11-03 00:00:00-07:00'", "timestamp", "timestamp"],
            ["TIMESTAMP_NTZ '2013-11-03 00:00:00'", "timestamp_ntz", "timestamp_ntz"],
            ["array('a','b','c')", "array<string>", "array<string>"],
            ["array(1,2,3)", "array<int>", "array<int>"],
            ["cast('1' as decimal(10, 2))", "decimal(10, 2)", "decimal(10,2)"],
            ["named_struct('a', 'b', 'c', 7.77D)", "struct<a:string,c:double>", "struct<a:string,c:double>"],
        ]


@pytest.mark.long
class TestTableColumnsEqual(SparkTypes, BaseTableConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestViewColumnsEqual(SparkTypes, BaseViewConstraintsColumnsEqual):
    pass


@pytest.mark.long
class TestIncrementalColumnsEqual(SparkTypes, BaseIncrementalConstraintsColumnsEqual):
    pass


class ChecksInTheWrite:
    """Iceberg has no constraints in its DDL: the statement that writes the table checks each row."""

    create = "create or replace table"

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [ID_NOT_NULL, ID_POSITIVE, ID_FROM_ONE]
        return f"""
{self.create} <model_identifier> {PROPERTIES} as
select `id`, `color`, {checked_by(checks, ["id", "color", "date_day"], "date_day")}
from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class TestTableRuntimeEnforcement(ChecksInTheWrite, BaseConstraintsRuntimeDdlEnforcement):
    pass


class TestIncrementalRuntimeEnforcement(ChecksInTheWrite, BaseIncrementalConstraintsRuntimeDdlEnforcement):
    create = "create table"  # its first run


class TestModelRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [
            ID_NOT_NULL,
            Check("check", ID_POSITIVE.text, ID_POSITIVE.broken),
            Check("check", ID_FROM_ONE.text, ID_FROM_ONE.broken),
        ]
        return f"""
create or replace table <model_identifier> {PROPERTIES} as
select `id`, `color`, {checked_by(checks, ["id", "color", "date_day"], "date_day")}
from (
    -- depends_on: <foreign_key_model_identifier>
    select 'blue' as color, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class TestQuotedColumn(BaseConstraintQuotedColumn):
    """As in the suite; Spark quotes a name with backticks."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": fixtures.model_quoted_column_schema_yml.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [
            ID_NOT_NULL,
            Check("not_null on from", "not_null on from", "`from` IS NULL"),
            Check("check on from", "check (`from` = 'blue')", "NOT ( (`from` = 'blue') )"),
        ]
        return f"""
create or replace table <model_identifier> {PROPERTIES} as
select `id`, `from`, {checked_by(checks, ["id", "from", "date_day"], "date_day")}
from (
    select 'blue' as `from`, 1 as id, '2019-01-01' as date_day
) as model_subq
"""


class SaysWhichRow:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["AR-307", "not_null on id", '"id":null', '"color":"red"', "nothing was written"]


class TestTableRollback(SaysWhichRow, BaseConstraintsRollback):
    pass


@pytest.mark.long
class TestIncrementalRollback(SaysWhichRow, BaseIncrementalConstraintsRollback):
    pass


def with_header_of_spark(models: dict[str, str]) -> dict[str, str]:
    """Spark's words for the session's time zone."""
    return {
        name: text.replace("set session time zone", "set time zone").replace(
            "current_setting('timezone')", "current_timezone()"
        )
        for name, text in models.items()
    }


class TestTableContractSqlHeader(BaseTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return with_header_of_spark(
            {
                "my_model_contract_sql_header.sql": fixtures.my_model_contract_sql_header_sql,
                "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
            }
        )

    def test_the_header_came_first(self, project: Any) -> None:
        rows = project.run_sql("select column_name from {schema}.my_model_contract_sql_header", fetch="all")
        assert [tuple(row) for row in rows] == [("Asia/Kolkata",)]


class TestIncrementalContractSqlHeader(BaseIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return with_header_of_spark(
            {
                "my_model_contract_sql_header.sql": fixtures.my_model_incremental_contract_sql_header_sql,
                "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
            }
        )


@pytest.mark.long
class TestIncrementalForeignKey(BaseIncrementalForeignKeyConstraint):
    """Its model has a unique_key, so its table is keyed. Nothing enforces a foreign key, as dbt warns."""
