"""Installs the wheel and the editable project into fresh environments and lets dbt find them.

dbt looks for adapters and macros in folders, and ignores silently what it does not find
there: only a real installation, of each kind, shows that nothing is missing.
The dependencies are linked from the running environment: neither network nor minutes.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.extent import first
from tests.packaging.contents import faults_of_wheel
from tests.packaging.environments import ROOT, Environment, answer_init, new_environment, succeed


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


def test_the_wheel_holds_every_module_macro_and_the_licence_and_nothing_else(wheel: Path) -> None:
    assert faults_of_wheel(wheel) == []


def test_a_file_too_many_or_too_few_in_a_wheel_is_found(wheel: Path, tmp_path: Path) -> None:
    damaged, lost = tmp_path / wheel.name, "dbt/include/arctic/adapter/relation.sql"
    with zipfile.ZipFile(wheel) as packed, zipfile.ZipFile(damaged, "w") as written:
        for name in set(packed.namelist()) - {lost}:
            written.writestr(name, packed.read(name))
        written.writestr("dbt/__init__.py", "")
    assert faults_of_wheel(damaged) == [f"missing: {lost}", "not ours: dbt/__init__.py"]


def test_the_command_prints_the_version(installed: Environment, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    assert succeed([installed.program("dbt-arctic"), "--version"], installed.home).strip().endswith(version)


@pytest.mark.parametrize("installed", first(1, ["wheel", "editable"]), indirect=True)
def test_dbt_init_offers_arctic_and_writes_a_profile_that_dbt_accepts(
    installed: Environment, tmp_path: Path
) -> None:
    project = answer_init(installed, tmp_path)
    target = yaml.safe_load((tmp_path / "profiles.yml").read_text())["shop"]["outputs"]["dev"]
    assert target["type"] == "arctic"
    assert target["warehouse"] == "./lake"

    succeed(installed.dbt("parse", profiles=tmp_path), project)


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
