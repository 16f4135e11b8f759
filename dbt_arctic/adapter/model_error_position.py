"""Errors of statements name the line of the model's file, or the setting, that Spark rejected.

A statement wraps the model's SQL in SQL of this adapter, so a position in it means nothing to its author.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dbt_arctic.engine.faults import node_of
from dbt_arctic.errors import StatementError

_THREAD = threading.local()

_SETTINGS_WITH_SQL = (
    "delete_when",
    "deduplicate_by",
    "sequence_by",
    "incremental_predicates",
    "predicates",
    "updated_at",
)
"""The settings of a model whose text becomes part of a statement."""


class _SqlSetting(NamedTuple):
    name: str
    sql: str


def locate_in(model: Mapping[str, Any]) -> None:
    """Set the model whose statements this thread runs from now on.

    :param model: the node, as dbt's macros see it.
    """
    _THREAD.model = model


def in_model(error: StatementError) -> StatementError:
    """The error with a position in the file of the current model.

    It is the same error if the statement is not the model's, or if the position is unknown.
    """
    model: Mapping[str, Any] | None = getattr(_THREAD, "model", None)
    if model is None or error.line is None or not _belongs_to(error.statement, model):
        return error
    where = _place(error.line, error.statement, model)
    if where is None:
        return error
    return StatementError(error.what, where=where, why=error.why, fix=error.fix, statement=error.statement)


def _belongs_to(statement: str, model: Mapping[str, Any]) -> bool:
    node = node_of(statement)
    # The statements that analyse a query have no comment with the node.
    return node == model.get("unique_id") if node is not None else _start(statement, model) is not None


def _start(statement: str, model: Mapping[str, Any]) -> int | None:
    """The number of lines before the model's SQL; ``None`` if the statement does not contain it."""
    compiled = (model.get("compiled_code") or "").strip()
    at = statement.find(compiled) if compiled else -1
    return None if at < 0 else statement.count("\n", 0, at)


def _place(number: int, statement: str, model: Mapping[str, Any]) -> str | None:
    text = statement.split("\n")[number - 1].strip()
    file = model.get("original_file_path") or model.get("name")
    line = _only_line(model.get("raw_code") or "", text)
    if line is not None:
        return f"{file}, line {line}: {text}"
    line = _compiled_line(number, text, statement, model)
    if line is not None:
        return f"the compiled SQL of {file}, line {line}: {text}"
    for setting in _settings(model):
        if re.search(rf"(?<!\w){re.escape(setting.sql)}(?!\w)", text):
            return f"{file}, {setting.name}: {setting.sql}"
    return None


def _compiled_line(number: int, text: str, statement: str, model: Mapping[str, Any]) -> int | None:
    compiled, start = model.get("compiled_code") or "", _start(statement, model)
    if start is None:
        return _only_line(compiled, text)
    leading = compiled.count("\n", 0, len(compiled) - len(compiled.lstrip()))
    line = number - start + leading
    return line if leading < line <= compiled.rstrip().count("\n") + 1 else None


def _only_line(text: str, wanted: str) -> int | None:
    """The number of the line of a text, from 1, if exactly one line is the wanted one."""
    numbers = [number for number, line in enumerate(text.split("\n"), 1) if line.strip() == wanted]
    return numbers[0] if len(numbers) == 1 else None


def _settings(model: Mapping[str, Any]) -> Iterator[_SqlSetting]:
    config = model.get("config") or {}
    for name in _SETTINGS_WITH_SQL:
        value = config.get(name)
        for text in [value] if isinstance(value, str) else value or []:
            if isinstance(text, str) and text:
                yield _SqlSetting(name, text)


__all__ = ["in_model", "locate_in"]
