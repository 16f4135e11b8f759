"""What a long run of random cases must show, in addition to having no difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest

from tests.planner import soak
from tests.planner.case_kinds import KINDS, OPERATORS, kind_of
from tests.planner.oracle import Database, Verdict
from tests.planner.random_queries import Case
from tests.planner.tally import Tally, tally

ROOT = Path(__file__).resolve().parents[2]


def counted(cases: int, incremental: int, of_each: int, **others: int) -> Tally:
    operators = {**dict.fromkeys(OPERATORS, of_each), **others}
    return Tally(cases, incremental, full=Counter(guard=cases - incremental), operators=Counter(operators))


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (counted(100_000, 90_000, 1_000), []),
        (counted(100_000, 90_000, 1_000, limit=999), ["limit was met by 999 cases only"]),
        (counted(20_000, 18_000, 200, rollup=0), ["rollup was met by 0 cases only"]),
        (counted(100_000, 89_999, 1_000), ["89999 of 100000 cases were run incrementally, which is too few"]),
        # In a short run chance says less.
        (counted(2_000, 1_750, 3), []),
        (counted(2_000, 1_740, 3, cube=2), ["cube was met by 2 cases only", "1740 of 2000 cases were"]),
        (counted(20, 15, 0), []),
    ],
)
def test_each_operator_occurs_often_and_most_cases_are_incremental(
    done: Tally, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = soak.missing(done)
    assert len(found) == len(told)
    assert all(one.startswith(other) for one, other in zip(found, told, strict=True))
    monkeypatch.setattr(soak, "soak", lambda cases, seed, processes: done)
    assert soak.main(["--cases", str(done.cases)]) == (1 if told else 0)
    lines = capsys.readouterr().out.splitlines()
    full = done.cases - done.incremental
    assert lines[-1] == (
        f"planner: {done.cases} cases, {done.incremental} incremental, {full} full, 0 differences"
    )
    assert [line for line in lines if line.startswith("TOO FEW: ")] == [f"TOO FEW: {one}" for one in found]


def test_a_difference_fails_a_soak(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = counted(100_000, 90_000, 2_000)
    done.wrong.append("seed 1")
    monkeypatch.setattr(soak, "soak", lambda cases, seed, processes: done)
    assert soak.main([]) == 1
    assert capsys.readouterr().out.endswith("100000 cases, 90000 incremental, 10000 full, 1 differences\n")


def test_a_soak_that_is_ended_says_what_it_has_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Pool:
        def __init__(self, *_: object) -> None: ...

        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def imap_unordered(self, *_: object) -> Iterator[Tally]:
            yield counted(250, 240, 30)
            raise KeyboardInterrupt

    monkeypatch.setattr(soak.multiprocessing, "get_context", lambda _: SimpleNamespace(Pool=Pool))
    monkeypatch.setattr(soak.signal, "signal", lambda *_: None)
    assert soak.main(["--cases", "1000"]) == 1
    *_, told, last = capsys.readouterr().out.splitlines()
    assert told == "TOO FEW: 750 of 1000 cases were not run"
    assert last == "planner: 250 cases, 240 incremental, 10 full, 0 differences"


def test_a_case_at_which_the_optimiser_of_duckdb_fails_is_judged_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = KINDS["plain"].judge
    failed: list[int] = []

    def judge(database: Database, case: Case) -> Verdict:
        if not failed:
            failed.append(case.seed)
            raise duckdb.InternalException("INTERNAL Error: Failed to bind column reference")
        return real(database, case)

    monkeypatch.setitem(KINDS, "plain", replace(KINDS["plain"], judge=judge))
    found = tally(range(20), "plain")
    assert failed
    assert not found.wrong
    assert found.incremental > 10


def test_a_seed_has_a_kind_and_all_kinds_have_their_share() -> None:
    assert sum(kind.share for kind in KINDS.values()) == 100
    found = Counter(kind_of(seed) for seed in range(10_000))
    assert all(abs(found[name] - 100 * kind.share) < 3 * kind.share + 100 for name, kind in KINDS.items())


def test_each_operator_is_drawn_often_enough_to_be_met_in_one_case_of_a_hundred() -> None:
    """Some of the cases are full, or have no difference. What only a refresh shows has a kind of its own."""
    seeds = range(2_000)
    names = Counter(kind_of(seed) for seed in seeds)
    drawn = Counter(name for seed in seeds for name in KINDS[kind_of(seed)].draw(seed).operators)
    least = 1.25 * soak.OF_EACH_OPERATOR * len(seeds)
    for kind, made in KINDS.items():
        for name in made.operators:
            assert (drawn[name] or names[kind] / 2) >= least, name


def test_as_many_cases_are_judged_as_seeds_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    done = tally(range(30))
    assert done.cases == 30 == sum(done.kinds.values())
    assert done.incremental + sum(done.full.values()) + sum(done.not_run.values()) == 30

    def crash(database: Database, case: Case) -> Verdict:
        raise KeyError("nothing")

    monkeypatch.setitem(KINDS, "plain", replace(KINDS["plain"], judge=crash))
    (told,) = tally([7], "plain").wrong
    assert told.startswith("seed 7, plain, key ")
    assert "KeyError: 'nothing'" in told


def test_the_page_on_testing_lists_each_kind_with_its_share() -> None:
    page = (ROOT / "docs" / "explanation" / "testing.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| kind | of 100 seeds |")
    rows = [line.split(" | ")[:2] for line in table.partition("\n\n")[0].splitlines()[2:]]
    assert {name.removeprefix("| "): int(share) for name, share in rows} == {
        name: kind.share for name, kind in KINDS.items()
    }
    assert sum(kind.share for kind in KINDS.values()) == 100
