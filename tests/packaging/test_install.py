"""Installs the wheel and the editable project into fresh environments and lets dbt find them.

dbt looks for adapters and macros in folders, and ignores silently what it does not find
there: only a real installation, of each kind, shows that nothing is missing.
The dependencies are linked from the running environment: neither network nor minutes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extent import first

ROOT = Path(__file__).parents[2]
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
SOURCES = ["dbt_arctic", "macros", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"]
SHARED_FOLDERS = ["dbt", "dbt/adapters", "dbt/include"]
"""Folders that several distributions install into: real folders, not links."""


def run(command: Sequence[str | Path], cwd: Path, answers: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command as a user in a shell of their own would, without our paths and settings."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DBT_", "PYTHON", "PYTEST", "COV_", "VIRTUAL_ENV"))
    }
    environment |= {"DBT_SEND_ANONYMOUS_USAGE_STATS": "false", "HOME": str(cwd)}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        input=answers,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def succeed(command: Sequence[str | Path], cwd: Path, answers: str = "") -> str:
    """Run a command that has to succeed; its output."""
    done = run(command, cwd, answers)
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

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def dbt(self, *arguments: str, profiles: Path) -> list[str | Path]:
        """The command line of dbt in this environment."""
        # Not the script `dbt`: it is not linked, and it would name the running environment.
        python = [self.program("python"), "-c", "from dbt.cli.main import cli; cli()"]
        return [*python, *arguments, "--profiles-dir", profiles]


def link_dependencies(site_packages: Path) -> None:
    """Put all that is installed here into ``site_packages``, dbt-arctic excepted."""
    for shared in SHARED_FOLDERS:
        (site_packages / shared).mkdir()
    for folder in ["", *SHARED_FOLDERS]:
        for entry in (SITE_PACKAGES / folder).iterdir():
            name = str(entry.relative_to(SITE_PACKAGES))
            ours = "dbt_arctic" in name or name in {"dbt/adapters/arctic", "dbt/include/arctic"}
            target = site_packages / name
            if not ours and entry.name != "__pycache__" and not target.exists():
                target.symlink_to(entry)


def new_environment(kind: str, folder: Path, requirement: Sequence[str | Path]) -> Environment:
    """A fresh environment with ``requirement`` installed by pip, dependencies checked by it."""
    environment = Environment(kind, folder / "venv", folder / "home")
    environment.home.mkdir(parents=True)
    succeed([sys.executable, "-m", "venv", "--without-pip", environment.folder], folder)
    link_dependencies(environment.site_packages)
    pip = [sys.executable, "-m", "pip", "--python", environment.program("python"), "install"]
    succeed([*pip, "--no-index", "--no-build-isolation", *requirement], folder)
    return environment


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


@pytest.fixture(scope="session", params=["wheel", "editable"])
def installed(
    request: pytest.FixtureRequest, checkout: Path, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """An environment with dbt-arctic installed, once from the wheel and once editable."""
    kind = str(request.param)
    requirement = [wheel] if kind == "wheel" else ["--editable", checkout]
    environment = new_environment(kind, tmp_path_factory.mktemp(kind), requirement)
    (checkout / "macros" / "added_later.sql").write_text("{% macro arctic_added_later() %}{% endmacro %}")
    return environment


DISPATCHED = r"macro\s+arctic__(\w+)"
MATERIALIZED = r"materialization\s+(\w+)\s*,\s*adapter\s*=\s*['\"]arctic"


def names_in_macros(pattern: str) -> set[str]:
    """What our macro files define, by a pattern of one group."""
    sources = "\n".join(path.read_text() for path in (ROOT / "macros").rglob("*.sql"))
    names = set(re.findall(pattern, sources))
    assert names
    return names


@dataclass(frozen=True)
class Parsed:
    """What dbt made of a small project: its own words, and what it chose."""

    output: str
    facts: dict[str, Any]


REPORT = """
import json, sys
from dbt.cli.main import dbtRunner
done = dbtRunner().invoke(["parse", "--show-all-deprecations", "--profiles-dir", sys.argv[1]])
if not done.success:
    sys.exit(str(done.exception))
manifest = done.result
chosen = lambda name: manifest.find_materialization_macro_by_name("tiny", name, "arctic").unique_id
facts = {
    "dispatched": manifest.nodes["model.tiny.one"].config.meta,
    "materialized": {name: chosen(name) for name in sys.argv[2:]},
    "macros": list(manifest.macros),
}
with open("facts.json", "w") as file:
    json.dump(facts, file)
"""


@pytest.fixture(scope="session")
def parsed(installed: Environment, tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    """A project of one model, whose ``meta`` holds the macros that dbt chooses for ``arctic``."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "macros" / "sample_profiles.yml", installed.home / "profiles.yml")
    chosen = ", ".join(
        f"'{name}': adapter.dispatch('{name}', 'dbt').macro.unique_id"
        for name in sorted(names_in_macros(DISPATCHED))
    )
    (folder / "models").mkdir()
    (folder / "models" / "one.sql").write_text(f"{{{{ config(meta={{{chosen}}}) }}}} SELECT 1 AS id")
    (folder / "dbt_project.yml").write_text("name: tiny\nversion: 1.0.0\nprofile: default\n")
    (folder / "report.py").write_text(REPORT)
    python = installed.program("python")
    output = succeed([python, "report.py", installed.home, *sorted(names_in_macros(MATERIALIZED))], folder)
    return Parsed(output, json.loads((folder / "facts.json").read_text()))


def test_the_wheel_holds_every_macro_and_the_licence_and_leaves_dbt_to_dbt(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    macros = {
        f"dbt/include/arctic/{path.relative_to(ROOT / 'macros')}"
        for path in (ROOT / "macros").rglob("*")
        if path.suffix in {".sql", ".yml", ".py"}
    }
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "dbt_arctic").rglob("*.py")}
    entry = {name for name in modules if name.startswith("dbt_arctic/_entry/")}
    assert macros
    assert macros <= packed
    assert modules - entry <= packed
    assert {f"dbt/adapters/arctic/{Path(name).name}" for name in entry} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in packed)
    shared = {f"{folder}/__init__.py" for folder in SHARED_FOLDERS}
    assert not shared & packed
    assert {name.split("/")[0] for name in packed if ".dist-info/" not in name} == {"dbt", "dbt_arctic"}


def test_the_command_tells_the_version(installed: Environment, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    assert succeed([installed.program("dbt-arctic"), "--version"], installed.home).strip().endswith(version)


@pytest.mark.parametrize("installed", first(1, ["wheel", "editable"]), indirect=True)
def test_dbt_init_offers_arctic_and_writes_a_profile_that_dbt_accepts(
    installed: Environment, tmp_path: Path
) -> None:
    command = installed.dbt("init", "shop", profiles=tmp_path)
    (tmp_path / "ask").mkdir()
    offer = run(command, tmp_path / "ask").stdout
    numbers = dict(re.findall(r"\[(\d+)\] (\w+)", offer))
    (number,) = [number for number, adapter in numbers.items() if adapter == "arctic"]

    succeed(command, tmp_path, answers=f"{number}\n\n\n\n")
    target = yaml.safe_load((tmp_path / "profiles.yml").read_text())["shop"]["outputs"]["dev"]
    assert target["type"] == "arctic"
    assert target["warehouse"] == "./lake"

    succeed(installed.dbt("parse", profiles=tmp_path), tmp_path / "shop")


def test_the_sample_profile_is_accepted_without_a_warning(parsed: Parsed) -> None:
    assert "Registered adapter: arctic" in parsed.output
    assert "WARN" not in parsed.output.upper(), parsed.output
    assert "DEPRECAT" not in parsed.output.upper(), parsed.output


def test_our_macros_win_over_those_of_spark(parsed: Parsed) -> None:
    assert parsed.facts["dispatched"] == {
        name: f"macro.dbt_arctic.arctic__{name}" for name in names_in_macros(DISPATCHED)
    }


def test_our_materializations_win_over_those_of_spark(parsed: Parsed) -> None:
    names = names_in_macros(MATERIALIZED)
    assert {"table", "view", "incremental"} <= names
    assert parsed.facts["materialized"] == {
        name: f"macro.dbt_arctic.materialization_{name}_arctic" for name in names
    }


def test_only_an_editable_install_sees_a_macro_that_is_added_later(
    installed: Environment, parsed: Parsed
) -> None:
    seen = "macro.dbt_arctic.arctic_added_later" in parsed.facts["macros"]
    assert seen == (installed.kind == "editable")
