"""dbt-core 1.12, in an environment of its own: the range of ``setup.py`` goes to it, the tests run 1.11."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from pathlib import Path

import pytest

from tests.packaging.environments import (
    ROOT,
    SMOKE_LIMIT_S,
    Environment,
    empty_environment,
    link_dependencies,
    run_smoke,
    succeed,
)

VERSION = "1.12"
SUITE = (
    "TestSimpleMaterializations",
    "TestSingularTests",
    "TestEmpty",
    "TestEphemeral",
    "TestIncremental",
    "TestGenericTests",
    "TestSnapshotCheckCols",
    "TestValidateConnection",
)
"""Classes of ``tests/dbt/suite/test_basic.py``: one for each kind of node and command."""
REQUIREMENTS = ROOT / ".ci" / f"dbt-{VERSION}.txt"


def packages() -> Path:
    """The folder of what differs from the running environment, which keeps it: downloaded once."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    folder = Path(sys.prefix) / f"dbt-{VERSION}-{digest}"
    if not folder.exists():
        making = folder.with_name(f"{folder.name}.{os.getpid()}")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        # The user's own home: pip has its settings and its cache there.
        home = {name: value for name, value in os.environ.items() if name.startswith(("HOME", "PIP_"))}
        succeed([*pip, "--target", making, "--requirement", REQUIREMENTS], ROOT, variables=home)
        making.rename(folder)
    return folder


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = empty_environment(f"dbt {VERSION}", tmp_path_factory.mktemp("next_dbt"))
    link_dependencies(made.site_packages, instead=packages())
    succeed([*made.pip_install, "--no-deps", "--no-index", wheel], made.home)
    return made


def test_every_kind_of_command_runs_on_the_next_dbt(environment: Environment, tmp_path: Path) -> None:
    assert f"Running with dbt={VERSION}." in run_smoke(environment, tmp_path, VERSION, "all")


def test_the_basic_classes_of_dbts_suite_pass_on_the_next_dbt(
    environment: Environment, tmp_path: Path
) -> None:
    """With the tests of the checkout and the installed wheel: the folder has no other ``dbt_arctic``."""
    for name in ("tests", "benchmarks", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    classes = [f"tests/dbt/suite/test_basic.py::{name}" for name in SUITE]
    pytest_ = [environment.program("python"), "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    shared = {name: value for name, value in os.environ.items() if name in ("HOME", "DBT_ARCTIC_CACHE_DIR")}
    output = succeed(
        [*pytest_, *classes], tmp_path, variables={**shared, "ARCTIC_TESTS": "long"}, limit=SMOKE_LIMIT_S
    )
    passed = set(re.findall(r"::(Test\w+)::\S+ PASSED", output))
    assert passed == set(SUITE), output
    assert not re.search(r"\d+ (?:failed|skipped|deselected|xfailed)", output.splitlines()[-1])
