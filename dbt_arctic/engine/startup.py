"""Explains why Spark did not start, from the output of its launcher. Pure functions over the log's text."""

from __future__ import annotations

import re

from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError, DependencyError, JavaError, SparkStartError

_NOT_FOUND = re.compile(r":: ([\w.-]+)#([\w.-]+);([\w.-]+): not found")
_UNRESOLVED = re.compile(r"unresolved dependenc|Server access error|download failed", re.IGNORECASE)
_WRONG_JAVA = re.compile(
    r"UnsupportedClassVersionError|Module jdk\.incubator\.vector not found|Unrecognized option: --add|"
    r"Unable to locate a Java Runtime|JAVA_HOME is not set"
)
_NO_MEMORY = re.compile(
    r"Invalid maximum heap|Could not reserve enough space|Too small maximum heap|Initial heap size"
)
_NOISE = re.compile(r"^\s*(at |\.\.\. \d+ more)|WARN NativeCodeLoader|incubator modules|log4j|Ivy Default")


def start_error(log: str, log_path: str, settings: SparkSettings, java: str) -> ArcticError:
    """The error for a Spark that did not start.

    :param log: the complete output of the launcher and the JVM.
    :param java: a description of the Java that was used.
    """
    tail = log_tail(log)
    if _UNRESOLVED.search(log):
        missing = sorted({":".join(found) for found in _NOT_FOUND.findall(log)})
        searched = ", ".join(settings.repositories) or "Maven Central"
        return DependencyError(
            f"Jars could not be downloaded: {', '.join(missing) or ', '.join(settings.packages or ())}.",
            where=f"repositories: {searched}; full log: {log_path}",
            why="The Maven repository does not have them or cannot be reached.\n" + tail,
            fix="check the coordinates in `packages` and the network. To use a mirror, list it in "
            "`repositories`; behind a proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=... "
            "-Dhttps.proxyPort=...'; without a network, copy the folder .ivy2.5.2 from a machine "
            "that has run dbt-arctic once.",
        )
    if _WRONG_JAVA.search(log):
        return JavaError(
            "Spark does not support this Java.",
            where=java,
            why=tail,
            fix="install Java 17 or 21, or set `java_home` in the profile",
        )
    fix = f"read the full log: {log_path}"
    if _NO_MEMORY.search(log):
        fix = f"choose another `driver_memory` in the profile; it is {settings.driver_memory}"
    return SparkStartError("Spark did not start.", where=java, why=tail or "It wrote nothing.", fix=fix)


def log_tail(log: str, lines: int = 15) -> str:
    """The last significant lines of a log, without stack frames and known noise."""
    significant = [line.rstrip() for line in log.splitlines() if line.strip() and not _NOISE.search(line)]
    return "\n".join(significant[-lines:])
