"""Finds a Java that can run Spark, in the usual locations of each platform. Runs only ``java -version``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dbt_arctic.errors import JavaError, ProfileError

SUPPORTED = (17, 21)
"""Major versions that Spark 4.1 supports."""

_VERSION = re.compile(r'version "([^"]+)"')


@dataclass(frozen=True)
class Java:
    """A Java installation: its home, its full version (``17.0.15``) and the text of its vendor."""

    home: str
    version: str
    vendor: str

    @property
    def major(self) -> int:
        """The major version."""
        return major_version(self.version)


@dataclass(frozen=True)
class _Candidate:
    home: Path
    found_by: str


def major_version(version: str) -> int:
    """The major version of a version string.

    >>> major_version("17.0.15"), major_version("1.8.0_402"), major_version("21-ea")
    (17, 8, 21)
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


class JavaVersion(NamedTuple):
    """What ``java -version`` prints."""

    version: str
    vendor: str


def parse_version(output: str) -> JavaVersion | None:
    """Version and vendor from the output of ``java -version``; ``None`` for any other output."""
    matched = _VERSION.search(output)
    if matched is None:
        return None
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return JavaVersion(matched.group(1), lines[1] if len(lines) > 1 else lines[0])


def how_to_install(platform: str) -> str:
    """The command that installs a suitable Java on a platform (a value of ``sys.platform``)."""
    if platform == "darwin":
        return "brew install openjdk@17"
    if platform == "win32":
        return "winget install EclipseAdoptium.Temurin.17.JDK"
    return (
        "sudo apt install openjdk-17-jre-headless (Debian, Ubuntu), "
        "or sudo dnf install java-21-openjdk-headless (Fedora, RHEL)"
    )


def find_java(java_home: str | None = None, environ: Mapping[str, str] | None = None) -> Java:
    """The first suitable Java. If the profile names a home, only that is checked.

    :raises ProfileError: the home in the profile is unsuitable.
    :raises JavaError: lists every Java that was found, and why it is unsuitable.
    """
    environment = os.environ if environ is None else environ
    candidates = (
        iter([_Candidate(Path(os.path.expanduser(java_home)), "profile: java_home")])
        if java_home
        else _candidates(environment)
    )
    rejected: list[str] = []
    problem = ""
    seen: set[Path] = set()
    for candidate in candidates:
        resolved = candidate.home.resolve()
        if resolved in seen:
            continue
        seen.add(resolved)
        java, problem = inspect(candidate.home)
        if java is not None and not problem:
            return java
        rejected.append(f"{candidate.home} ({candidate.found_by}): {problem}")
    wanted = " or ".join(str(version) for version in SUPPORTED)
    if java_home:
        raise ProfileError(
            f"java_home is not the folder of Java {wanted}",
            where=f"java_home: {java_home}",
            why=problem,
            fix="correct java_home, or remove it so that JAVA_HOME, PATH and the usual folders are searched",
        )
    raise JavaError(
        f"Spark needs Java {wanted}, which was not found.",
        where="; ".join(rejected) or "java_home of the profile, JAVA_HOME, PATH and the usual folders",
        why="The installed versions are not supported." if rejected else "There is no Java there.",
        fix=f"{how_to_install(sys.platform)}; or set `java_home` in the profile",
    )


def inspect(home: Path) -> tuple[Java | None, str]:
    """The Java at a home, and the reason why it cannot run Spark (empty if it can)."""
    program = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    if not program.is_file():
        return None, "there is no bin/java"
    try:
        ran = subprocess.run([str(program), "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"it does not run: {error}"
    parsed = parse_version(ran.stderr + ran.stdout)
    if parsed is None:
        return None, f"its version is unknown: {(ran.stderr + ran.stdout).strip()[:200]}"
    java = Java(str(home), *parsed)
    if java.major not in SUPPORTED:
        return java, f"it is Java {java.version}"
    if not has_vector_module(home):
        return java, f"Java {java.version} without the module jdk.incubator.vector, which Spark needs"
    return java, ""


def has_vector_module(home: Path) -> bool:
    """Whether ``jdk.incubator.vector`` exists, according to the ``release`` file if it lists modules."""
    release = home / "release"
    if not release.is_file():
        return True
    modules = re.search(r'^MODULES="([^"]*)"', release.read_text(errors="replace"), re.MULTILINE)
    return modules is None or "jdk.incubator.vector" in modules.group(1).split()


def _candidates(environment: Mapping[str, str]) -> Iterator[_Candidate]:
    named = environment.get("JAVA_HOME")
    if named:
        yield _Candidate(Path(named), "JAVA_HOME")
    program = shutil.which("java", path=environment.get("PATH"))
    # macOS has a /usr/bin/java that only offers to install Java.
    if program and not (sys.platform == "darwin" and program == "/usr/bin/java"):
        yield _Candidate(Path(program).resolve().parent.parent, "PATH")
    for home in _usual_homes(environment):
        yield _Candidate(home, "usual folder")


def _usual_homes(environment: Mapping[str, str]) -> Iterable[Path]:
    user = Path(environment.get("HOME") or Path.home())
    patterns: list[tuple[Path, str]] = [
        (Path("/usr/lib/jvm"), "*"),
        (Path("/usr/java"), "*"),
        (Path("/Library/Java/JavaVirtualMachines"), "*/Contents/Home"),
        (user / "Library/Java/JavaVirtualMachines", "*/Contents/Home"),
        (user / ".sdkman/candidates/java", "*"),
        (Path("/opt/homebrew/opt"), "openjdk*/libexec/openjdk.jdk/Contents/Home"),
        (Path("/usr/local/opt"), "openjdk*/libexec/openjdk.jdk/Contents/Home"),
        (Path("/home/linuxbrew/.linuxbrew/opt"), "openjdk*/libexec"),
    ]
    for variable in ("ProgramFiles", "ProgramW6432"):
        if environment.get(variable):
            programs = Path(environment[variable])
            patterns += [
                (programs / vendor, "*") for vendor in ("Eclipse Adoptium", "Java", "Microsoft", "Zulu")
            ]
    for folder, pattern in patterns:
        if folder.is_dir():
            for home in sorted(folder.glob(pattern)):
                if (home / "bin").is_dir():
                    yield home
