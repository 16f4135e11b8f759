"""Files that only their owner can read, for settings with secrets that are passed to a starting Spark.

Every user of the machine can read a command line, but not a file with these permissions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.secret import blanked


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, atomically."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    draft.replace(path)


def blank_secrets(path: Path) -> None:
    """Overwrite known secrets in a log that a process may still be writing.

    The launcher logs URLs.
    """
    if not path.exists():
        return  # the process did not get to write it
    with path.open("r+b") as file:
        text = file.read()
        blank = blanked(text)
        if blank != text:
            file.seek(0)
            file.write(blank)


def write_properties(path: Path, conf: Mapping[str, str]) -> None:
    """Write a conf in the format of spark-submit's ``--properties-file``."""
    write_private(
        path, "".join(f"{_escaped(key, ' :=#!')}={_escaped(value)}\n" for key, value in conf.items())
    )


def _escaped(text: str, special: str = "") -> str:
    """Escape a key or a value of a Java properties file."""
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    for char in special:
        text = text.replace(char, "\\" + char)
    if text.startswith(" "):
        text = "\\" + text
    return "".join(char if ord(char) < 128 else _unicode_escapes(char) for char in text)


def _unicode_escapes(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
