"""``dbt-arctic doctor``: checks whether this machine can run dbt-arctic, without a profile.

It checks the installed packages and Java. With ``--profile``, it also starts Spark and tries the profile's
catalog, as ``dbt debug`` does.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click
from packaging.requirements import Requirement

from dbt_arctic.cli.options import FOLDER, json_option
from dbt_arctic.cli.output import print_json, print_message
from dbt_arctic.engine import class_archive
from dbt_arctic.engine.doctor import Check
from dbt_arctic.engine.java import find_java
from dbt_arctic.errors import ArcticError, PackageUnfit
from dbt_arctic.planner.spark.dialect import verbatim


@click.command(short_help="Check packages and Java, and with --profile the catalog.")
@click.option("--profile", "with_profile", is_flag=True, help="Also try the profile: Spark and the catalog.")
@click.option("--project-dir", type=FOLDER, help="With --profile: folder of dbt_project.yml.")
@click.option("--profiles-dir", type=FOLDER, help="With --profile: folder of profiles.yml.")
@click.option("--target", "-t", help="With --profile: target of the profile.")
@json_option
def doctor(
    with_profile: bool,
    project_dir: Path | None,
    profiles_dir: Path | None,
    target: str | None,
    as_json: bool,
) -> None:
    """Check this machine: packages and Java; with --profile also Spark and the catalog."""
    checks = list(examine())
    if not as_json:
        _print(checks)
    if with_profile and all(part.ok for part in checks):
        from dbt_arctic.adapter.doctor import results_of  # imports dbt, which takes a second
        from dbt_arctic.adapter.project import load_target

        found = load_target(project_dir, profiles_dir, target)
        for part in results_of(found.credentials, str(found.project_root)):
            if not as_json:
                _print([part])
            checks.append(part)
    if as_json:
        print_json([part._asdict() for part in checks])
    if not all(part.ok for part in checks):
        sys.exit(1)


def _print(checks: list[Check]) -> None:
    for part in checks:
        state = "ok" if part.ok and not part.state else "--" if part.ok else "!!"
        print_message(f"{state}  {part.name:<18} ", part.detail)
        if part.fix:
            print_message(f"    {'instead' if part.ok else 'fix'}: ", part.fix)


def examine() -> Iterator[Check]:
    """Run all checks that need no profile, one after the other."""
    yield Check("python", True, platform.python_version())
    for line in requires("dbt-arctic") or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            checked = examine_package(requirement)
            yield examine_sqlglot(checked) if requirement.name == "sqlglot" and checked.ok else checked
    yield examine_java()
    yield examine_class_archive()


def examine_package(requirement: Requirement) -> Check:
    """Check whether a required package is installed in a supported version."""
    try:
        found = version(requirement.name)
    except PackageNotFoundError:
        found = "missing"
    if found != "missing" and requirement.specifier.contains(found, prereleases=True):
        return Check(requirement.name, True, found)
    wanted = f"{requirement.name}{requirement.specifier}"
    return Check(requirement.name, False, f"{found}, needs {wanted}", f"pip install '{wanted}'")


def examine_sqlglot(checked: Check) -> Check:
    """Check whether the installed sqlglot can analyse the SQL of automatic models."""
    try:
        verbatim()
    except PackageUnfit as error:
        return Check(checked.name, False, f"{checked.detail}: {error.what}", error.fix)
    return checked


def examine_java() -> Check:
    """Check for a Java that Spark supports."""
    try:
        java = find_java()
    except ArcticError as error:
        return Check("java", False, f"{error.what} {error.where}", error.fix)
    return Check("java", True, f"{java.version}, {java.home}")


def examine_class_archive() -> Check:
    """Report the class archives of this machine. Spark works without one, so this check never fails."""
    found = class_archive.existing()
    none = "none; `dbt-arctic class-archive create` makes Spark start in half the time"
    return Check("class archive", True, ", ".join(map(str, found)) or none)
