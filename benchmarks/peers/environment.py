"""The Python that a peer runs in: ours, or one with another pyspark, made here once and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class EnvironmentMissing(Exception):
    """An environment could not be made; the message is the first line of why."""


def python_for(pyspark: str, folder: Path) -> Path:
    """:param pyspark: the version; empty for the one of this Python."""
    if not pyspark:
        return Path(sys.executable)
    environment = folder / f"pyspark-{pyspark}"
    python, ready = environment / "bin" / "python", environment / ".ready"
    if not ready.exists():
        print(f"Setting up pyspark {pyspark}: a minute or two, once", file=sys.stderr, flush=True)
        _run([sys.executable, "-m", "venv", str(environment)])
        # setuptools: pyspark 3.5 imports distutils, which Python 3.12 has not.
        _run([str(python), "-m", "pip", "install", "--quiet", f"pyspark=={pyspark}", "setuptools<81"])
        ready.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise EnvironmentMissing(said[-1] if said else f"{command[0]} ended with {done.returncode}")
