"""A Java exception in Python: a chain of causes."""

from __future__ import annotations

from typing import NamedTuple


class Cause(NamedTuple):
    """One link of a chain of Java causes, outermost first: full class name and message."""

    java_class: str
    message: str

    @property
    def name(self) -> str:
        """The class name without package and outer class."""
        return self.java_class.rsplit(".", 1)[-1].rsplit("$", 1)[-1]
