"""The suite's snapshot classes: strategies, hard deletes, new columns, names of the added columns."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from dbt.tests.adapter.simple_snapshot import test_various_configs
from dbt.tests.adapter.simple_snapshot.new_record_check_mode import BaseSnapshotNewRecordCheckMode
from dbt.tests.adapter.simple_snapshot.new_record_dbt_valid_to_current import (
    BaseSnapshotNewRecordDbtValidToCurrent,
)
from dbt.tests.adapter.simple_snapshot.new_record_timestamp_mode import BaseSnapshotNewRecordTimestampMode
from dbt.tests.adapter.simple_snapshot.test_ephemeral_snapshot_hard_deletes import (
    BaseSnapshotEphemeralHardDeletes,
    BaseSnapshotNewColumnSpecificCheckCols,
    BaseSnapshotNewColumnTimestampStrategy,
    BaseSnapshotNewColumnWithDeletes,
)
from dbt.tests.adapter.simple_snapshot.test_snapshot import BaseSimpleSnapshot, BaseSnapshotCheck
from dbt.tests.util import check_relations_equal, run_dbt


@pytest.mark.long
class TestSnapshotTimestamp(BaseSimpleSnapshot):
    pass


@pytest.mark.long
class TestSnapshotCheck(BaseSnapshotCheck):
    pass


@pytest.mark.long
class TestSnapshotColumnNames(test_various_configs.BaseSnapshotColumnNames):
    pass


@pytest.mark.long
class TestSnapshotColumnNamesFromDbtProject(test_various_configs.BaseSnapshotColumnNamesFromDbtProject):
    pass


@pytest.mark.long
class TestSnapshotInvalidColumnNames(test_various_configs.BaseSnapshotInvalidColumnNames):
    pass


@pytest.mark.long
class TestSnapshotMultiUniqueKey(test_various_configs.BaseSnapshotMultiUniqueKey):
    pass


@pytest.mark.long
class TestSnapshotValidToCurrent(test_various_configs.BaseSnapshotDbtValidToCurrent):
    """As in the suite, with rows found by their key: Spark returns them in no order."""

    def test_valid_to_current(self, project: Any) -> None:
        current = dt.datetime(2099, 12, 31, tzinfo=dt.timezone.utc)
        ends_sql = "select id, test_valid_to from {schema}.snapshot_actual order by id, test_valid_to"
        for statement in (
            test_various_configs.create_seed_sql,
            test_various_configs.create_snapshot_expected_sql,
            test_various_configs.seed_insert_sql,
        ):
            project.run_sql(statement)
        project.run_sql(test_various_configs.populate_snapshot_expected_valid_to_current_sql)
        assert len(run_dbt(["snapshot"])) == 1
        assert {utc(end) for _, end in project.run_sql(ends_sql, fetch="all")} == {current}

        project.run_sql(test_various_configs.invalidate_sql)
        project.run_sql(test_various_configs.update_with_current_sql)
        assert len(run_dbt(["snapshot"])) == 1
        ends: dict[int, list[dt.datetime]] = {}
        for key, end in project.run_sql(ends_sql, fetch="all"):
            ends.setdefault(key, []).append(utc(end))
        assert ends[1] == [current]
        assert ends[10] == [dt.datetime(2016, 8, 20, 16, 44, 49, tzinfo=dt.timezone.utc), current]
        check_relations_equal(project.adapter, ["snapshot_actual", "snapshot_expected"])


@pytest.mark.long
class TestSnapshotNewRecordTimestampMode(BaseSnapshotNewRecordTimestampMode):
    pass


@pytest.mark.long
class TestSnapshotNewRecordCheckMode(BaseSnapshotNewRecordCheckMode):
    pass


@pytest.mark.long
class TestSnapshotNewRecordValidToCurrent(BaseSnapshotNewRecordDbtValidToCurrent):
    pass


@pytest.mark.long
class TestSnapshotEphemeralHardDeletes(BaseSnapshotEphemeralHardDeletes):
    pass


@pytest.mark.long
class TestSnapshotNewColumnTimestampStrategy(BaseSnapshotNewColumnTimestampStrategy):
    pass


@pytest.mark.long
class TestSnapshotNewColumnSpecificCheckCols(BaseSnapshotNewColumnSpecificCheckCols):
    pass


@pytest.mark.long
class TestSnapshotNewColumnWithDeletes(BaseSnapshotNewColumnWithDeletes):
    pass


SOURCE = "{{ config(materialized='table') }} select id, 'x' as v from range({{ var('rows', 2) }})"


@pytest.mark.long
class TestEachModeOfHardDeletes:
    """What is left of a row that the source no longer has, and comes back as."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"source_rows.sql": SOURCE}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        entries = [
            f"  - name: snapshot_{mode}\n    relation: ref('source_rows')\n    config: {{unique_key: id, "
            f"strategy: check, check_cols: all, hard_deletes: {mode}}}\n"
            for mode in ("ignore", "invalidate", "new_record")
        ]
        return {"snapshots.yml": "snapshots:\n" + "".join(entries)}

    def test_a_row_goes_and_comes_back(self, project: Any) -> None:
        for rows in (2, 1, 2):
            run_dbt(["build", "--vars", f"rows: {rows}"])
        closed_and_open = (
            "select count(dbt_valid_to), count(*) - count(dbt_valid_to) from {schema}.%s where id = 1"
        )

        def history(mode: str) -> tuple[int, int]:
            found: tuple[int, int] = project.run_sql(closed_and_open % f"snapshot_{mode}", fetch="one")
            return found

        assert history("ignore") == (0, 1)
        assert history("invalidate") == (1, 1)
        # The row, its deletion, and the row again.
        assert history("new_record") == (2, 1)
        deleted = (
            "select dbt_is_deleted from {schema}.snapshot_new_record where id = 1 order by dbt_valid_from"
        )
        assert [row[0] for row in project.run_sql(deleted, fetch="all")] == ["False", "True", "False"]


def utc(value: dt.datetime) -> dt.datetime:
    return value.astimezone(dt.timezone.utc)
