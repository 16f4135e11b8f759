"""The suite's hook classes."""

from __future__ import annotations

import os
from typing import Any

import pytest
from dbt.tests.adapter.hooks import test_model_hooks as suite
from dbt.tests.adapter.hooks.test_run_hooks import BaseAfterRunHooks, BasePrePostRunHooks

COLUMNS = """(test_state string, target_dbname string, target_host string, target_name string,
    target_schema string, target_type string, target_user string, target_pass string, target_threads int,
    run_started_at string, invocation_id string, thread_id string)"""
OUTSIDE_TRANSACTION = {
    "sql": "insert into {{ this.schema }}.on_model_hook (test_state) values ('outside')",
    "transaction": False,
}


class Hooks:
    """The suite's setup without its SQL files, and with the attributes of our targets."""

    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:  # the suite's name
        project.run_sql(f"create table {project.test_schema}.on_model_hook {COLUMNS}")

    def check_hooks(self, state: str, project: Any, host: Any, count: int = 1) -> None:
        rows = project.run_sql(
            "select target_name, target_schema, target_threads, target_type, run_started_at <> '', "
            f"invocation_id <> '', thread_id from {project.test_schema}.on_model_hook "
            f"where test_state = '{state}'",
            fetch="all",
        )
        assert len(rows) == count
        for *told, thread in rows:
            assert told == ["default", project.test_schema, 2, "arctic", True, True]
            assert thread.startswith("Thread-")


class TestModelHooks(Hooks, suite.BasePrePostModelHooks):
    key = "{}-hook"

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # The suite has a `vacuum` here, which Spark does not know.
        return {
            "models": {
                "test": {
                    self.key.format("pre"): [suite.MODEL_PRE_HOOK, OUTSIDE_TRANSACTION],
                    self.key.format("post"): [OUTSIDE_TRANSACTION, suite.MODEL_POST_HOOK],
                }
            }
        }

    def test_hooks_outside_a_transaction_run_too(self, project: Any) -> None:
        counted = project.run_sql(
            "select count(*) from {schema}.on_model_hook where test_state = 'outside'", fetch="one"
        )
        assert counted == (2,)


@pytest.mark.long
class TestModelHooksUnderscores(TestModelHooks):
    key = "{}_hook"


class TestHookRefs(Hooks, suite.BaseHookRefs):
    pass


class TestHooksOnSeeds(suite.BasePrePostModelHooksOnSeeds):
    pass


@pytest.mark.long
class TestHooksRefsOnSeeds(suite.BaseHooksRefsOnSeeds):
    pass


@pytest.mark.long
class TestHooksOnSeedsPlusPrefixed(suite.BasePrePostModelHooksOnSeedsPlusPrefixed):
    pass


@pytest.mark.long
class TestHooksOnSeedsPlusPrefixedWhitespace(suite.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace):
    pass


class TestHooksOnSnapshots(suite.BasePrePostModelHooksOnSnapshots):
    pass


class TestModelHooksInConfig(Hooks, suite.BasePrePostModelHooksInConfig):
    pass


@pytest.mark.long
class TestModelHooksInConfigKwargs(Hooks, suite.BasePrePostModelHooksInConfigKwargs):
    pass


@pytest.mark.long
class TestModelHooksInConfigWithCount(Hooks, suite.BasePrePostModelHooksInConfigWithCount):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "models": {"test": {"pre-hook": [suite.MODEL_PRE_HOOK], "post-hook": [suite.MODEL_POST_HOOK]}}
        }


@pytest.mark.long
class TestSnapshotHooksInConfigKwargs(suite.BasePrePostSnapshotHooksInConfigKwargs):
    pass


@pytest.mark.long
class TestDuplicateHooksInConfigs(suite.BaseDuplicateHooksInConfigs):
    pass


class TestAfterRunHooks(BaseAfterRunHooks):
    pass


class TestRunHooks(BasePrePostRunHooks):
    @pytest.fixture
    def setUp(self, project: Any) -> None:  # the suite's name
        for table in ("on_run_hook", "schemas", "db_schemas"):
            project.run_sql(f"drop table if exists {project.test_schema}.{table}")
        project.run_sql(f"create table {project.test_schema}.on_run_hook {COLUMNS}")
        os.environ["TERM_TEST"] = "TESTING"

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        """As in the suite, with Spark's types."""
        schemas = "{% for schema in schemas %}('{{ schema }}'){% if not loop.last %},{% endif %}{% endfor %}"
        pairs = (
            "{% for db, schema in database_schemas %}('{{ db }}', '{{ schema }}')"
            "{% if not loop.last %},{% endif %}{% endfor %}"
        )
        return {
            "on-run-start": [
                "{{ custom_run_hook('start', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.start_hook_order_test ( id int )",
                "drop table {{ target.schema }}.start_hook_order_test",
                "{{ log(env_var('TERM_TEST'), info=True) }}",
            ],
            "on-run-end": [
                "{{ custom_run_hook('end', target, run_started_at, invocation_id) }}",
                "create table {{ target.schema }}.end_hook_order_test ( id int )",
                "drop table {{ target.schema }}.end_hook_order_test",
                "create table {{ target.schema }}.schemas ( schema string )",
                "insert into {{ target.schema }}.schemas (schema) values " + schemas,
                "create table {{ target.schema }}.db_schemas ( db string, schema string )",
                "insert into {{ target.schema }}.db_schemas (db, schema) values " + pairs,
            ],
            "seeds": {"quote_columns": False},
        }

    def check_hooks(self, state: str, project: Any, host: Any) -> None:
        context = self.get_ctx_vars(state, project)
        assert context["test_state"] == state
        assert context["target_name"] == "default"
        assert context["target_schema"] == project.test_schema
        assert context["target_threads"] == 2
        assert context["target_type"] == "arctic"
        assert context["run_started_at"]
        assert context["invocation_id"]
        assert context["thread_id"].startswith("Thread-") or context["thread_id"] == "MainThread"
