"""Draws what other programs and packages do in a case, see ``others.py``, and which models a run leaves out.

With random numbers of its own, so that the models and rows of a seed stay the same.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import fields, replace
from typing import Any

from tests.dbt.random.drift import reordered
from tests.dbt.random.project import DAY_ZERO, KEYED, PACKAGED, Batch, Case, Column, Model, Round
from tests.dbt.random.snapshots import CURRENT_END
from tests.dbt.random.values import draw_value


def with_others(case: Case) -> Case:
    chance = random.Random(f"others {case.seed}")
    models = [_packaged(chance, model) for model in case.models]
    rounds = [_beside(chance, models, case.rounds, number) for number in range(len(case.rounds))]
    rounds = _adopted(chance, models, rounds)
    models, rounds = _with_ends(random.Random(f"ends {case.seed}"), models, rounds)
    chance_of_part = random.Random(f"excluded {case.seed}")
    models, rounds = _with_structs(chance_of_part, models, rounds)
    rounds = _with_excluded(chance_of_part, models, rounds)
    rounds = _with_parts(random.Random(f"parts {case.seed}"), models, rounds)
    rounds = _with_evolved(random.Random(f"evolved {case.seed}"), models, rounds)
    keyed = [model.name for model in models if model.kind in KEYED]
    if keyed and chance.random() < 0.1:
        name = f"{chance.choice(keyed)}__{chance.choice(('base', 'change'))}_1"
        rounds = _with_reserved_name(chance, name, rounds)
    return replace(case, models=tuple(models), rounds=tuple(rounds))


def _with_ends(
    chance: random.Random, models: list[Model], rounds: list[Round]
) -> tuple[list[Model], list[Round]]:
    """Snapshots whose current records have an end; some of them are without the setting in one round."""
    found, told = list(models), list(rounds)
    for place, model in enumerate(models):
        if model.kind != "snapshot" or chance.random() > 0.3:
            continue
        found[place] = replace(model, config={**model.config, "dbt_valid_to_current": CURRENT_END})
        number = chance.randint(1, len(rounds))
        while number < len(rounds):
            given = {**told[number].settings.get(model.name, {}), "dbt_valid_to_current": None}
            told[number] = replace(told[number], settings={**told[number].settings, model.name: given})
            number += 1
            if number < len(rounds) and rounds[number].verb != "retry":
                break
    return found, told


def _packaged(chance: random.Random, model: Model) -> Model:
    if model.kind in ("seed", "auto") or chance.random() > 0.06:
        return model
    return replace(model, ending=PACKAGED + model.ending)


def _beside(chance: random.Random, models: list[Model], rounds: tuple[Round, ...], number: int) -> Round:
    round_ = rounds[number]
    following = rounds[number + 1 : number + 2]
    planned = bool(following) and following[0].verb == "retry" and chance.random() < 0.5
    late: set[str] = set()
    if number and round_.verb == "build" and round_.cancel is None:
        kinds = {model.name: round_.settled(model).kind for model in models}
        late = {
            name
            for name, kind in kinds.items()
            if kind in ("upsert", "keyed_overwrite") and chance.random() < 0.3
        } - round_.ends.keys()
    return replace(round_, planned=planned, late=frozenset(late))


ADOPTABLE = {"unique_key", "on_schema_change", "partition_by"}
"""Settings of plain models that a keyed one may have as well."""


def _adopted(chance: random.Random, models: list[Model], rounds: list[Round]) -> list[Round]:
    """Models that become keyed ones are adopted first, and keep their rows; so do some that would not."""
    found = list(rounds)
    for model in models:
        is_changed = any(model.name in {*one.kinds, *one.contracts} for one in rounds)
        if (
            model.kind == "merge"
            and not is_changed
            and model.config.keys() <= ADOPTABLE
            and chance.random() < 0.3
        ):
            for place in range(chance.randrange(1, len(found)), len(found)):
                found[place] = replace(found[place], kinds={**found[place].kinds, model.name: "upsert"})
        for number in range(1, len(found)):
            before, now = (found[place].settled(model).kind for place in (number - 1, number))
            if found[number].verb == "retry" or now not in KEYED or before in (*KEYED, "view"):
                continue
            if chance.random() < 0.2:
                continue
            found[number] = replace(found[number], adopted=found[number].adopted | {model.name})
            for place in range(number, len(found)):
                if found[place].kinds.get(model.name) not in KEYED:
                    break
                given: dict[str, Any] = {**found[place].settings.get(model.name, {}), "buckets": None}
                found[place] = replace(found[place], settings={**found[place].settings, model.name: given})
    return found


DEEP = "struct<a:int,b:int,c:array<struct<x:string,y:string>>,d:map<struct<k:int,l:int>,struct<v:int,w:int>>>"
"""The type of a column of some views; fields of equal types may change places without an error of Spark."""


def _with_structs(
    chance: random.Random, models: list[Model], rounds: list[Round]
) -> tuple[list[Model], list[Round]]:
    """Views over a table with a column of structs."""
    found, told = list(models), list(rounds)
    for place, model in enumerate(models):
        batches = [one.batches[model.name] for one in rounds if model.name in one.batches]
        types = " ".join(one.type for batch in batches for one in batch.columns)
        is_changed = any(model.name in {*one.kinds, *one.contracts} for one in rounds)
        is_free = model.kind == "view" and not is_changed and "void" not in types and "collate" not in types
        if not is_free or chance.random() > 0.9:
            continue
        found[place] = replace(model, source="table")
        deep: dict[int, Batch] = {}
        for number, round_ in enumerate(rounds):
            batch = round_.batches[model.name]
            # A retry has the batch of the round before.
            if id(batch) not in deep:
                rows = tuple((*row, draw_value(chance, DEEP)) for row in batch.rows)
                deep[id(batch)] = Batch((*batch.columns, Column("deep", DEEP)), rows)
            with_deep = {**told[number].batches, model.name: deep[id(batch)]}
            told[number] = replace(told[number], batches=with_deep)
    return found, told


def _with_excluded(chance: random.Random, models: list[Model], rounds: list[Round]) -> list[Round]:
    """Rounds of a part of the project. What a retry repeats has all of it."""
    found = list(rounds)
    for number, round_ in enumerate(rounds):
        following = rounds[number + 1 : number + 2]
        verbs = {round_.verb, *(one.verb for one in following)}
        if not number or "retry" in verbs or round_.cancel is not None or chance.random() > 0.4:
            continue
        excluded: set[str] = set()
        for model in models:
            is_changed = round_.settled(model).kind != rounds[number - 1].settled(model).kind
            others = {*round_.ends, *round_.late, *round_.adopted}
            if is_changed or model.name in others or chance.random() > (0.7 if model.kind == "view" else 0.3):
                continue
            excluded.add(model.name)
            if model.source in ("view", "table") and chance.random() < 0.3:
                excluded.add(f"in_{model.name}")
        if all(model.name in excluded for model in models):
            continue
        # What is below a view that is left out has the same columns and fields in another order.
        moved = {
            model.name: _moved(chance, found[number - 1].batches[model.name])
            for model in models
            if model.name in excluded and model.kind == "view" and chance.random() < 0.7
        }
        found[number] = replace(round_, excluded=frozenset(excluded), batches={**round_.batches, **moved})
    return found


def _with_parts(chance: random.Random, models: list[Model], rounds: list[Round]) -> list[Round]:
    """Rounds that name their nodes in ``--select``, and rounds that read a part of upstreams."""
    found: list[Round] = []
    has_microbatch = any("microbatch" in model.kind for model in models)
    for round_ in rounds:
        if round_.verb == "retry":
            found.append(replace(round_, empty=found[-1].empty, sample=found[-1].sample))
            continue
        one = replace(round_, is_selection=chance.random() < 0.5)
        draw, first = chance.random(), chance.randint(-1, 3)
        if draw < 0.08:
            one = replace(one, empty=True)
        elif draw < 0.16 and not has_microbatch:
            days = [dt.date.fromisoformat(DAY_ZERO) + dt.timedelta(days=day) for day in (first, first + 2)]
            one = replace(one, sample=(str(days[0]), str(days[1])))
        found.append(one)
    return found


def _with_evolved(chance: random.Random, models: list[Model], rounds: list[Round]) -> list[Round]:
    """Tables of which partitions are replaced, and whose partitioning another program changes."""
    found = list(rounds)
    for number, round_ in enumerate(rounds):
        if not number or round_.verb == "retry":
            continue
        evolved = {
            model.name
            for model in map(round_.settled, models)
            if model.kind == "insert_overwrite" and model.config.get("partition_by") and chance.random() < 0.2
        }
        found[number] = replace(round_, evolved=frozenset(evolved))
    return found


def _with_reserved_name(chance: random.Random, name: str, rounds: list[Round]) -> list[Round]:
    """A round that has an additional model of a name that no model may have, so that nothing runs."""
    usual = {"batches", "threads", "full_refresh", "days", "settings", "kinds", "contracts"}
    others = [one.name for one in fields(Round) if one.name not in usual]
    first = Round({})
    possible = [
        number
        for number, round_ in enumerate(rounds)
        if all(getattr(round_, one) == getattr(first, one) for one in others)
        and (number + 1 == len(rounds) or rounds[number + 1].verb != "retry")
    ]
    found = list(rounds)
    if possible:
        number = chance.choice(possible)
        found[number] = replace(rounds[number], reserved=name)
    return found


def _moved(chance: random.Random, batch: Batch) -> Batch:
    places = list(range(len(batch.columns)))
    chance.shuffle(places)
    columns = [batch.columns[place] for place in places]
    return Batch(
        tuple(replace(one, type=reordered(chance, one.type)) for one in columns),
        tuple(tuple(row[place] for place in places) for row in batch.rows),
    )
