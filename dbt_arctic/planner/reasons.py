"""The reasons why a model is refreshed in full: a code for each, with what the user can do about it.

The codes are documented in docs/reference/planner.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

_LINE, _VIEW = "line", "view"
"""Keys in the ``meta`` of a sqlglot node: its line, which sqlglot records, and the view whose text contains
it."""


@dataclass(frozen=True)
class Line:
    """A line, counted from 1.

    :param view: the view whose text the line is in; empty for the compiled SQL.
    """

    number: int
    view: str = ""


@dataclass(frozen=True)
class Reason:
    """The cause of a full refresh.

    :param line: counted from 1 in the compiled SQL, or in the text of the ``view`` that it reads; ``None``
        where none is known.
    :param permanent: a reason in the query itself, for which the next refresh would be a full one as well.
    """

    code: str
    what: str
    fix: str = ""
    line: int | None = None
    view: str = ""
    permanent: Reason | None = None

    def __str__(self) -> str:
        at = f" on {self.place}" if self.line else f" in {self.place}" if self.view else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.code}: {self.what}{at}{fix}"

    def at(self, line: Line | None) -> Reason:
        """The same reason with its line."""
        return self if line is None else replace(self, line=line.number, view=line.view)

    @property
    def lasting(self) -> Reason:
        """The reason to report: the one that is still there when this one is gone."""
        return self.permanent or self

    @property
    def codes(self) -> str:
        """The codes of both.

        >>> Reason("changed-sql", "", permanent=Reason("time", "")).codes
        'time, changed-sql'
        """
        return self.code if self.permanent is None else f"{self.permanent.code}, {self.code}"

    @property
    def place(self) -> str:
        """The place in the text, for a message; empty if it is unknown.

        >>> Reason("random", "", line=3).place, Reason("random", "", line=3, view="lake.shop.v").place
        ('line 3 of the compiled SQL', 'line 3 of the view lake.shop.v')
        """
        text = f"the view {self.view}" if self.view else "the compiled SQL"
        return f"line {self.line} of {text}" if self.line else text if self.view else ""


class CannotPlan(Exception):
    """Raised where the planner cannot go on. It becomes the reason of a full refresh, never an error."""

    def __init__(self, code: str, what: str, fix: str = "", line: Line | None = None) -> None:
        super().__init__(what)
        self.reason = Reason(code, what, fix).at(line)


def line_of(tree: exp.Expr) -> Line | None:
    """The line on which an expression begins; ``None`` if it is unknown."""
    for node in tree.dfs():
        line = node.meta.get(_LINE) if node.meta else None
        if line:
            return Line(int(line), str(node.meta.get(_VIEW, "")))
    return None


def first_line(*trees: exp.Expr | None) -> Line | None:
    """The first known line of several expressions; ``None`` if none is known."""
    return next((line for tree in trees if tree is not None and (line := line_of(tree))), None)


def at_line(tree: exp.Expr, line: Line | None) -> None:
    """Set the line that ``line_of`` returns for an expression that was created from another one."""
    if line is not None:
        tree.meta[_LINE] = line.number
        tree.meta[_VIEW] = line.view


def mark_view(tree: exp.Expr, view: str) -> None:
    """Mark all lines of a tree as lines of a view's text."""
    for node in tree.walk():
        if node.meta and _LINE in node.meta:
            node.meta[_VIEW] = view


@contextmanager
def of_view(view: str) -> Iterator[None]:
    """Add the view to a ``CannotPlan`` raised in this context, unless it names a nested view already."""
    try:
        yield
    except CannotPlan as error:
        error.reason = replace(error.reason, view=error.reason.view or view)
        raise
