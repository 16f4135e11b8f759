"""The import rule: which layer may import which. docs/explanation/architecture.md says why.

Imports are read from the source, not from what happened to be loaded: an import inside a
function counts like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "dbt_arctic"

CONTRACTS = {"brokers.api", "databases.api", "databases.change_log", "engine.api", "catalog.api"}
"""The contracts of a broker, a database, an engine and a catalog: types without an implementation."""

PLANNER = (
    "planner.reasons",
    "planner.spark",
    "planner.algebra",
    "planner.typing",
    "planner.frontend",
    "planner.properties",
    "planner.delta",
    "planner.auxiliary",
)
"""The parts of the planner: each may import those before it."""

_CORE = {"keyed", "data_type", "errors", "human_readable", "locations", *CONTRACTS}
_ALL = {"scheduling", "maintenance", "compaction", "auto", "sources", "refresh", "store", *PLANNER}
_ALL |= {
    "human_readable",
    "locations",
    "keyed",
    "data_type",
    "brokers",
    "databases",
    "engine",
    "catalog",
    "errors",
    "secret",
}

MAY_IMPORT: dict[str, set[str]] = {
    "secret": set(),
    "errors": {"secret"},
    "human_readable": set(),
    "locations": set(),
    "data_type": set(),
    "brokers": {"errors"},
    "databases": {"errors", "secret"},
    "engine": {"data_type", "errors", "human_readable", "secret"},
    "catalog": {"errors", "secret"},
    "keyed": {"data_type", "errors"},
    **{part: {*PLANNER[:place], "keyed", "data_type", "errors"} for place, part in enumerate(PLANNER)},
    "store": _CORE,
    "refresh": {"store", *_CORE},
    "sources": {"refresh", "store", *_CORE},
    "compaction": {"store", *_CORE},
    "scheduling": {"compaction", "sources", "refresh", "store", *_CORE},
    "auto": {"refresh", "store", *PLANNER, *_CORE},
    "maintenance": {"compaction", "auto", "refresh", "store", *_CORE},
    "adapter": _ALL,
    "cli": {"adapter", *_ALL},
    "_entry": {"adapter"},
}
"""For each layer, what else it may import from dbt-arctic: a layer, or one module of it."""

OUTSIDE = {
    "sqlglot",
    "dbt",
    "dbt_common",
    "pyspark",
    "py4j",
    "pyiceberg",
    "sqlalchemy",
    "click",
    "rich",
    "jinja2",
    "impala",
    "impala_thrift_gen",
    "kafka",
    "psycopg",
    "pymysql",
    "vl_convert",
}
"""Packages that reach the world outside, or that belong to one part of it."""

MAY_REACH: dict[str, set[str]] = {
    "secret": set(),
    "errors": set(),
    "human_readable": set(),
    "locations": set(),
    "data_type": set(),
    "keyed": set(),
    **{part: {"sqlglot"} for part in PLANNER},
    "store": {"sqlglot"},
    "refresh": {"sqlglot"},
    "sources": set(),
    "auto": {"sqlglot"},
    "compaction": set(),
    "scheduling": set(),
    "maintenance": set(),
    "brokers": {"kafka"},
    "databases": {"psycopg", "pymysql", "pymysqlreplication"},
    "engine": {"pyspark", "py4j", "impala", "impala_thrift_gen"},
    "catalog": {"pyiceberg", "sqlalchemy"},
    "adapter": {"dbt", "dbt_common", "sqlglot"},
    "cli": {"click", "rich", "dbt", "dbt_common", "jinja2", "vl_convert"},
    "_entry": {"dbt"},
}


NO_LAYER = (PACKAGE / "__init__.py", PACKAGE / "planner" / "__init__.py")


def layer_of(path: Path) -> str:
    """The layer of a module: its folder, or its own name at the top; of the planner, the folder within."""
    return layer_named(path.relative_to(PACKAGE).with_suffix("").parts)


def layer_named(parts: Sequence[str]) -> str:
    return ".".join(parts[:2]) if parts[0] == "planner" else parts[0]


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path not in NO_LAYER)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that a module imports."""
    inside = ["dbt_arctic", *path.relative_to(PACKAGE).with_suffix("").parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = inside[: -node.level] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def broken_rules(path: Path) -> list[str]:
    layer = layer_of(path)
    found = []
    for line, name in imports(path):
        where = f"{path.relative_to(PACKAGE.parent)}:{line}: {layer}"
        top, _, rest = name.partition(".")
        if top == "dbt_arctic":
            target = layer_named(rest.split("."))
            allowed = MAY_IMPORT[layer] | {layer}
            module = ".".join(rest.split(".")[:2])
            if target not in allowed and module not in allowed:
                found.append(f"{where} must not import {name}")
        elif top in OUTSIDE - MAY_REACH[layer]:
            found.append(f"{where} must not import {top}")
    return found


def test_every_layer_has_its_rule() -> None:
    assert {layer_of(path) for path in modules()} <= set(MAY_IMPORT)
    assert set(MAY_IMPORT) == set(MAY_REACH)


def test_the_layers_form_no_circle() -> None:
    below: dict[str, set[str]] = {
        layer: {layer_named(target.split(".")) for target in targets - CONTRACTS}
        for layer, targets in MAY_IMPORT.items()
    }
    while below:
        leaves = {layer for layer, targets in below.items() if not targets & set(below)}
        assert leaves, f"a circle among {sorted(below)}"
        below = {layer: targets for layer, targets in below.items() if layer not in leaves}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_what_its_layer_may_know(path: Path) -> None:
    assert broken_rules(path) == []


PLANNING = {
    f"dbt_arctic.auto.{name}"
    for name in (
        "plan_table",
        "plan_model",
        "auxiliary_view",
        "hidden_columns",
        "requests_after_build",
        "decided_order",
        "advice",
    )
}
"""Modules that make the plan of an automatic model."""


def names_imported_by(module: str) -> set[str]:
    """The full names of what a module of ours imports itself."""
    path = PACKAGE.parent / f"{module.replace('.', '/')}.py"
    return {name for _, name in imports(path)} if path.exists() else set()


def reached(module: str) -> set[str]:
    """A module of ours and all of ours that it imports, themselves or through others."""
    found, waiting = set(), {module}
    while waiting:
        one = waiting.pop()
        found.add(one)
        waiting |= {
            name for whole in names_imported_by(one) for name in (whole, whole.rpartition(".")[0])
        } - found
    return found


EXECUTING = ("plan", "stages", "fallbacks", "execute_table", "execute")

MAKE_A_PLAN = {
    f"dbt_arctic.planner.{name}"
    for name in ("delta.plan.plan_incremental", "auxiliary.aggregate_maintenance.plan_sums")
}
"""Functions that make a refresh plan out of a query."""


@pytest.mark.parametrize("module", EXECUTING)
def test_what_executes_a_plan_does_not_plan(module: str) -> None:
    found = reached(f"dbt_arctic.auto.{module}")
    assert "dbt_arctic.auto.plan" in found
    assert found & PLANNING == set()
    used = {name for one in found if one.startswith("dbt_arctic.auto.") for name in names_imported_by(one)}
    assert used & MAKE_A_PLAN == set()


def test_what_plans_does_not_execute() -> None:
    found = reached("dbt_arctic.auto.plan_model")
    assert "dbt_arctic.auto.plan_table" in found
    assert found & {f"dbt_arctic.auto.{module}" for module in ("execute", "execute_table")} == set()


def test_the_rule_sees_imports_in_functions_and_relative_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path / "dbt_arctic")
    module = tmp_path / "dbt_arctic" / "keyed" / "wrong.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "from ..engine import session\n"
        "from . import names\n"
        "def late():\n"
        "    import pyspark.sql\n"
        "    from dbt_arctic.store.context import Context\n"
    )
    assert broken_rules(module) == [
        "dbt_arctic/keyed/wrong.py:1: keyed must not import dbt_arctic.engine.session",
        "dbt_arctic/keyed/wrong.py:4: keyed must not import pyspark",
        "dbt_arctic/keyed/wrong.py:5: keyed must not import dbt_arctic.store.context.Context",
    ]


ALIASES = {
    "datetime": "dt",
    "hypothesis.strategies": "st",
    "pandas": "pd",
    "pyarrow": "pa",
    "pyarrow.compute": "pc",
    "pyarrow.parquet": "pq",
}
"""Modules with a short name that their users know. Anything else is imported under its own name: if two names
clash, one of them should be a better name."""

PYTHON_FILES = [
    path
    for folder in ("dbt_arctic", "tests", "benchmarks", "example_project")
    for path in sorted((PACKAGE.parent / folder).rglob("*.py"))
    if "target" not in path.parts
]


def other_names(source: str, allowed: set[tuple[str, str]]) -> list[str]:
    """What a module imports under another name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            found += [
                f"{node.lineno}: {base}{one.name} as {one.asname}"
                for one in node.names
                if one.asname and (f"{base}{one.name}", one.asname) not in allowed
            ]
    return found


def test_nothing_is_imported_under_another_name() -> None:
    found = [
        f"{path.relative_to(PACKAGE.parent)}:{one}"
        for path in PYTHON_FILES
        for one in other_names(path.read_text(encoding="utf-8"), set(ALIASES.items()))
    ]
    # The modules of dbt's suite have long names that begin with ``test_``.
    ours = [one for one in found if not re.fullmatch(r"tests/dbt/suite/\S+ dbt\.tests\.\S+ as suite", one)]
    assert ours == []


def test_another_name_of_an_import_is_found() -> None:
    lines = ["import pyarrow as pa", "import json as j", "from a import b as c, d"]
    source = "\n".join([*lines, "from hypothesis import strategies as st"])
    found = other_names(source, set(ALIASES.items()))
    assert found == ["2: json as j", "3: a.b as c"]


def test_no_two_modules_import_each_other() -> None:
    """Not in a circle either, and not for type checking alone."""
    known = {_dotted(path) for path in PACKAGE.rglob("*.py")}
    graph = {
        _dotted(path): {
            found
            for _, name in imports(path)
            if (found := name if name in known else name.rpartition(".")[0]) in known
            and found != _dotted(path)
        }
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py"
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
