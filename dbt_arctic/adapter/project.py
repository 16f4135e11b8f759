"""The dbt project and target of a ``dbt-arctic`` command, found and read in the same way as dbt does."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dbt_common.context import set_invocation_context
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.errors import ConfigError, ProfileError

if TYPE_CHECKING:
    from dbt.config.profile import Profile


class Target(NamedTuple):
    """The folder of a project and one target of its profile."""

    project_root: Path
    name: str
    credentials: ArcticCredentials
    artifacts: Path
    """The folder of dbt's manifest and results."""
    profiles_dir: Path | None = None
    """The folder of the profile."""
    other_catalog: str | None = None
    """Another catalog of the profile, which a command is to look at instead of its own one."""

    @property
    def catalog(self) -> str:
        """The catalog of names without one."""
        return self.other_catalog or self.credentials.database

    def in_catalog(self, name: str | None) -> Target:
        """The same target for a command that looks at another catalog of the profile.

        :param name: ``None`` for the profile's own one.
        :raises ConfigError: the profile has no catalog of this name.
        """
        if name is None:
            return self
        names = self.credentials.catalog_names
        if name not in names:
            raise ConfigError(
                f"the profile has no catalog {name}",
                where=f"profiles.yml, target {self.name}",
                why=f"its catalogs are: {', '.join(names)}",
                fix="correct the name after --catalog, or add it under catalogs",
            )
        return self._replace(other_catalog=name)


def find_project(project_dir: Path | None = None) -> Path:
    """The folder of the project that dbt would use in this folder.

    :raises ProfileError: there is none.
    """
    from dbt.cli.resolvers import default_project_dir

    root = Path(project_dir or default_project_dir()).resolve()
    if not (root / "dbt_project.yml").exists():
        raise ProfileError(
            "There is no dbt project here.",
            where=str(root),
            why="dbt_project.yml was not found in this folder or one above it",
            fix="change to the project's folder, or use --project-dir path/to/project",
        )
    return root


def find_profiles(profiles_dir: Path | None = None) -> Path:
    """The folder of the ``profiles.yml`` that dbt would use in this folder."""
    from dbt.cli.resolvers import default_profiles_dir

    return Path(profiles_dir or default_profiles_dir())


def model_folders(root: Path) -> list[str]:
    """The folders of a project's models, relative to the project."""
    from dbt.config.project import load_raw_project

    return list(load_raw_project(str(root)).get("model-paths") or ["models"])


_OWN_ERROR = re.compile(r"AR-101 (.*)\n\s+where: profiles\.yml(.*)\n(?:\s+why:\s+(.*)\n)?\s+fix:\s+(.*)")


def _unreadable_profile(path: Path, message: str) -> ProfileError:
    """The error of a profile. One of this adapter is shown as it is, and not inside of dbt's.

    >>> said = "Runtime Error\\n  The profile 'a' does not have a target named 'b'. It has:\\n   - dev"
    >>> _unreadable_profile(Path("a.yml"), said).why
    "The profile 'a' does not have a target named 'b'. It has: - dev"
    >>> print(_unreadable_profile(Path("a.yml"), "AR-101 x is wrong\\n  where: profiles.yml, x\\n  fix: y"))
    AR-101 x is wrong
      where: a.yml, x
      fix:   y
    """
    own = _OWN_ERROR.search(message)
    if own is None:
        what, fix = "The project's profile cannot be read.", "run dbt debug for details"
        if "does not have a target named" in message:
            fix = "name a target that the profile has, or add this one to it"
            message = " ".join(line.strip() for line in message.splitlines() if line != "Runtime Error")
        return ProfileError(what, where=str(path), why=message, fix=fix)
    what, setting, why, fix = (part or "" for part in own.groups())
    return ProfileError(what, where=f"{path}{setting}", why=why, fix=fix)


def load_target(
    project_dir: Path | None = None, profiles_dir: Path | None = None, target: str | None = None
) -> Target:
    """The target that dbt would use in this folder.

    :raises ProfileError: there is no project or no profile, or the target is not of type ``arctic``.
    """
    from dbt.config.runtime import load_profile
    from dbt.flags import set_from_args

    root = find_project(project_dir)
    folder = find_profiles(profiles_dir)
    set_from_args(argparse.Namespace(PROJECT_DIR=str(root), PROFILES_DIR=str(folder)), None)
    set_invocation_context(os.environ)  # required by env_var() in the profile
    try:
        profile = load_profile(str(root), {}, None, target)
    except DbtRuntimeError as error:
        raise _unreadable_profile(folder / "profiles.yml", str(error).strip()) from error
    if not isinstance(profile.credentials, ArcticCredentials):
        raise ProfileError(
            f"The target {profile.target_name!r} is of type {profile.credentials.type!r}.",
            where=str(folder / "profiles.yml"),
            fix="choose a target of type arctic: --target NAME",
        )
    return Target(root, profile.target_name, profile.credentials, _artifacts(root, profile), folder)


def _artifacts(root: Path, profile: Profile) -> Path:
    """The folder of artifacts that dbt uses without ``--target-path``."""
    from dbt.config import project
    from dbt.config.renderer import DbtProjectYamlRenderer

    for variable in ("DBT_ENGINE_TARGET_PATH", "DBT_TARGET_PATH"):
        if chosen := os.environ.get(variable):
            return root / chosen
    try:
        configured = project.load_raw_project(str(root)).get("target-path")
        # dbt 1.12 has variables in a separate file, vars.yml.
        read_variables = getattr(project, "vars_data_from_root", None)
        variables = read_variables(str(root)) if read_variables is not None else {}
        renderer = DbtProjectYamlRenderer(profile, variables)
        return root / str(renderer.render_value(configured) if configured else "target")
    except DbtRuntimeError as error:
        raise ProfileError(
            "The project's target-path cannot be read.",
            where=str(root / "dbt_project.yml"),
            why=str(error).strip(),
            fix="set DBT_TARGET_PATH to the folder",
        ) from error
