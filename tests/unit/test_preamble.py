"""Each materialization checks the config of a model once, and recovers an interrupted swap once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

MACROS = Path(__file__).parents[2] / "macros" / "materializations"
PREAMBLE = ("adapter.check_config(model)", "recover_swap(this)")
BLOCK = re.compile(r"\{% (?:materialization|macro) (\w+).*?\{%-? end(?:materialization|macro) %\}", re.DOTALL)
INCREMENTAL = "return(materialization_incremental_arctic())"
OF_OTHERS = re.compile(
    r"\{%- if model\.config\.materialized != 'materialized_view' -%\}.*?\{%- endif -%\}", re.DOTALL
)


def block(name: str) -> str:
    for path in sorted(MACROS.rglob("*.sql")):
        for match in BLOCK.finditer(path.read_text(encoding="utf-8")):
            if match[1] == name:
                return match[0]
    raise AssertionError(name)


@pytest.mark.parametrize("step", PREAMBLE)
@pytest.mark.parametrize("name", ["incremental", "materialized_view", "streaming_table"])
def test_the_preamble_of_a_materialization_runs_once(name: str, step: str) -> None:
    text = block(name) + (block("incremental") if INCREMENTAL in block(name) else "")
    if name == "materialized_view":
        text, skipped = OF_OTHERS.subn("", text)
        assert skipped == 1
    assert text.count(step) == 1
