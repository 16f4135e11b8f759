"""Rewrites SQL extensions to Spark's syntax when dbt compiles a node.

So runs, ``dbt show``, ``dbt compile``, unit tests, contracts, plans and readers of ephemeral models all use
the same SQL. dbt has no dispatch at this point, so its compiler is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from dbt.adapters.factory import get_adapter
from dbt.compilation import Compiler

from dbt_arctic.adapter.credentials import ADAPTER
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError
from dbt_arctic.planner.spark.qualify import without_qualify
from dbt_arctic.refresh.materializations import is_automatic

SETTING = "sql_extensions"
EXTENSIONS: Mapping[str, Callable[[str], str]] = {"qualify": without_qualify}
"""The extensions that Spark lacks, and the functions that rewrite them."""

_WRAPPED = "_arctic_rewrites_extensions"


def rewrite_when_compiled() -> None:
    """Make dbt's compiler rewrite the SQL of this adapter's nodes."""
    compile_code = Compiler._compile_code
    if hasattr(compile_code, _WRAPPED):
        return

    @wraps(compile_code)
    def compiled(self: Compiler, node: Any, manifest: Any, *more: Any, **named: Any) -> Any:
        made: Any = compile_code(self, node, manifest, *more, **named)
        if self.config.credentials.type == ADAPTER and made.language == "sql" and made.compiled_code:
            with as_dbt_errors():
                made.compiled_code = rewrite_extensions(made.compiled_code, made.name, _config(self, made))
        return made

    setattr(compiled, _WRAPPED, True)
    Compiler._compile_code = compiled  # type: ignore[method-assign]


def rewrite_extensions(sql: str, name: str, config: Mapping[str, Any]) -> str:
    """The SQL of a node without the extensions that its config enables.

    Automatic models enable all of them by default.

    :raises ConfigError: the config names an unknown extension, or a clause cannot be rewritten.
    """
    setting = config.get(SETTING)
    if setting is None:
        setting = list(EXTENSIONS) if is_automatic(config) else []
    listed = [setting] if isinstance(setting, str) else setting
    known = ", ".join(EXTENSIONS)
    if not isinstance(listed, list) or not all(one in EXTENSIONS for one in listed):
        raise ConfigError(
            f"{SETTING} is {setting!r}", where=name, why=f"known are: {known}", fix=f"{SETTING}: [{known}]"
        )
    for one in listed:
        sql = EXTENSIONS[one](sql)
    return sql


def _config(compiler: Compiler, node: Any) -> Mapping[str, Any]:
    """The config of a node; for a unit test, that of the tested model."""
    tested = getattr(node, "tested_node_unique_id", None)
    if tested is not None:
        resolver: Any = get_adapter(compiler.config).get_macro_resolver()
        node = getattr(resolver, "nodes", {}).get(tested, node)
    config = node.config
    return config if isinstance(config, Mapping) else dict(config.to_dict())


__all__ = ["EXTENSIONS", "SETTING", "rewrite_extensions", "rewrite_when_compiled"]
