"""Whether the refresh that was chosen was the faster one, and what a wrong choice has cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Way = Literal["incremental", "full"]

MIN_SHARE = 0.95
"""The share of the choices that are to be right."""
MAX_FACTOR = 1.3
"""How many times longer than a full refresh of at least ``LONG`` seconds a refresh may take."""
LONG = 5.0
MAX_EXTRA = 2.0
"""How many seconds longer than a shorter full refresh a refresh may take."""
NOISE = 0.1
"""The share by which two runs of the same statements differ. Within it, neither of two ways is the faster."""


@dataclass(frozen=True)
class Measured:
    """A refresh of a model in one round, and the refresh that was not chosen.

    :param chosen: the way that the product chose. :param why: the code of a full refresh, or the kind of an
        incremental one.
    :param seconds: how long the chosen one took. :param other: how long the other one took.
    """

    model: str
    round: int
    chosen: Way
    why: str
    seconds: float
    other: float

    @property
    def lost(self) -> float:
        """The seconds that the choice has cost; negative if it has saved some."""
        return self.seconds - self.other

    @property
    def is_right(self) -> bool:
        """Whether the chosen one was the faster, or as fast."""
        return self.seconds <= self.other * (1 + NOISE)

    @property
    def breaks_the_bound(self) -> bool:
        """Whether an incremental refresh took longer than it may, compared with a full one."""
        if self.chosen != "incremental":
            return False
        if self.other >= LONG:
            return self.seconds > MAX_FACTOR * self.other
        return self.lost > MAX_EXTRA


@dataclass(frozen=True)
class Verdict:
    """What a benchmark found.

    :param losses: the wrong choices, the most expensive first.
    :param broken: those that took longer than a refresh may.
    """

    choices: int
    right: int
    losses: Sequence[Measured]
    broken: Sequence[Measured]

    @property
    def share(self) -> float:
        """The share of right choices; 1 if there was none to make."""
        return self.right / self.choices if self.choices else 1.0

    @property
    def holds(self) -> bool:
        """Whether enough choices were right, and none broke the bound."""
        return self.share >= MIN_SHARE and not self.broken


def verdict_of(measured: Iterable[Measured]) -> Verdict:
    """Count the right choices, and sort the wrong ones by what they cost."""
    found = list(measured)
    wrong = sorted((one for one in found if not one.is_right), key=lambda one: -one.lost)
    broken = [one for one in wrong if one.breaks_the_bound]
    return Verdict(len(found), len(found) - len(wrong), wrong, broken)


def report(verdict: Verdict, worst: int = 10) -> str:
    """The worst losses, one a line, and a last line with the counts."""
    lines = [
        f"{one.model}, round {one.round}: {one.chosen} ({one.why}) in {one.seconds:.2f} s, the other way "
        f"{one.other:.2f} s{', more than allowed' if one.breaks_the_bound else ''}"
        for one in verdict.losses[:worst]
    ]
    return "\n".join(
        [
            *lines,
            f"choice: {verdict.choices} choices, {verdict.right} right ({verdict.share:.1%}), "
            f"{len(verdict.broken)} slower than allowed",
        ]
    )
