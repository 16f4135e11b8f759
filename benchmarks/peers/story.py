"""What is done to one table from its load to the end of a process: values, which go through JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.peers.workload import KEYS, READS, Round, plan_rounds


@dataclass(frozen=True)
class Case:
    """Some rounds on a table, what is read in between, and what comes after them.

    :param rounds: of each round how many keys it changes, and which.
    :param read_after: after how many of these rounds the table is read; 0 is before the first one.
    :param compact: whether it is compacted at the end, and read again.
    :param reads: what is read, of ``workload.reads``.
    :param maintain: whether each round is followed by what a peer's users would run.
    """

    name: str
    rounds: tuple[tuple[int, str], ...]
    read_after: frozenset[int]
    compact: bool = True
    maintain: bool = False
    reads: tuple[str, ...] = ("aggregate",)


@dataclass(frozen=True)
class Story:
    """:param workload: the part of the benchmark that it belongs to.
    :param kind: ``rounds`` of changes on one table, ``tpch``, or ``layers``.
    :param repeat: how often each read is measured.
    :param without: peers that have no part in it.
    """

    workload: str
    rows: int
    cases: tuple[Case, ...] = ()
    kind: str = "rounds"
    repeat: int = 3
    scale: float = 0
    without: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return f"{self.workload}-{self.rows}"

    def planned(self) -> list[Round]:
        return plan_rounds(self.rows, [change for case in self.cases for change in case.rounds])

    def as_dict(self) -> dict[str, Any]:
        told = asdict(self)
        for case in told["cases"]:
            case["read_after"] = sorted(case["read_after"])
        return told

    @staticmethod
    def from_dict(told: Mapping[str, Any]) -> Story:
        cases = tuple(
            Case(
                case["name"],
                tuple((count, keys) for count, keys in case["rounds"]),
                frozenset(case["read_after"]),
                case["compact"],
                case["maintain"],
                tuple(case["reads"]),
            )
            for case in told["cases"]
        )
        return Story(**{**told, "cases": cases, "without": tuple(told["without"])})


SHARES = (0.01, 0.001, 0.1)


def upserts(rows: int, rounds: int) -> Story:
    """Every share with every choice of keys; each combination ends with a compaction."""
    cases = [
        Case(
            f"{share:.1%} {keys}",
            ((max(10, int(rows * share)), keys),) * rounds,
            # The first case is what most of the picture is about.
            frozenset({1, rounds} if (keys, share) == (KEYS[0], SHARES[0]) else {rounds}),
            reads=READS if (keys, share) == (KEYS[0], SHARES[0]) else READS[:1],
        )
        for keys in KEYS
        for share in SHARES
    ]
    return Story("upserts", rows, tuple(cases))


def growth(rows: int, changes: int, rounds: int) -> Story:
    case = Case("growth", ((changes, "uniform"),) * rounds, frozenset({0, 1, rounds}))
    return Story("growth", rows, (case,))


def tpch(rows: int, rounds: int) -> Story:
    """As many line items, about, as other tables have rows."""
    case = Case("tpch", ((0, "uniform"),) * rounds, frozenset())
    return Story("tpch", rows, (case,), kind="tpch", scale=round(rows / 6e6, 4))


def layers(rows: int, rounds: int) -> Story:
    """One round more than is measured: the first refresh pays for what it loads."""
    case = Case("layers", ((max(10, rows // 100), "uniform"),) * (rounds + 1), frozenset())
    return Story("layers", rows, (case,), kind="layers")


def pending(rows: int, commits: int) -> Story:
    """Reads against the number of commits that nothing has compacted yet."""
    steps = frozenset({0, *(2**power for power in range(20) if 2**power <= commits)})
    case = Case("pending", ((max(10, rows // 1000), "uniform"),) * commits, steps)
    return Story("pending", rows, (case,), without=("rebuild",))


def mixed(rows: int, rounds: int) -> Story:
    """Small rounds one after another, a read after each, and maintenance as a peer's users have it."""
    wanted = tuple((max(10, rows // 200), KEYS[number % 2]) for number in range(rounds))
    case = Case("mixed", wanted, frozenset(range(rounds + 1)), compact=False, maintain=True)
    return Story("mixed", rows, (case,), repeat=1, without=("rebuild",))
