"""From a failing case to a small one that fails for the same model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.dbt.random.project import Case, Round
from tests.dbt.random.run import Bench, Difference


def shrink(bench: Bench, case: Case, difference: Difference, tries: int = 30) -> tuple[Case, Difference]:
    """The smallest case found in so many tries, and its difference."""
    if not difference.model:
        return case, difference
    case = replace(case, rounds=case.rounds[: difference.round + 1])
    best, told = case, difference
    progress = True
    while progress and tries > 0:
        progress = False
        for smaller in _smaller(best, difference.model):
            if tries <= 0:
                break
            tries -= 1
            found = [one for one in bench.judge(smaller).differences if one.model == difference.model]
            if found:
                best, told, progress = smaller, found[0], True
                break
    return best, told


def _smaller(case: Case, model: str) -> Iterator[Case]:
    """Cases with less in them, the boldest first."""
    if len(case.models) > 1:
        yield _only(case, model)
    for place in range(len(case.rounds)):
        following = case.rounds[place + 1 : place + 2]
        if len(case.rounds) > 1 and not (following and following[0].verb == "retry"):
            yield replace(case, rounds=case.rounds[:place] + case.rounds[place + 1 :])
    for place, round_ in enumerate(case.rounds):
        for simpler in _simpler(round_, model):
            yield replace(case, rounds=(*case.rounds[:place], simpler, *case.rounds[place + 1 :]))
    for name in sorted({one.name for round_ in case.rounds for one in round_.batches[model].columns}):
        settings = repr(next(one.config for one in case.models if one.name == model))
        if f"{name}'" not in settings and name not in ("part", "at"):
            yield replace(case, rounds=tuple(_without(round_, model, name) for round_ in case.rounds))


def _only(case: Case, model: str) -> Case:
    rounds = tuple(
        replace(
            round_,
            batches={model: round_.batches[model]},
            ends={name: one for name, one in round_.ends.items() if name == model},
            poisoned=round_.poisoned & {model},
            partitions={name: one for name, one in round_.partitions.items() if name == model},
            threads=1,
        )
        for round_ in case.rounds
    )
    return replace(case, models=tuple(one for one in case.models if one.name == model), rounds=rounds)


def _simpler(round_: Round, model: str) -> Iterator[Round]:
    batch = round_.batches[model]
    if round_.verb == "retry":
        return
    if len(batch.rows) > 1:
        half = len(batch.rows) // 2
        for rows in (batch.rows[:half], batch.rows[half:]):
            yield replace(round_, batches={**round_.batches, model: replace(batch, rows=rows)})
    for place in range(len(batch.rows)):
        rows = batch.rows[:place] + batch.rows[place + 1 :]
        yield replace(round_, batches={**round_.batches, model: replace(batch, rows=rows)})


def _without(round_: Round, model: str, name: str) -> Round:
    batch = round_.batches[model]
    places = [place for place, one in enumerate(batch.columns) if one.name != name]
    fewer = replace(
        batch,
        columns=tuple(batch.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in batch.rows),
    )
    return replace(round_, batches={**round_.batches, model: fewer})
