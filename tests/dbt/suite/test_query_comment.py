"""The suite's classes on the comment in front of each statement."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.query_comment.test_query_comment import (
    BaseEmptyQueryComments,
    BaseMacroArgsQueryComments,
    BaseMacroInvalidQueryComments,
    BaseMacroQueryComments,
    BaseNullQueryComments,
    BaseQueryComments,
)


class TestQueryComments(BaseQueryComments):
    pass


class TestMacroQueryComments(BaseMacroQueryComments):
    pass


@pytest.mark.long
class TestMacroArgsQueryComments(BaseMacroArgsQueryComments):
    pass


@pytest.mark.long
class TestMacroInvalidQueryComments(BaseMacroInvalidQueryComments):
    pass


@pytest.mark.long
class TestNullQueryComments(BaseNullQueryComments):
    pass


class TestEmptyQueryComments(BaseEmptyQueryComments):
    pass
