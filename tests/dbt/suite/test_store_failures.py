"""The suite's classes on tests whose failing rows are stored."""

from __future__ import annotations

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


class TestStoreFailures(BaseStoreTestFailures):
    pass


class TestStoreFailuresLimit(BaseStoreTestFailuresLimit):
    pass


class TestStoreFailuresAsInteractions(StoreTestFailuresAsInteractions):
    pass


class TestStoreFailuresAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreFailuresAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreFailuresAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreFailuresAsGeneric(StoreTestFailuresAsGeneric):
    pass


class TestStoreFailuresAsExceptions(StoreTestFailuresAsExceptions):
    pass
