"""Advice on an automatic model: why it cannot be refreshed incrementally, and the line that causes it.

dbt knows the SQL of a model once it is compiled. So ``dbt compile``, ``dbt-arctic plan`` and runs of the
model report the advice, but ``dbt parse`` cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from dbt_arctic.auto.advice import Advice, advise
from dbt_arctic.auto.decided_order import with_decided_order
from dbt_arctic.auto.inputs import ModelInputs, find_inputs
from dbt_arctic.auto.key_selection import ProjectKeys, with_needed_keys
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import parse_config


def advice_for(
    catalog: CatalogReader,
    name: Name,
    model: Mapping[str, Any],
    root: str | Path | None,
    keys: ProjectKeys,
    settings: str,
    inputs: ModelInputs | None = None,
) -> list[Advice]:
    """The advice for a compiled model. Lines are those of its file, or of the text of a view that it reads.

    :param model: dbt's node as a mapping.
    :param root: the folder of the project.
    :param keys: the keys that the project declares.
    :param settings: those with which the model is run, as far as they are declared.
    :param inputs: what the query reads, if known.
    """
    compiled = str(model["compiled_code"])
    config = parse_config(model["name"], model["config"])
    if inputs is None:
        config = with_needed_keys(catalog, name, config, compiled, keys, settings)
        sql = with_decided_order(catalog, name, config, compiled, settings)
        inputs = find_inputs(catalog, name, sql, {}, declared=config.declared_keys, settings=settings)
    text = _file_text(model, root)
    found = []
    for advice in advise(inputs, config):
        line = advice.reason.line
        # A line of a view that the model reads is not a line of the model.
        if line is not None and not advice.reason.view:
            line = model_line(text, compiled, line)
        found.append(replace(advice, reason=replace(advice.reason, line=line)))
    return found


def advice_text(advice: Advice, model: Mapping[str, Any]) -> str:
    """The advice as one sentence for the problem and one for the solution."""
    reason, path = advice.reason, model["original_file_path"]
    at = f"line {reason.line} of {path}" if reason.line else path
    at = f"{reason.place}, which {path} reads" if reason.view else at
    what = "can never be refreshed incrementally" if advice.always else "is sometimes refreshed in full"
    fix = f". To avoid this: {reason.fix}" if reason.fix else ""
    return f"{model['name']} {what}: {reason.what} ({reason.code}, {at}){fix}."


def model_line(text: str, compiled: str, line: int) -> int | None:
    """The line of a model's file from which a line of its compiled SQL comes; ``None`` if unknown.

    >>> model_line("{{ config(\\n  x=1) }}\\nselect a,\\n  rand()", "\\nselect a,\\n  rand()", 3)
    4
    """
    theirs, ours = _lines(text), _lines(compiled)
    matched = SequenceMatcher(None, theirs, ours, autojunk=False)
    for tag, their_first, their_end, our_first, our_end in matched.get_opcodes():
        if not our_first < line <= our_end:
            continue
        # Lines with a ref() differ. If a replaced block has the same number of lines, they correspond one to
        # one.
        if tag == "equal" or their_end - their_first == our_end - our_first:
            return their_first + line - our_first
    return None


def _lines(text: str) -> Sequence[str]:
    return [line.strip() for line in text.splitlines()]


def _file_text(model: Mapping[str, Any], root: str | Path | None) -> str:
    """The content of the model's file; otherwise the text that dbt has.

    dbt drops the empty lines at the beginning of a file.
    """
    raw = str(model["raw_code"])
    path = Path(root or "") / str(model["original_file_path"])
    if root is not None and path.is_file():
        text = path.read_text(encoding="utf-8")
        if raw.strip() in text:
            return text
    return raw
