"""Why a model is refreshed in full: one code for each reason, with what a user can do about it.

The codes are documented in docs/reference/planner.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

_LINE, _VIEW = "line", "view"
"""In the ``meta`` of parts of a tree: the line, which sqlglot notes, and the view whose text it is of."""


class Line(int):
    """A line of a text, counted from 1; 0 where it is not known.

    :param view: the view whose text it is; empty: it is the compiled SQL's.
    """

    view: str

    def __new__(cls, number: int = 0, view: str = "") -> Line:
        made = super().__new__(cls, number)
        made.view = view
        return made


@dataclass(frozen=True)
class Reason:
    """A cause of a full refresh.

    :param line: counted from 1 in the compiled SQL, or in the text of the ``view`` that it reads; 0 where
        none is known.
    :param permanent: a reason in the query itself, for which the next refresh would be a full one as well.
    """

    code: str
    what: str
    fix: str = ""
    line: int = 0
    view: str = ""
    permanent: Reason | None = None

    def __str__(self) -> str:
        at = f" on {self.place}" if self.line else f" in {self.place}" if self.view else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.code}: {self.what}{at}{fix}"

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
        """Where it is, for a person; empty where that is not known.

        >>> Reason("random", "", line=3).place, Reason("random", "", line=3, view="lake.shop.v").place
        ('line 3 of the compiled SQL', 'line 3 of the view lake.shop.v')
        """
        text = f"the view {self.view}" if self.view else "the compiled SQL"
        return f"line {self.line} of {text}" if self.line else text if self.view else ""


class CannotPlan(Exception):
    """Raised by the parts of the planner; ends as the reason of a full refresh, never as an error."""

    def __init__(self, code: str, what: str, fix: str = "", line: int = 0) -> None:
        super().__init__(what)
        self.reason = Reason(code, what, fix, int(line), line.view if isinstance(line, Line) else "")


def line_of(tree: exp.Expr) -> Line:
    """The line at which an expression begins; 0 where it is not known."""
    for node in tree.dfs():
        line = node.meta.get(_LINE) if node.meta else None
        if line:
            return Line(int(line), str(node.meta.get(_VIEW, "")))
    return Line()


def first_line(*trees: exp.Expr | None) -> Line:
    """The line of the first of several expressions of which it is known."""
    return next((line for tree in trees if tree is not None and (line := line_of(tree))), Line())


def at_line(tree: exp.Expr, line: Line) -> None:
    """Has ``line_of`` say so of an expression that was made of another."""
    if line:
        tree.meta[_LINE] = int(line)
        tree.meta[_VIEW] = line.view


def mark_view(tree: exp.Expr, view: str) -> None:
    """The lines of a tree are those of a view's text."""
    for node in tree.walk():
        if node.meta and _LINE in node.meta:
            node.meta[_VIEW] = view


@contextmanager
def of_view(view: str) -> Iterator[None]:
    """What is found in here is in the text of a view, or of one that this reads, which says so itself."""
    try:
        yield
    except CannotPlan as error:
        error.reason = replace(error.reason, view=error.reason.view or view)
        raise
