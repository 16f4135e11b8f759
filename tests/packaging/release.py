"""``make release-check``: what would be published, built, looked into, installed and used.

The wheel is installed by pip into a fresh environment, with what it requires from the package index.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.packaging.contents import VERSION, faults_of_source_archive, faults_of_wheel
from tests.packaging.environments import (
    ROOT,
    Environment,
    answer_init,
    empty_environment,
    run_smoke,
    succeed,
)

INSTALL_S = 1800
BEGAN = time.monotonic()


def log_step(what: str) -> None:
    print(f"{time.monotonic() - BEGAN:4.0f} s  {what}", flush=True)


def built(folder: Path) -> tuple[Path, Path]:
    """The source archive, and the wheel that is made of it and not of the checkout."""
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, stdout=subprocess.DEVNULL
    )
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return archive, wheel


def installed(wheel: Path, folder: Path) -> Environment:
    made = empty_environment("release", folder)
    command = [*made.pip_install, "--constraint", ROOT / ".ci" / "constraints.txt", wheel]
    # The user's own home: pip has its settings and its cache there.
    succeed(command, folder, variables={"HOME": os.environ["HOME"]}, limit=INSTALL_S)
    return made


def used(environment: Environment, folder: Path) -> None:
    """As a newcomer does: versions, a new project, the connection, and a first build."""
    for program in ("dbt", "dbt-arctic"):
        versions = succeed([environment.program(program), "--version"], environment.home)
        assert VERSION in versions, versions
    log_step("installed; dbt and dbt-arctic tell their versions")
    succeed(environment.dbt("parse", profiles=folder), answer_init(environment, folder))
    log_step("dbt init has made a project that dbt parses")
    run_smoke(environment, folder, "", "first")
    log_step("dbt debug and dbt build have succeeded")


def main() -> int:
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    archive, wheel = built(dist)
    log_step(f"built {archive.name} and {wheel.name}")
    faults = [*faults_of_source_archive(archive), *faults_of_wheel(wheel)]
    for fault in faults:
        print(f"release-check: {fault}", file=sys.stderr)
    if faults:
        return 1
    log_step("metadata and contents are as they should be")
    with tempfile.TemporaryDirectory() as folder:
        used(installed(wheel, Path(folder)), Path(folder))
    log_step(f"release-check: {archive.name} and {wheel.name} in dist are ready to be published")
    return 0


if __name__ == "__main__":
    sys.exit(main())
