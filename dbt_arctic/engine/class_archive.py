"""The location of the class-data archive for a Java and Spark's jars, and when it is used.

Java maps an archive instead of reading and verifying 25,000 classes. It checks that the archive matches (its
own build, and the class path with sizes and times of all jars), and continues without one that does not. This
module only inspects files; ``class_archive_build.py`` creates an archive.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dbt_arctic.engine.java import Java

USE = "-XX:SharedArchiveFile="
WRITE = "-XX:ArchiveClassesAtExit="
CACHE_VARIABLE = "DBT_ARCTIC_CACHE_DIR"
_SUFFIX = ".jsa"

_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_CHOICE = re.compile(r"-Xshare\b|-XX:(SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile)=")


def folder(environ: Mapping[str, str] | None = None) -> Path:
    """``DBT_ARCTIC_CACHE_DIR``, or ``dbt-arctic`` in the user's cache folder."""
    environment = os.environ if environ is None else environ
    if chosen := environment.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache", "dbt-arctic")


def path(java: Java, jars: Sequence[Path], environ: Mapping[str, str] | None = None) -> Path:
    """The path of the archive for a Java, the installed pyspark and some jars, whether it exists or not."""
    parts = [java.home, java.version, importlib.metadata.version("pyspark")]
    for jar in jars:
        found = jar.stat()
        parts += [str(jar), str(found.st_size), str(found.st_mtime_ns)]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return folder(environ) / f"classes-{digest}{_SUFFIX}"


def existing(environ: Mapping[str, str] | None = None) -> list[Path]:
    """All archives in the folder."""
    return sorted(folder(environ).glob(f"classes-*{_SUFFIX}"))


def is_chosen(options: str, environ: Mapping[str, str]) -> bool:
    """Whether options of Java, or those of the environment, already configure archives."""
    given = [options, *(environ.get(name, "") for name in _OPTIONS_OF_JAVA)]
    return any(_CHOICE.search(text) for text in given)
