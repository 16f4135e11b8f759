"""Why a model is refreshed in full: one code for each reason, with what a user can do about it.

The codes are documented in docs/reference/planner.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True)
class Reason:
    """A cause of a full refresh. ``line`` is counted from 1 in the compiled SQL; 0 where none is known."""

    code: str
    what: str
    fix: str = ""
    line: int = 0

    def __str__(self) -> str:
        at = f" on line {self.line}" if self.line else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.code}: {self.what}{at}{fix}"


class CannotPlan(Exception):
    """Raised by the parts of the planner; ends as the reason of a full refresh, never as an error."""

    def __init__(self, code: str, what: str, fix: str = "", line: int = 0) -> None:
        super().__init__(what)
        self.reason = Reason(code, what, fix, line)


def line_of(tree: exp.Expr) -> int:
    """The line in the compiled SQL at which an expression begins; 0 where it is not known."""
    for node in tree.walk():
        line = node.meta.get("line") if node.meta else None
        if line:
            return int(line)
    return 0
