"""Quotes identifiers and values in SQL text. No other module does this."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "'": "\\'",
        "\n": "\\n",
        "\r": "\\r",
        # Not \0: followed by digits, it is an octal escape.
        "\0": "\\u0000",
        # Spark replaces ${name} by the value of a variable in the text of a statement, even inside strings.
        "$": "\\u0024",
    }
)

BY_NAME = "arctic_by_name_"
"""The start of the names of columns that only the text of a view has, see ``adapter/view_columns.py``."""


def quote(identifier: str) -> str:
    """An identifier in backticks, backticks inside it doubled.

    >>> quote("we`ird")
    '`we``ird`'
    """
    return "`" + identifier.replace("`", "``") + "`"


def quote_all(identifiers: Iterable[str]) -> str:
    """A list of columns: ``\\`a\\`, \\`b\\```."""
    return ", ".join(quote(identifier) for identifier in identifiers)


def is_as_stored(text: str) -> bool:
    """Whether a string from Spark has the stored bytes. Invalid UTF-8 is replaced."""
    return "\ufffd" not in text


def literal(value: str) -> str:
    """A string literal of Spark SQL, escaped so that any text is safe.

    >>> literal("it's")
    "'it\\\\'s'"
    """
    return f"'{value.translate(_ESCAPES)}'"


@dataclass(frozen=True, order=True)
class Name:
    """A three-part name of a table or view."""

    catalog: str
    schema: str
    identifier: str

    def sibling(self, identifier: str) -> Name:
        """Another name in the same schema."""
        return Name(self.catalog, self.schema, identifier)

    @property
    def sql(self) -> str:
        """The quoted name."""
        return ".".join(quote(part) for part in (self.catalog, self.schema, self.identifier))

    @property
    def dotted(self) -> str:
        """The name for messages and properties, not for SQL."""
        return f"{self.catalog}.{self.schema}.{self.identifier}"

    def branch(self, branch: str) -> str:
        """SQL that writes to (or reads) a branch of the table."""
        return f"{self.sql}.{quote('branch_' + branch)}"

    def at(self, snapshot_id: int | None) -> str:
        """SQL that reads the table at a snapshot; ``None`` reads its current state."""
        return self.sql if snapshot_id is None else f"{self.sql} VERSION AS OF {snapshot_id}"

    def procedure_argument(self) -> str:
        """The ``table`` argument of an Iceberg procedure of this catalog."""
        return literal(f"{quote(self.schema)}.{quote(self.identifier)}")

    def __str__(self) -> str:
        return self.dotted
