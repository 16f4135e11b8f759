"""The results of the matrix, as lines for the terminal and as the page ``docs/reference/matrix.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.matrix.cells import ALL, Cell

_HEAD = """# Tested catalogs, engines and stores

`make matrix` writes this page. It starts each component on this machine and runs one project in each cell:
seeds, a keyed, an automatic and a merged model and a snapshot over three rounds. An upsert and a full
refresh fail before their last statement and are repeated. Compaction, `verify` and `docs generate` follow.
The rows are compared with an oracle after each step. On a catalog without views, the keyed tables have a
[record instead](../explanation/without-views.md), and a view has to be refused.

Then come random operations on keyed tables with interruptions and concurrent runs, each compared with the
oracle (`steps`), and classes of dbt's adapter suite (`tests`). The models of the
[example project](../../example_project/README.md) are compared with their rebuilds. It has views and loads
files, so it does not run without views or on a Thrift server.

The columns on the right are what [the catalog can do](../explanation/capabilities.md), as `dbt debug` reports
it. In cells with `standalone`, the executors run on a cluster of two workers, and both must have executed
tasks. Those with `connect` and `thrift` run on a server.

"""
_CAPABILITIES = ("format v3", "row lineage", "branches", "concurrent commits", "views", "rename", "drop")


@dataclass(frozen=True)
class Result:
    """How a cell ended.

    :param facts: the last line of its story.
    :param day: on which it ended, as ISO text.
    """

    cell: Cell
    state: Literal["passed", "impossible", "failed", "not run"]
    why: str = ""
    components: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: int = 0
    day: str = ""

    @property
    def line(self) -> str:
        told = self.why or f"{', '.join(self.components) or 'SQLite'}, {self.seconds} s"
        return f"{self.cell.name:<24} {self.state:<10} {told}"


def keep(file: Path, result: Result, versions: Mapping[str, str]) -> None:
    """Keep the result of a cell. Those of other cells stay."""
    found = {**asdict(result), "versions": dict(versions)}
    del found["cell"]
    kept = {**_kept(file), result.cell.name: found}
    file.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _kept(file: Path) -> dict[str, dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def stored_results(file: Path, versions: Mapping[str, str]) -> list[Result]:
    """The last result of each cell with these versions; ``not run`` for one without a result."""
    results, kept = [], _kept(file)
    for cell in ALL:
        found = kept.get(cell.name, {})
        if cell.impossible:
            results.append(Result(cell, "impossible", cell.impossible))
        elif found.pop("versions", None) == dict(versions):
            results.append(Result(cell, **found))
        else:
            results.append(Result(cell, "not run", "there is no result yet"))
    return results


def write_page(path: Path, results: Sequence[Result], versions: Mapping[str, str]) -> None:
    """Write the page."""
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    heads = ("cell", "result", "day", "components", "steps", "tests", "example", *_CAPABILITIES)
    lines = [_HEAD + f"Versions: {listed}.", "", _row(heads), _row(["---"] * len(heads))]
    lines += [_row(_cells(one)) for one in results if one.state in ("passed", "failed")]
    if any(one.state == "passed" and "steps" not in one.facts for one in results):
        lines += ["", "Cells without a number of steps ran the project only."]
    if missing := [f"`{one.cell.name}`" for one in results if one.state == "not run"]:
        lines += ["", f"Not run yet: {', '.join(missing)}."]
    lines += ["", "These cells do not exist:", ""]
    lines += [f"* `{one.cell.name}`: {one.why}" for one in results if one.state == "impossible"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cells(one: Result) -> list[str]:
    states = one.facts.get("states", {})
    components = ", ".join(one.components) or "SQLite"
    ran = [str(one.facts.get(name, "")) for name in ("steps", "tests", "example")]
    can = (states.get(name, "") for name in _CAPABILITIES)
    return [f"`{one.cell.name}`", one.state, one.day, components, *ran, *can]


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"
