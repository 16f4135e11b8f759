"""The suite's incremental classes: on plain tables with dbt's strategies, and on keyed tables."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import test_incremental_unique_id as suite
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import BaseMergeExcludeColumns
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import BaseIncrementalOnSchemaChange
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import (
    BaseIncrementalUniqueKey,
    SubBaseIncrementalUniqueKey,
)
from dbt.tests.util import run_dbt


@pytest.mark.long
class TestPredicates(BaseIncrementalPredicates):
    pass


@pytest.mark.long
class TestPredicatesByTheirOldName(BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+predicates": ["id != 2"], "+incremental_strategy": "delete+insert"}}


@pytest.mark.long
class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


@pytest.mark.long
class TestUniqueKeyWithMerge(SubBaseIncrementalUniqueKey):
    """Its models without a key are left out: they append, which ``TestUniqueKeyOfKeyedTables`` runs."""

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "merge"}}

    test__bad_unique_key = BaseIncrementalUniqueKey.test__bad_unique_key
    test__bad_unique_key_list = BaseIncrementalUniqueKey.test__bad_unique_key_list
    test__one_unique_key = BaseIncrementalUniqueKey.test__one_unique_key
    test__unary_unique_key_list = BaseIncrementalUniqueKey.test__unary_unique_key_list
    test__duplicated_unary_unique_key_list = BaseIncrementalUniqueKey.test__duplicated_unary_unique_key_list
    test__trinary_unique_key_list = BaseIncrementalUniqueKey.test__trinary_unique_key_list
    test__trinary_unique_key_list_no_update = BaseIncrementalUniqueKey.test__trinary_unique_key_list_no_update


@pytest.mark.long
class TestUniqueKeyWithDeleteInsert(TestUniqueKeyWithMerge):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "delete+insert"}}


@pytest.mark.long
class TestUniqueKeyOfKeyedTables(BaseIncrementalUniqueKey):
    """The default strategy, on the suite's rows made unique: one row a state, every city named."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "duplicate_insert.sql": suite.seeds__duplicate_insert_sql,
            "seed.csv": with_real_keys(suite.seeds__seed_csv),
            "add_new_rows.sql": suite.seeds__add_new_rows_sql,
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, Any]:
        return {
            "trinary_unique_key_list.sql": suite.models__trinary_unique_key_list_sql,
            "nontyped_trinary_unique_key_list.sql": suite.models__nontyped_trinary_unique_key_list_sql,
            "unary_unique_key_list.sql": suite.models__unary_unique_key_list_sql,
            "not_found_unique_key.sql": suite.models__not_found_unique_key_sql,
            "empty_unique_key_list.sql": suite.models__empty_unique_key_list_sql,
            "no_unique_key.sql": suite.models__no_unique_key_sql,
            "empty_str_unique_key.sql": suite.models__empty_str_unique_key_sql,
            "str_unique_key.sql": suite.models__str_unique_key_sql,
            "duplicated_unary_unique_key_list.sql": suite.models__duplicated_unary_unique_key_list_sql,
            "not_found_unique_key_list.sql": suite.models__not_found_unique_key_list_sql,
            "one_str__overwrite.sql": with_real_keys(suite.models__expected__one_str__overwrite_sql),
            "unique_key_list__inplace_overwrite.sql": with_real_keys(
                suite.models__expected__unique_key_list__inplace_overwrite_sql
            ),
        }

    def get_expected_fields(self, relation: str, seed_rows: int, opt_model_count: int | None = None) -> Any:
        return super().get_expected_fields(relation, seed_rows - 1, opt_model_count)

    def test__bad_unique_key(self, project: Any) -> None:
        assert_first_build_fails("not_found_unique_key", "AR-302", "thisisnotacolumn")

    def test__bad_unique_key_list(self, project: Any) -> None:
        assert_first_build_fails("not_found_unique_key_list", "AR-302", "thisisnotacolumn")

    def test__duplicated_unary_unique_key_list(self, project: Any) -> None:
        assert_first_build_fails("duplicated_unary_unique_key_list", "AR-301", "contains a column twice")


WITHOUT_KEY = ("empty_unique_key_list", "no_unique_key", "empty_str_unique_key")
WITH_KEY = (
    *("str_unique_key", "unary_unique_key_list", "trinary_unique_key_list"),
    "nontyped_trinary_unique_key_list",
)
REFUSED = {
    "not_found_unique_key": ("AR-302", "thisisnotacolumn"),
    "not_found_unique_key_list": ("AR-302", "thisisnotacolumn"),
    "duplicated_unary_unique_key_list": ("AR-301", "contains a column twice"),
}


class TestEachFormOfUniqueKey:
    """The models of the class above in one project: each is built once and refreshed once."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seed.csv": with_real_keys(suite.seeds__seed_csv)}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        names = (*WITHOUT_KEY, *WITH_KEY, *REFUSED)
        return {f"{name}.sql": getattr(suite, f"models__{name}_sql") for name in names}

    def test_rows_of_a_key_are_replaced_and_others_are_added(self, project: Any) -> None:
        results = run_dbt(["build"], expect_pass=False).results
        failed = {one.node.name: one.message for one in results if str(one.status) == "error"}
        assert failed.keys() == REFUSED.keys()
        for name, words in REFUSED.items():
            assert all(word in failed[name] for word in words), failed[name]
        first = rows_of(project, "seed")
        for statements in (suite.seeds__duplicate_insert_sql, suite.seeds__add_new_rows_sql):
            project.run_sql(statements)
        run_dbt(["run", "--exclude", *REFUSED])
        every = rows_of(project, "seed")
        assert len(every) == len(first) + 3
        (old,) = (row for row in first if row[0] == "CT")
        for name in WITHOUT_KEY:
            assert rows_of(project, name) == every, name
        for name in WITH_KEY:
            assert rows_of(project, name) == [row for row in every if row != old], name


class TestKeysThatAreNotUnique(SubBaseIncrementalUniqueKey):
    """The suite's own rows: two of one state, and one without a city. A keyed table cannot hold them."""

    def test_rows_without_a_key_of_their_own_are_refused(self, project: Any) -> None:
        run_dbt(["seed", "--select", "seed"])
        selected = ["--select", "str_unique_key", "trinary_unique_key_list"]
        results = run_dbt(["run", *selected], expect_pass=False).results
        failed = {one.node.name: one.message for one in results}
        assert "AR-304" in failed["str_unique_key"]
        assert '"state":"NY"' in failed["str_unique_key"]
        assert "AR-303" in failed["trinary_unique_key_list"]
        assert '"county":"Denver"' in failed["trinary_unique_key_list"]


def rows_of(project: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(project.run_sql(f"select * from {{schema}}.{name}", fetch="all"), key=repr)


@pytest.mark.long
class TestOnSchemaChangeWithMerge(BaseIncrementalOnSchemaChange):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_strategy": "merge"}}


@pytest.mark.long
class TestOnSchemaChangeOfKeyedTables(BaseIncrementalOnSchemaChange):
    def test_run_incremental_fail_on_schema_change(self, project: Any) -> None:
        run_dbt(["run", "--select", "model_a incremental_fail", "--full-refresh"])
        results = run_dbt(["run", "--select", "model_a incremental_fail"], expect_pass=False)
        assert "AR-305" in results[1].message
        assert "new: field2 string; gone: field3" in results[1].message


def with_real_keys(text: str) -> str:
    """The suite's rows without the second one of New York, and with a name for the city that has none."""
    for found, replacement in (
        ("NY,Kings,Brooklyn,2021-04-02\n", ""),
        ("CO,Denver,,", "CO,Denver,Denver,"),
        ("select 'NY','Kings','Brooklyn','2021-04-02'\nunion all\n", ""),
        ("'CO','Denver',null", "'CO','Denver','Denver'"),
    ):
        text = text.replace(found, replacement)
    return text


def assert_first_build_fails(model: str, code: str, named: str) -> None:
    run_dbt(["seed", "--select", "seed"])
    result = run_dbt(["run", "--select", model, "--full-refresh"], expect_pass=False).results[0]
    assert code in result.message
    assert named in result.message
