"""What the packaging tests install: a copy of the sources, and the wheel made of them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, succeed

SOURCES = ("dbt_arctic", "macros", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is needed to build, without what earlier builds left behind."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as it would be published."""
    folder = tmp_path_factory.mktemp("wheel")
    succeed(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", folder, checkout],
        folder,
    )
    (built,) = folder.glob("*.whl")
    return built
