"""The suite's classes on tests whose failing rows are stored."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
    BaseStoreTestFailuresLimit,
)


@pytest.mark.long
class TestStoreFailures(BaseStoreTestFailures):
    pass


class TestStoreFailuresLimit(BaseStoreTestFailuresLimit):
    pass


@pytest.mark.long
class TestStoreFailuresAsInteractions(StoreTestFailuresAsInteractions):
    pass


@pytest.mark.long
class TestStoreFailuresAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    pass


@pytest.mark.long
class TestStoreFailuresAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    pass


@pytest.mark.long
class TestStoreFailuresAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreFailuresAsGeneric(StoreTestFailuresAsGeneric):
    pass


@pytest.mark.long
class TestStoreFailuresAsExceptions(StoreTestFailuresAsExceptions):
    pass
