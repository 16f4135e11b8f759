"""A sample of the planner's random queries as models on Spark and Iceberg, over tables that change and change
back; thousands of them run in DuckDB (``tests/planner``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dbt_arctic.planner.spark.qualify import without_qualify
from dbt_arctic.store.row_cache import SharedRows
from tests.extent import extent
from tests.planner.oracle import Database, at_old
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import KEYS, SCHEMAS, Row, Tables, draw_tables, literal
from tests.spark.keyed.automatic_models import Model

MODELS = extent(2, 8)
ROUNDS = 2
SEED = "spark/4"


def names_its_rows(case: Case, rows: list[tuple[Any, ...]]) -> bool:
    """Whether the columns of a case's key could be those of a table with these rows."""
    places = [case.columns.index(name) for name in case.key]
    keys = [tuple(row[place] for place in places) for row in rows]
    return len(set(keys)) == len(keys) and not any(None in key for key in keys)


def cases(before: Tables, after: Tables) -> Iterator[Case]:
    """Queries whose rows have a key in both states, and are not the same in both."""
    database, seed = Database(), 0
    database.load(before, after)
    while True:
        case, seed = draw(seed), seed + 1
        old, new = database.rows(at_old(case.sql)), database.rows(case.sql)
        fine = names_its_rows(case, old) and names_its_rows(case, new)
        if fine and Counter(old) != Counter(new):
            yield case


class Lake:
    """``a`` and ``b`` are keyed tables, ``c`` is a plain one with rows that are there twice."""

    def __init__(self, shop: Any, tables: Tables) -> None:
        self.keyed = {name: shop.table(name, dict(SCHEMAS[name])) for name in ("a", "b")}
        self.session, self.tables = self.keyed["a"].session, tables
        self.session.adapts()
        self.begin_invocation()
        self.plain = self.keyed["a"].name.sibling("c").sql
        for name, orders in self.keyed.items():
            orders.build(map(self._named(name), tables[name]))
        columns = ", ".join(f"{name} {type_}" for name, type_ in SCHEMAS["c"])
        self.session.query(f"CREATE TABLE {self.plain} ({columns}) USING iceberg")
        self._insert("INTO", tables["c"])

    def begin_invocation(self) -> None:
        """What several models read from here on is read once."""
        self.session.context = replace(self.session.context, shared=SharedRows())

    def become(self, tables: Tables, *, overwrite: bool) -> None:
        for name, orders in self.keyed.items():
            before, after = set(self.tables[name]), set(tables[name])
            gone = {row[0] for row in before} - {row[0] for row in after}
            orders.apply(map(self._named(name), after - before), ({"id": key} for key in gone))
        before, after = Counter(self.tables["c"]), Counter(tables["c"])
        if overwrite:
            self._insert("OVERWRITE", tables["c"])
        else:
            lost = before - after
            for row in lost:
                values = zip(SCHEMAS["c"], row, strict=True)
                same = " AND ".join(f"{name} <=> {literal(cell, type_)}" for (name, type_), cell in values)
                self.session.query(f"DELETE FROM {self.plain} WHERE {same}")
            # A DELETE takes all that are alike.
            left = Counter({row: count for row, count in before.items() if row not in lost})
            self._insert("INTO", list((after - left).elements()))
        self.tables = tables

    def sql(self, case: Case) -> str:
        sql = without_qualify(case.sql)
        of = {name: orders.name.sql for name, orders in self.keyed.items()} | {"c": self.plain}
        return re.sub(r"\b([abc]) AS (t\d+|q_\d+)", lambda found: f"{of[found[1]]} AS {found[2]}", sql)

    def _named(self, name: str) -> Any:
        return lambda row: dict(zip((column for column, _ in SCHEMAS[name]), row, strict=True))

    def _insert(self, how: str, rows: list[Row]) -> None:
        types = [type_ for _, type_ in SCHEMAS["c"]]
        values = ", ".join("(" + ", ".join(map(literal, row, types)) + ")" for row in rows)
        if values or how == "OVERWRITE":
            rows_sql = f"VALUES {values}" if values else f"SELECT * FROM {self.plain} WHERE false"
            self.session.query(f"INSERT {how} {self.plain} {rows_sql}")


def test_a_sample_of_random_queries_equals_a_full_refresh(shop: Any) -> None:
    assert KEYS["a"] == KEYS["b"] == ("id",)
    before, after = draw_tables(SEED)
    lake, drawn = Lake(shop, before), cases(before, after)
    models = []
    for number in range(MODELS):
        case = next(drawn)
        model = Model(lake.keyed["a"], list(case.key), lake.sql(case))
        model.name = model.name.sibling(f"model_{number}")
        model.refresh()
        models.append(model)
    told: Counter[str] = Counter()
    for number in range(ROUNDS):
        lake.become(before if number % 2 else after, overwrite=number == 1)
        lake.begin_invocation()
        for model in models:
            choice = model.refresh()
            told["INCREMENTAL" if choice.startswith("INCREMENTAL") else choice] += 1
            assert differing(model) == 0, f"{choice}\n{model.sql}"
    assert "share_rows" in lake.session.statements.steps
    # What all rows depend on may have changed, and a key of a state may be NULL.
    assert told["INCREMENTAL"] >= 0.6 * MODELS * ROUNDS, told


def differing(model: Model) -> int:
    stored, full = f"(SELECT * FROM {model.name.sql})", f"(\n{model.sql}\n)"
    both = f"({stored} EXCEPT ALL {full}) UNION ALL ({full} EXCEPT ALL {stored})"
    ((count,),) = model.session.query(f"SELECT count(*) FROM (\n{both})")
    return int(count)
