"""Classes of dbt's suite with the target of a cell of the matrix. Only ``make matrix`` runs them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.dbt.suite.conftest import *  # noqa: F403
from tests.dbt.suite.conftest import _schemas_are_left  # noqa: F401  # for every test
from tests.matrix.parts import TARGET

del pytest_collection_modifyitems  # it is about that folder  # noqa: F821
collect_ignore = [] if TARGET in os.environ else ["test_smoke.py"]


@pytest.fixture(scope="class")
def dbt_profile_target() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(os.environ[TARGET]).read_text(encoding="utf-8"))
    return found
