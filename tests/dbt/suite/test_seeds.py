"""The suite's seed classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures, seeds
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedConfigFullRefreshOn,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
    BaseTestEmptySeed,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.util import check_table_does_exist, run_dbt


class DownstreamStays:
    """A seed is replaced and never dropped, so what was built from it stays, also with ``--full-refresh``."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


class TestBasicSeeds(DownstreamStays, BaseBasicSeedTests):
    pass


@pytest.mark.long
class TestSeedConfigFullRefreshOn(DownstreamStays, BaseSeedConfigFullRefreshOn):
    pass


@pytest.mark.long
class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


@pytest.mark.long
class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


@pytest.mark.long
class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


@pytest.mark.long
class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    pass


@pytest.mark.long
class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


@pytest.mark.long
class TestSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    drops_like_a_user = True

    @pytest.fixture
    def clear_test_schema(self, project: Any) -> Iterator[None]:
        """As in the suite, with the adapter's own way to drop a schema and all that is in it."""
        yield
        with project.adapter.connection_named("__test"):
            relation = project.adapter.Relation.create(database=project.database, schema=project.test_schema)
            project.adapter.drop_schema(relation)


class TestSeedParsing(BaseSeedParsing):
    pass


@pytest.mark.long
class TestSeedWithByteOrderMark(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:  # the suite's name
        project.run_sql(seeds.seeds__expected_sql)
        path = Path(project.project_root) / "seeds" / "seed_bom.csv"
        path.write_text(seeds.seed__actual_csv, encoding="utf-8-sig")


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    pass


class TestEmptySeed(BaseTestEmptySeed):
    pass


@pytest.mark.long
class TestSeedColumnOverride(BaseSimpleSeedColumnOverride):
    """Types in Spark's words."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        schema = fixtures.properties__schema_yml
        for found, replacement in (
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
            ("type: timestamp without time zone", "type: timestamp"),
        ):
            schema = schema.replace(found, replacement)
        return {"schema.yml": schema}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}


TRICKY = """id,said,amount,day,at
1,"it's ""so"" \\o/ {{ x }}",1.50,2024-02-29,2024-02-29 23:59:59.5
2,"two
lines; -- no comment",-7,1969-12-31,1969-12-31 00:00:00
3,,,,
"""


class TestSeedValues:
    """What is in the file is in the table, and what cannot be is an error that leaves the table as it was."""

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"tricky.csv": TRICKY}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"test": {"tricky": {"+column_types": {"amount": "decimal(10,2)"}}}}}

    def test_every_value_survives(self, project: Any) -> None:
        run_dbt(["seed"])
        rows = project.run_sql(
            "select id, said, cast(amount as string), cast(day as string), cast(at as string) "
            "from {schema}.tricky order by id",
            fetch="all",
        )
        assert rows == [
            (1, 'it\'s "so" \\o/ {{ x }}', "1.50", "2024-02-29", "2024-02-29 23:59:59.5"),
            (2, "two\nlines; -- no comment", "-7.00", "1969-12-31", "1969-12-31 00:00:00"),
            (3, None, None, None, None),
        ]

    def test_other_columns_replace_the_table_and_a_bad_value_does_not(self, project: Any) -> None:
        path = Path(project.project_root) / "seeds" / "tricky.csv"
        path.write_text("id,amount\n1,7.25\n", encoding="utf-8")
        run_dbt(["seed"])
        assert project.run_sql("select * from {schema}.tricky", fetch="all")[0][0] == 1
        path.write_text("id,amount\n1,seven\n", encoding="utf-8")
        result = run_dbt(["seed"], expect_pass=False).results[0]
        assert "seven" in result.message
        assert "amount" in result.message
        assert "DECIMAL(10,2)" in result.message
        assert project.run_sql("select count(*) from {schema}.tricky", fetch="one") == (1,)

    def test_a_view_of_the_same_name_makes_way(self, project: Any) -> None:
        path = Path(project.project_root) / "seeds" / "tricky.csv"
        path.write_text("id,amount\n1,2\n", encoding="utf-8")
        project.run_sql("drop table if exists {schema}.tricky")
        project.run_sql("create view {schema}.tricky as select 'old' as id")
        run_dbt(["seed"])
        assert project.run_sql("select id from {schema}.tricky", fetch="all") == [(1,)]
        check_table_does_exist(project.adapter, "tricky")
