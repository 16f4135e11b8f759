"""From a failing case to a small one that fails for the same model in the same way."""

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
            found = [one for one in bench.judge(smaller).differences if is_same(one, difference)]
            if found:
                best, told, progress = smaller, found[0], True
                break
    return best, told


def is_same(one: Difference, other: Difference) -> bool:
    """Whether two differences are of one model and of one kind, in whichever round."""
    return (one.model, one.kind) == (other.model, other.kind)


def _smaller(case: Case, model: str) -> Iterator[Case]:
    """Cases with less in them, the boldest first."""
    smaller = _only(case, model)
    if len(smaller.models) < len(case.models):
        yield smaller
    model = next(one.upstream for one in case.models if one.name == model) or model
    for place in range(len(case.rounds)):
        following = case.rounds[place + 1 : place + 2]
        if len(case.rounds) > 1 and not (following and following[0].verb == "retry"):
            yield replace(case, rounds=case.rounds[:place] + case.rounds[place + 1 :])
    for place, round_ in enumerate(case.rounds):
        for simpler in _simpler(round_, model):
            yield replace(case, rounds=(*case.rounds[:place], simpler, *case.rounds[place + 1 :]))
    for name in sorted({one.name.lower() for round_ in case.rounds for one in round_.batches[model].columns}):
        smaller = _without_column(case, model, name)
        if smaller is not None:
            yield smaller


def _only(case: Case, model: str) -> Case:
    """The case with a model alone, and what it reads."""
    upstream = next(one.upstream for one in case.models if one.name == model)
    names = {model, upstream} if upstream else {model}
    rounds = tuple(round_.only(names) for round_ in case.rounds)
    return replace(case, models=tuple(one for one in case.models if one.name in names), rounds=rounds)


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


_BY_COLUMN = ("column_types",)
"""Settings that name a column and say something of it: they lose the column that is dropped."""


def _without_column(case: Case, model: str, name: str) -> Case | None:
    """The case without a column of a model and what ``column_types`` says of it; ``None`` where another
    setting names the column, or a batch has no other.
    """
    at = next(place for place, one in enumerate(case.models) if one.name == model)
    config = dict(case.models[at].config)
    for setting in _BY_COLUMN:
        if setting in config:
            config[setting] = {one: type_ for one, type_ in config[setting].items() if one.lower() != name}
            if not config[setting]:
                del config[setting]
    if name in ("part", "at") or f"{name}'" in repr(config).lower():
        return None
    if any(all(one.name.lower() == name for one in round_.batches[model].columns) for round_ in case.rounds):
        return None
    models = list(case.models)
    models[at] = replace(models[at], config=config)
    rounds = tuple(_without(round_, model, name) for round_ in case.rounds)
    return replace(case, models=tuple(models), rounds=rounds)


def _without(round_: Round, model: str, name: str) -> Round:
    batch = round_.batches[model]
    places = [place for place, one in enumerate(batch.columns) if one.name.lower() != name]
    fewer = replace(
        batch,
        columns=tuple(batch.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in batch.rows),
    )
    contracts = {
        one: tuple(column for column in columns if one != model or column.name.lower() != name)
        for one, columns in round_.contracts.items()
    }
    return replace(round_, batches={**round_.batches, model: fewer}, contracts=contracts)
