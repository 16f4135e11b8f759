"""The suite's classes on contracts and constraints once more, with keyed tables."""

from __future__ import annotations

import re

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints.test_constraints import (
    BaseConstraintQuotedColumn,
    BaseConstraintsColumnsEqual,
    BaseConstraintsRollback,
    BaseConstraintsRuntimeDdlEnforcement,
    BaseContractSqlHeader,
    BaseModelConstraintsRuntimeEnforcement,
    _find_and_replace,
)

from dbt_arctic.keyed.checks import EXACT_JSON
from tests.dbt.suite.test_constraints import SparkTypes, with_header_of_spark

KEYED = "materialized='incremental', unique_key='id', on_schema_change='append_new_columns'"


def keyed(model: str, key: str = "id") -> str:
    """A model of the suite as a keyed one."""
    select = re.sub(r"^\s*\{\{\s*config\(.*?\)\s*\}\}", "", model, flags=re.DOTALL)
    return "{{ config(" + KEYED.replace("'id'", f"'{key}'") + ") }}\n" + select


@pytest.mark.long
class TestKeyedColumnsEqual(SparkTypes, BaseConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": keyed(fixtures.my_model_wrong_order_sql),
            "my_model_wrong_name.sql": keyed(fixtures.my_model_wrong_name_sql).replace("'id'", "'error'"),
            "constraints_schema.yml": fixtures.model_schema_yml,
        }


class TestKeyedRuntimeEnforcement(BaseConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": keyed(fixtures.my_model_wrong_order_depends_on_fk_sql),
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": fixtures.model_fk_constraint_schema_yml,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [("not ((id > 0))", "check on id", "check (id > 0)")]
        checks += [("not (id >= 1)", "check on id", "check id >= 1")]
        return filled(
            checks, ["id", "color", "date_day"], "'blue' as color, 1 as id, '2019-01-01' as date_day"
        )


class TestKeyedModelRuntimeEnforcement(BaseModelConstraintsRuntimeEnforcement):
    """The primary key of the contract is the unique_key."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": keyed(fixtures.my_model_wrong_order_depends_on_fk_sql),
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": fixtures.constrained_model_schema_yml,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [("not ((id > 0))", "check", "check (id > 0)"), ("not (id >= 1)", "check", "check id >= 1")]
        return filled(
            checks, ["id", "color", "date_day"], "'blue' as color, 1 as id, '2019-01-01' as date_day"
        )


class TestKeyedQuotedColumn(BaseConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        schema = fixtures.model_quoted_column_schema_yml.replace("      materialized: table\n", "")
        return {
            "my_model.sql": keyed(fixtures.my_model_with_quoted_column_name_sql),
            "constraints_schema.yml": schema.replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        checks = [
            ("`from` is null", "not_null on from", "not_null on from"),
            ("not ((`from` = 'blue'))", "check on from", "check (`from` = 'blue')"),
        ]
        return filled(
            checks, ["id", "from", "date_day"], "'blue' as `from`, 1 as id, '2019-01-01' as date_day"
        )


class TestKeyedRollback(BaseConstraintsRollback):
    """NULL comes into the column that is the key, and a keyed table refuses it with or without a contract."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": keyed(fixtures.my_model_sql),
            "constraints_schema.yml": fixtures.model_schema_yml,
        }

    @pytest.fixture(scope="class")
    def null_model_sql(self) -> str:
        return keyed(fixtures.my_model_with_nulls_sql)

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["AR-303", "a row has NULL in its key"]


class TestKeyedContractSqlHeader(BaseContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        model = keyed(fixtures.my_model_contract_sql_header_sql, "column_name")
        return with_header_of_spark(
            {
                "my_model_contract_sql_header.sql": model,
                "constraints_schema.yml": fixtures.model_contract_header_schema_yml,
            }
        )


def filled(checks: list[tuple[str, str, str]], columns: list[str], select: str) -> str:
    """The statement that fills a base table whose key is `id`, each check as condition, title and text."""
    listed = ", ".join(f"`{column}`" for column in columns)
    json = f"to_json(struct(`id`), {EXACT_JSON})"
    row = f"replace(left({json}, 300), '|', '/')"
    where = "|my_model|every write checks the model\\'s contract; nothing was written"
    broken = " ".join(
        f"WHEN {condition} THEN raise_error(concat('AR-307|a row violates the constraint {title}: ', {row}, "
        f"'{where}|correct these rows or filter them out in the model, or change the constraint: "
        f"{escaped(text)}'))"
        for condition, title, text in checks
    )
    null_key = (
        f"concat('AR-303|a row has NULL in its key: ', {row}, '|my_model|a key must identify "
        "the row that an update or delete is meant for|filter these rows out in the model, or give them a "
        "key with coalesce()')"
    )
    depends_on = "-- depends_on: <foreign_key_model_identifier> " if "color" in columns else ""
    statement = f"""
INSERT INTO my_model__base_1 WITH (
  `use-table-distribution-and-ordering`='false', `fanout-enabled`='true', run_of_my_model) ({listed})
SELECT {listed} FROM (
SELECT /*+ REBALANCE(`_arctic_bucket`) */ * FROM (
SELECT *, `lake`.system.bucket(1, `id`) AS `_arctic_bucket` FROM (
SELECT {listed} FROM (
  SELECT {listed}, 'U' AS `_action`,
    CASE WHEN `id` IS NULL THEN CAST(raise_error({null_key}) AS BIGINT) {broken} ELSE 0L END AS `_offset`,
    CAST(0 AS BIGINT) AS `_txn`
  FROM (SELECT {listed} FROM ({depends_on} select {select}) AS model_subq)
) WHERE `_offset` = CASE WHEN `_action` = 'U' THEN least(spark_partition_id(), 0) END
))) SORT BY `id`
"""
    return str(_find_and_replace(statement, "my_model", "<model_identifier>"))


def escaped(text: str) -> str:
    return text.replace("'", "\\'")
