"""Reads from a project's tests what the columns of its sources and seeds must satisfy.

A check preserves it.

A test of a model also applies to the source or seed that the model reads, if it reads only one, because
staging models keep most names. If a name has a different meaning there, a check makes fewer kinds of changes,
but remains correct.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_NAME = r"""['"]([^'"]+)['"]"""
_TO = re.compile(rf"(?:ref|source)\(\s*{_NAME}(?:\s*,\s*{_NAME})?")


@dataclass(frozen=True)
class Reference:
    """A column whose values are all in a column of another table."""

    column: str
    parent: str
    """The id of the other source or seed."""
    parent_column: str


@dataclass
class Declared:
    """The declarations for one source or seed, with lower-case column names."""

    keys: list[tuple[str, ...]] = field(default_factory=list)
    required: set[str] = field(default_factory=set)
    """NOT NULL columns."""
    listed: set[str] = field(default_factory=set)
    """Columns with a list of accepted values."""
    references: list[Reference] = field(default_factory=list)

    @property
    def closed(self) -> set[str]:
        """Columns that may only have existing values."""
        return self.listed | {reference.column for reference in self.references}


def declared_tests(nodes: Mapping[str, Any]) -> dict[str, Declared]:
    """The declarations by id of a source or seed.

    :param nodes: dbt's nodes by id.
    """
    found: dict[str, Declared] = {}
    for test in nodes.values():
        metadata = getattr(test, "test_metadata", None)
        if metadata is None:
            continue
        tested, parent = tested_nodes(test, metadata.kwargs)
        table = _origin(tested, nodes)
        if table is None:
            continue
        declared = found.setdefault(table, Declared())
        column = plain_column(metadata.kwargs.get("column_name", ""))
        if metadata.name == "unique":
            declared.keys.append((column,))
        elif metadata.name == "unique_combination_of_columns":
            declared.keys.append(tuple(map(plain_column, metadata.kwargs["combination_of_columns"])))
        elif metadata.name == "not_null":
            declared.required.add(column)
        elif metadata.name == "accepted_values":
            declared.listed.add(column)
        elif metadata.name == "relationships":
            origin = _origin(parent, nodes)
            if origin is not None:
                declared.references.append(Reference(column, origin, plain_column(metadata.kwargs["field"])))
    return found


def tested_nodes(test: Any, kwargs: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The node of a test, and the node it is compared with. dbt does not attach tests to sources."""
    read = list(test.depends_on.nodes)
    to = _TO.search(str(kwargs.get("to", "")))
    parent = None
    if to is not None:
        name = ".".join(part for part in to.groups() if part)
        matching = [one for one in read if one.endswith(f".{name}") or one.split(".")[2] == to.group(1)]
        parent = matching[0] if matching else None
    others = [one for one in read if one != parent] or read
    return (others[0] if len(others) == 1 else None), parent


def _origin(unique_id: str | None, nodes: Mapping[str, Any]) -> str | None:
    """The only source or seed from which a node reads; ``None`` if there are several."""
    while unique_id is not None and unique_id.startswith("model."):
        read = nodes[unique_id].depends_on.nodes if unique_id in nodes else []
        unique_id = read[0] if len(read) == 1 else None
    return unique_id if unique_id is not None and unique_id.startswith(("source.", "seed.")) else None


def plain_column(column: Any) -> str:
    """The name of a column in lower case, without quotes."""
    return str(column).strip('`"').lower()
