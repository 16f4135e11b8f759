"""Each materialization checks the config of a model once, and recovers an interrupted swap once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MACROS = Path(__file__).parents[2] / "macros" / "materializations"
PREAMBLE = ("adapter.check_config(model)", "recover_swap(this)")
BLOCK = re.compile(r"\{% (?:materialization|macro) (\w+).*?\{%-? end(?:materialization|macro) %\}", re.DOTALL)
RUNS = {
    "return(materialization_incremental_arctic())": "incremental",
    "return(arctic__run_incremental())": "arctic__run_incremental",
}


def blocks() -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(MACROS.rglob("*.sql")):
        found |= {match[1]: match[0] for match in BLOCK.finditer(path.read_text(encoding="utf-8"))}
    return found


def times(name: str, step: str) -> int:
    """How often a run of a block takes a step, itself or in the blocks that it runs."""
    text = blocks()[name]
    inner = (times(other, step) for call, other in RUNS.items() if call in text and other != name)
    return text.count(step) + sum(inner)


@pytest.mark.parametrize("step", PREAMBLE)
@pytest.mark.parametrize("name", ["incremental", "materialized_view", "streaming_table"])
def test_the_preamble_of_a_materialization_runs_once(name: str, step: str) -> None:
    assert times(name, step) == 1
