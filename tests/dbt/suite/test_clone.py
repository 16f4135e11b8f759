"""The suite's classes on `dbt clone`: a clone of a table is a view that dbt sees as a table."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseClonePossible,
    BaseCloneSameSourceAndTarget,
    BaseCloneSameTargetAndState,
)


@pytest.mark.long
class TestClonePossible(BaseClonePossible):
    pass


@pytest.mark.long
class TestCloneNotPossible(BaseCloneNotPossible):
    """A project may ask for plain views, as in the suite by overriding `can_clone_table`."""


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    pass


@pytest.mark.long
class TestCloneSameTargetAndState(BaseCloneSameTargetAndState):
    pass
