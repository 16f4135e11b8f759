"""What has to be in the wheel and the source archive, and what must not be. Knows only names and metadata."""

from __future__ import annotations

import runpy
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from packaging.metadata import Metadata

from tests.packaging.environments import ROOT

ENTRY = "dbt_arctic/_entry/"
VERSION: str = runpy.run_path(str(ROOT / ENTRY / "__version__.py"))["version"]
NOT_RELEASED = frozenset({".gitignore"})
MADE_BY_SETUPTOOLS = ("PKG-INFO", "setup.cfg", "dbt_arctic.egg-info/")


def faults_of_wheel(wheel: Path) -> list[str]:
    """What is wrong with it; nothing, if it is right."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    about = {name for name in packed if ".dist-info/" in name}
    faults = [] if any(name.endswith("licenses/LICENSE") for name in about) else ["the licence is missing"]
    return faults + _compared(packed - about, _installed_files()) + faults_of_metadata(wheel)


def faults_of_source_archive(archive: Path) -> list[str]:
    """What is wrong with it: it has what is under version control, and nothing else of the checkout."""
    with tarfile.open(archive) as opened:
        members = [member.name.split("/", 1)[1] for member in opened.getmembers() if member.isfile()]
    packed = {name for name in members if not name.startswith(MADE_BY_SETUPTOOLS)}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    tracked = {name for name in listed.stdout.split("\0") if name} - NOT_RELEASED
    return _compared(packed, tracked) + faults_of_metadata(archive)


def faults_of_metadata(built: Path) -> list[str]:
    """What the package index would refuse, or show in another way than it is meant."""
    found = Metadata.from_email(_metadata(built), validate=True)
    expected = {
        "name": ("dbt-arctic", found.name),
        "version": (VERSION, str(found.version)),
        "description": (
            (ROOT / "README.md").read_text(encoding="utf-8").strip(),
            (found.description or "").strip(),
        ),
        "type of the description": ("text/markdown", found.description_content_type),
        "licence": ("Apache-2.0", found.license_expression),
        "Python": ("<3.14,>=3.10", str(found.requires_python)),
        "extras": (
            ["dev", "glue", "hive", "kafka", "mariadb", "postgres", "report", "thrift"],
            sorted(found.provides_extra or ()),
        ),
    }
    return [
        f"{what}: {is_!r} in place of {wanted!r}" for what, (wanted, is_) in expected.items() if is_ != wanted
    ]


def _metadata(built: Path) -> bytes:
    if built.suffix == ".whl":
        archive = zipfile.ZipFile(built)
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return archive.read(name)
    with tarfile.open(built) as opened:
        member = opened.extractfile(f"{built.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert member is not None
        return member.read()


def _installed_files() -> set[str]:
    """Every file that an installation has, by the name that it has there."""
    ours = {
        "dbt_arctic": (".py", ".html", ".xml", ".java", ".jar", "py.typed"),
        "macros": (".sql", ".yml", ".py"),
    }
    files = {
        str(path.relative_to(ROOT))
        for folder, suffixes in ours.items()
        for path in (ROOT / folder).rglob("*")
        if path.name.endswith(suffixes)
    }
    return {_installed_name(name) for name in files}


def _installed_name(name: str) -> str:
    for folder, package in ((ENTRY, "dbt/adapters/arctic/"), ("macros/", "dbt/include/arctic/")):
        if name.startswith(folder):
            return package + name.removeprefix(folder)
    return name


def _compared(packed: Iterable[str], expected: Iterable[str]) -> list[str]:
    missing, strange = set(expected) - set(packed), set(packed) - set(expected)
    return [f"missing: {name}" for name in sorted(missing)] + [
        f"not ours: {name}" for name in sorted(strange)
    ]
