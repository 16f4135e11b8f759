"""A Java exception as Python sees it: a chain of causes."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """One link of a chain of Java causes, the outermost first: full class name and message."""

    java_class: str
    message: str

    @property
    def name(self) -> str:
        return self.java_class.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
