"""Automatic models over other models, and what their queries give, in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

from tests.dbt.random.columns import Row, Table
from tests.dbt.random.project import Model
from tests.dbt.random.queries import BY_PART, QUERIES

READABLE = ("upsert", "keyed_overwrite", "append", "merge", "delete+insert", "insert_overwrite", "table")
"""Kinds of models that automatic ones read."""


def draw_automatic(chance: random.Random, models: list[Model]) -> list[Model]:
    """At times an automatic model, over one of the others."""
    choices = [model for model in models if model.kind in READABLE]
    if not choices or chance.random() > 0.3:
        return []
    upstream = chance.choice(choices)
    query = chance.choice(QUERIES if upstream.is_keyed else BY_PART)
    config = {"unique_key": ["p"] if query in BY_PART else upstream.keys, "buckets": 1}
    return [Model(f"m{len(models)}", "auto", config, upstream=upstream.name, query=query)]


_OF_SESSION: tuple[dict[str, Any], ...] = (
    {"sql_header": "set spark.sql.session.timeZone=Asia/Tokyo;"},
    {"sql_header": "set spark.sql.ansi.enabled=false; set spark.sql.legacy.ctePrecedencePolicy=LEGACY;"},
    {"sql_header": "declare or replace variable part int default 7;"},
    {"pre_hook": "set spark.sql.parser.escapedStringLiterals=true"},
    {"pre_hook": "{{ 'set spark.sql.ansi.enabled=' ~ (load_relation(this) is none) }}"},
    {"pre_hook": "{{ 'set spark.sql.session.timeZone=UTC' if load_relation(this) is none else 'reset' }}"},
    {
        "pre_hook": [
            "{{ 'create or replace temporary view part as select 7 as part' }}",
            "use spark_catalog.default",
        ]
    },
)
"""Settings and definitions of a session that change nothing about the result of the queries."""


def with_settings_of_session(seed: int, models: list[Model]) -> list[Model]:
    """Some of the models with a header or a hook for their session.

    They are drawn apart from all else, so a seed still gives the same case.
    """
    chance = random.Random(f"session {seed}")
    return [
        replace(one, config={**one.config, **chance.choice(_OF_SESSION)}) if chance.random() < 0.4 else one
        for one in models
    ]


def result_of(model: Model, upstream: Table) -> Table:
    """The model's table after any run that succeeds: the query's rows."""
    parts = [row["part"] for row in upstream.rows]
    types = {"p": "int"}
    if model.query == "distinct":
        return Table(types, [{"p": part} for part in {-1 if one is None else one for one in parts}])
    if model.query == "counted":
        counts = Counter(parts)
        rows = [{"p": part, "n": count, "s": part * count, "least": part} for part, count in _known(counts)]
        if counts[None]:
            rows.append({"p": -1, "n": counts[None], "s": None, "least": None})
        return Table({**types, "n": "bigint", "s": "bigint", "least": "int"}, rows)
    names = {name.lower(): name for name in upstream.types}
    keys = {key: upstream.types[names[key.lower()]] for key in model.keys}

    def keyed(row: Row, **more: Any) -> Row:
        return {**{key: row[names[key.lower()]] for key in keys}, **more}

    if model.query == "filtered":
        rows = [keyed(row, part=row["part"]) for row in upstream.rows if (row["part"] or 0) >= 1]
        return Table({**keys, "part": upstream.types["part"]}, rows)
    assert model.query == "joined", model.query
    counts = Counter(parts)
    rows = [keyed(row, n=counts[row["part"]]) for row in upstream.rows if row["part"] is not None]
    return Table({**keys, "n": "bigint"}, rows)


def _known(counts: Counter[Any]) -> list[tuple[int, int]]:
    return [(part, count) for part, count in counts.items() if part is not None]
