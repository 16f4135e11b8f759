"""``.ci/machine`` installs a missing Java, and installs nothing for any other reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIND_JAVA = {
    "found": "def find_java(): pass",
    "missing": "from dbt_arctic.errors import JavaError\ndef find_java(): raise JavaError('none')",
    "broken": "raise ImportError('the environment is not what it was')",
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder whose ``apt-get`` only records its arguments."""
    programs = tmp_path / "bin"
    programs.mkdir()
    log = tmp_path / "apt.log"
    apt = programs / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\n')
    # Only root is requested: `sudo -n` of this folder runs its arguments.
    sudo = programs / "sudo"
    sudo.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    for program in (apt, sudo):
        program.chmod(0o755)
    return tmp_path


def ensure_java(machine: Path, find_java: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run the script against an adapter that looks for Java in a given way, and return the calls of apt."""
    package = machine / "lib" / "dbt_arctic"
    (package / "engine").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "engine" / "__init__.py").touch()
    (package / "errors.py").write_text((ROOT / "dbt_arctic" / "errors.py").read_text())
    (package / "engine" / "java.py").write_text(FIND_JAVA[find_java])
    environment = dict(os.environ)
    environment |= {
        "PATH": f"{machine / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(machine / "lib"),
    }
    done = subprocess.run(
        [str(ROOT / ".ci" / "machine"), "java", sys.executable],
        cwd=machine,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    log = machine / "apt.log"
    return done, log.read_text() if log.exists() else ""


def test_a_java_that_fits_is_left_alone(machine: Path) -> None:
    done, asked = ensure_java(machine, "found")
    assert done.returncode == 0
    assert asked == ""


def test_a_missing_java_is_installed_without_upgrading_what_is_there(machine: Path) -> None:
    done, asked = ensure_java(machine, "missing")
    assert "install -y --no-upgrade --no-install-recommends openjdk-17-jre-headless" in asked
    assert done.returncode != 0
    assert "No Java 17 or 21 was found" in done.stderr


def test_an_adapter_that_cannot_be_imported_is_not_taken_for_a_missing_java(machine: Path) -> None:
    done, asked = ensure_java(machine, "broken")
    assert done.returncode != 0
    assert asked == ""
    assert "Java could not be looked for" in done.stderr
