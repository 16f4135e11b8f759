"""Compiled SQL in Spark's words. dbt compiles every node in one place, and there alone it is rewritten.

So runs, ``dbt show``, ``dbt compile``, unit tests, contracts, plans and the readers of ephemeral models have
one text. dbt dispatches nothing there, which is why its compiler is wrapped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from dbt.adapters.factory import get_adapter
from dbt.compilation import Compiler

from dbt_arctic.adapter.advice import is_automatic
from dbt_arctic.adapter.credentials import ADAPTER
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError
from dbt_arctic.planner.spark.qualify import without_qualify

SETTING = "sql_extensions"
EXTENSIONS: Mapping[str, Callable[[str], str]] = {"qualify": without_qualify}
"""What Spark lacks, and what writes it in Spark's words."""

_WRAPPED = "_arctic_rewrites_extensions"


def rewrite_when_compiled() -> None:
    """Have dbt's compiler rewrite the SQL of this adapter's nodes."""
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
    """The SQL of a node without what its config asks to have rewritten. Automatic models ask for everything,
    unless they say otherwise.

    :raises ConfigError: the config names nothing that is known, or a clause cannot be rewritten.
    """
    asked = config.get(SETTING)
    if asked is None:
        asked = list(EXTENSIONS) if is_automatic(config) else []
    listed = [asked] if isinstance(asked, str) else asked
    known = ", ".join(EXTENSIONS)
    if not isinstance(listed, list) or not all(one in EXTENSIONS for one in listed):
        raise ConfigError(
            f"{SETTING} is {asked!r}", where=name, why=f"known are: {known}", fix=f"{SETTING}: [{known}]"
        )
    for one in listed:
        sql = EXTENSIONS[one](sql)
    return sql


def _config(compiler: Compiler, node: Any) -> Mapping[str, Any]:
    """The config of a node; of a unit test that of the model whose SQL it runs."""
    tested = getattr(node, "tested_node_unique_id", None)
    if tested is not None:
        resolver: Any = get_adapter(compiler.config).get_macro_resolver()
        node = getattr(resolver, "nodes", {}).get(tested, node)
    config = node.config
    return config if isinstance(config, Mapping) else dict(config.to_dict())


__all__ = ["EXTENSIONS", "SETTING", "rewrite_extensions", "rewrite_when_compiled"]
