"""``target.type`` in Jinja: ``arctic`` in the root project, ``spark`` in the packages that it installs.

Packages branch on ``target.type`` and support ``spark`` but not ``arctic``. dbt requests ``target`` from the
configuration of the root project each time it creates a context, and for the configuration of each package.
So the configuration can provide both values without a change to dbt's own classes.
"""

from __future__ import annotations

import inspect
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any

from dbt.adapters.factory import get_adapter_package_names
from dbt.config.profile import Profile
from dbt.config.project import Project
from dbt.config.runtime import RuntimeConfig
from dbt.context.configured import ConfiguredContext

from dbt_arctic.adapter.credentials import ADAPTER, credentials_of_type

IN_PACKAGES = "spark"


def name_spark_in_packages(config: Any) -> None:
    """Let the packages of a project see ``spark``, unless the profile disables it.

    :param config: dbt's configuration of the root project. ``dbt debug`` passes only a profile, without
        packages.
    """
    if type(config) is RuntimeConfig and getattr(config.credentials, "packages_see_spark", False):
        config.__class__ = _RootConfig


class _RootConfig(RuntimeConfig):
    """The configuration of the root project.

    Contexts and configurations of packages are created from it.
    """

    def to_target_dict(self) -> dict[str, Any]:
        target: dict[str, Any] = super().to_target_dict()
        # dbt does not pass the context as an argument.
        frame = inspect.currentframe()
        caller = frame.f_back.f_locals.get("self") if frame and frame.f_back else None
        return _Target(target, caller) if isinstance(caller, ConfiguredContext) else target

    def new_project(self, project_root: str) -> RuntimeConfig:
        with credentials_of_type(IN_PACKAGES):
            return super().new_project(project_root)

    @classmethod
    def from_parts(
        cls,
        project: Project,
        profile: Profile,
        args: Any,
        dependencies: Mapping[str, RuntimeConfig] | None = None,
    ) -> RuntimeConfig:
        # dbt_project.yml is rendered. From here on, dbt looks up the adapter by this type.
        with credentials_of_type(ADAPTER):
            return super().from_parts(project, profile, args, dependencies)


class _Target(dict[str, Any]):
    """``target`` of one context. Its ``type`` depends on the code that reads it."""

    def __init__(self, values: Mapping[str, Any], context: ConfiguredContext) -> None:
        super().__init__(values)
        self._context = context

    def __getitem__(self, key: str) -> Any:
        if key == "type" and in_package(self._context):
            return IN_PACKAGES
        return super().__getitem__(key)

    # The inherited methods would read stored values without __getitem__. With a separate __iter__,
    # dict(target) does not.

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key == "type" else super().get(key, default)

    def copy(self) -> dict[str, Any]:
        return {key: self[key] for key in self}

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]  # a view of a copy
        return self.copy().items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        return self.copy().values()

    def __repr__(self) -> str:
        return repr(self.copy())


def in_package(context: ConfiguredContext) -> bool:
    """Whether the code that currently runs in a dbt context belongs to an installed package.

    This is determined by the innermost macro, or outside of macros by the model, test, hook or YAML file.
    dbt's own macros and those of the adapter are ignored: in a hook, they render the text of the model.
    """
    internal = {"dbt", *get_adapter_package_names(ADAPTER)}
    stack = getattr(context, "macro_stack", None)
    callers = [unique_id.split(".")[1] for unique_id in reversed(stack.call_stack)] if stack else []
    node = getattr(context, "model", None) or getattr(context, "node", None)
    # A YAML file has no node. dbt stores its package under another name.
    of_context = getattr(node, "package_name", None) or getattr(context, "_project_name", None)
    package_of_caller = next(
        (package for package in (*callers, of_context) if package and package not in internal), None
    )
    return package_of_caller is not None and package_of_caller != context.config.project_name
