"""Fresh environments with dbt-arctic in them, and commands run there as a user's shell would run them.

The tests link the dependencies from the running environment: no network, no minutes. `make release-check` has
pip install them, which shows that the wheel names all that it needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
SHARED_FOLDERS = ["dbt", "dbt/adapters", "dbt/include", "dbt/tests"]
"""Folders that several distributions install into: real folders, not links."""
SMOKE = Path(__file__).parent / "smoke"
LIMIT_S = 300
SMOKE_LIMIT_S = 1000


def environment_of(home: Path) -> dict[str, str]:
    """The variables of a user's shell, without our paths and settings."""
    ours = ("DBT_", "PYTHON", "PYTEST", "COV_", "VIRTUAL_ENV")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return variables | {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "HOME": str(home)}


def run(
    command: Sequence[str | Path],
    cwd: Path,
    answers: str = "",
    variables: Mapping[str, str] | None = None,
    limit: int = LIMIT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``cwd``, which is the user's home too unless ``variables`` say otherwise."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment_of(cwd) | dict(variables or {}),
        input=answers,
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )


def succeed(
    command: Sequence[str | Path],
    cwd: Path,
    answers: str = "",
    variables: Mapping[str, str] | None = None,
    limit: int = LIMIT_S,
) -> str:
    """Run a command that has to succeed; its output."""
    done = run(command, cwd, answers, variables, limit)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds dbt-arctic, and a folder to work in."""

    kind: str
    folder: Path
    home: Path

    @property
    def site_packages(self) -> Path:
        return self.folder / SITE_PACKAGES.relative_to(sys.prefix)

    @property
    def pip_install(self) -> list[str | Path]:
        """The command that installs into it, with the pip of the running environment."""
        return [sys.executable, "-m", "pip", "--python", self.program("python"), "install", "--quiet"]

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def dbt(self, *arguments: str, profiles: Path) -> list[str | Path]:
        """The command line of dbt in this environment."""
        # Not the script `dbt`: it is not linked, and it would name the running environment.
        python = [self.program("python"), "-c", "from dbt.cli.main import cli; cli()"]
        return [*python, *arguments, "--profiles-dir", profiles]


def empty_environment(kind: str, folder: Path) -> Environment:
    """A fresh environment with nothing in it, not even pip."""
    environment = Environment(kind, folder / "venv", folder / "home")
    environment.home.mkdir(parents=True)
    succeed([sys.executable, "-m", "venv", "--without-pip", environment.folder], folder)
    return environment


def link_dependencies(site_packages: Path, instead: Path | None = None) -> None:
    """Put all that is installed here into ``site_packages``, dbt-arctic excepted.

    :param instead: a folder that pip has installed distributions into. They replace those of the same name.
    """
    for shared in SHARED_FOLDERS:
        (site_packages / shared).mkdir()
    replaced: set[str] = set()
    if instead is not None:
        _link(instead, site_packages, without=frozenset())
        replaced = {found.name for found in distributions(path=[str(instead)])}
    for layer in [Path(entry) for entry in sys.path if Path(entry).name == "site-packages"]:
        owned = {
            name
            for found in distributions(path=[str(layer)])
            if found.name in replaced
            for file in found.files or ()
            for name in (str(file), *(str(parent) for parent in file.parents))
        }
        _link(layer, site_packages, without=frozenset(owned - {".", *SHARED_FOLDERS}))


def _link(layer: Path, site_packages: Path, without: frozenset[str]) -> None:
    for folder in ["", *SHARED_FOLDERS]:
        for entry in (layer / folder).glob("*"):
            name = str(entry.relative_to(layer))
            ours = "dbt_arctic" in name or name in {"dbt/adapters/arctic", "dbt/include/arctic"}
            # A .pth file says where the running environment has more modules.
            skipped = ours or name in without or entry.name == "__pycache__" or entry.suffix == ".pth"
            target = site_packages / name
            if not skipped and not target.exists():
                target.symlink_to(entry)


def new_environment(kind: str, folder: Path, requirement: Sequence[str | Path]) -> Environment:
    """A fresh environment with ``requirement`` installed by pip, dependencies checked by it."""
    environment = empty_environment(kind, folder)
    link_dependencies(environment.site_packages)
    succeed([*environment.pip_install, "--no-index", "--no-build-isolation", *requirement], folder)
    return environment


def answer_init(environment: Environment, folder: Path) -> Path:
    """A project created by ``dbt init`` in ``folder``, next to its profile. dbt must offer our adapter."""
    command = environment.dbt("init", "shop", profiles=folder)
    ask = folder / "ask"
    ask.mkdir()
    offer = run(command, ask).stdout
    numbers = dict(re.findall(r"\[(\d+)\] (\w+)", offer))
    (number,) = [number for number, adapter in numbers.items() if adapter == "arctic"]
    succeed(command, folder, answers=f"{number}\n\n\n\n")
    return folder / "shop"


def run_smoke(environment: Environment, folder: Path, dbt_version: str, extent: str) -> str:
    """Run the steps of ``smoke/steps.py`` there, on a copy of its project; their output."""
    project = folder / "smoke"
    shutil.copytree(SMOKE, project)
    # Spark's jars are in the user's home, and its class archive is in the cache.
    shared = {name: value for name, value in os.environ.items() if name in ("HOME", "DBT_ARCTIC_CACHE_DIR")}
    steps = [environment.program("python"), "steps.py", dbt_version, extent]
    return succeed(steps, project, variables=shared, limit=SMOKE_LIMIT_S)
