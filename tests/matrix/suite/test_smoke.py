"""dbt's own classes in a cell of the matrix: every materialization, seeds, snapshots, tests and docs."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_incremental import BaseIncremental
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection

# The suite defines fixtures in a way that pytest 10 will no longer accept.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning")


class TestValidateConnection(BaseValidateConnection):
    pass


class TestIncremental(BaseIncremental):
    pass


class TestKeyedIncremental(BaseIncremental):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"name": "incremental", "models": {"+unique_key": "id", "+buckets": 2}}


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestViewsAndTables(BaseSimpleMaterializations):
    pass


class TestViewsOverEphemeral(BaseEphemeral):
    pass


class TestViewsWithGenericTests(BaseGenericTests):
    pass
