"""Tables that a check changes: copies of sources, and the seeds that it has loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dbt_arctic.adapter.operator import Operator
from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.churn import (
    Column,
    change_statement,
    chosen,
    coming_statements,
    copy_statements,
    cut,
    gone,
    held_of,
    leaving_statements,
    taken_of,
    waiting,
)
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.state import find_keyed

_MOST_COLUMNS = 8
"""Of which it is tried whether some of them together are a key."""


@dataclass(frozen=True)
class Churned:
    """A table that changes in each round.

    :param identifying: columns that keep their values, so that what identifies a row goes on to.
    """

    name: Name
    columns: tuple[Column, ...]
    identifying: frozenset[str]


def copied(
    operator: Operator, source: Name, copy: Name, seed: int, keys: Collection[Sequence[str]]
) -> Churned:
    """Copy a source, but for some rows that are to come.

    :param keys: what the project says of columns that identify a row.
    """
    columns, rows = _looked_at(operator, source)
    up_to = _cut(operator, source.sql, columns, seed, held_of(rows))
    for statement in copy_statements(source.sql, copy, chosen(columns, seed, up_to)):
        operator.edge.run("copy", statement)
    return Churned(copy, columns, _identifying(operator, source, columns, rows, keys))


def loaded(operator: Operator, seed_table: Name, keys: Collection[Sequence[str]]) -> Churned:
    """A seed loses no row at first; from the next round on it is changed like a source."""
    for beside in (waiting(seed_table), gone(seed_table)):
        operator.edge.run(
            "copy", f"CREATE TABLE {beside.sql} USING iceberg AS SELECT * FROM {seed_table.sql} WHERE false"
        )
    columns, rows = _looked_at(operator, seed_table)
    return Churned(seed_table, columns, _identifying(operator, seed_table, columns, rows, keys))


def change(operator: Operator, one: Churned, seed: int, only_new: bool = False) -> None:
    """One round.

    :param only_new: rows come, and nothing else happens to any.
    """
    table, columns = one.name, one.columns

    def some_of(name: Name, seed: int) -> str:
        rows = int(operator.query(f"SELECT count(1) FROM {name.sql}")[0][0])
        return chosen(columns, seed, _cut(operator, name.sql, columns, seed, taken_of(rows)))

    leaving = [] if only_new else leaving_statements(table, some_of(table, seed))
    for statement in (*leaving, *coming_statements(table, some_of(waiting(table), seed + 1))):
        operator.edge.run("change", statement)
    if only_new:
        return
    update = change_statement(table, columns, one.identifying, seed, some_of(table, seed + 2))
    if update is not None:
        operator.edge.run("change", update)


def keys_told(nodes: Iterable[Any]) -> Mapping[str, list[Sequence[str]]]:
    """Keys of sources and seeds, by id, as the project's tests have them.

    :param nodes: dbt's.
    """
    found: dict[str, list[Sequence[str]]] = {}
    for node in nodes:
        test = getattr(node, "test_metadata", None)
        if test is None:
            continue
        told = {
            "unique": [test.kwargs.get("column_name")],
            "unique_combination_of_columns": test.kwargs.get("combination_of_columns"),
        }.get(test.name)
        # dbt attaches no test to a source, but such a test depends on nothing else.
        if told and len(node.depends_on.nodes) == 1:
            key = [str(column).strip('`"') for column in told]
            found.setdefault(node.depends_on.nodes[0], []).append(key)
    return found


def pulled(nodes: Iterable[Any], macros: Mapping[str, Any]) -> set[str]:
    """The ids of what models pull, by macros of the project too: a log may be read so, whose rows no key
    tells apart.

    :param nodes: dbt's; ``macros`` likewise, by id.
    """

    def pulls(node: Any, seen: frozenset[str] = frozenset()) -> bool:
        called = set(getattr(getattr(node, "depends_on", None), "macros", ())) - seen
        return any(
            name.endswith(".incremental_pull") or (name in macros and pulls(macros[name], seen | called))
            for name in called
        )

    return {of for node in nodes if pulls(node) for of in node.depends_on.nodes}


def columns_of(operator: Operator, name: Name) -> Sequence[CatalogColumn]:
    table = operator.catalog.load_table(name.schema, name.identifier)
    if table is not None:
        return table.columns
    view = operator.catalog.load_view(name.schema, name.identifier)
    if view is None:
        raise ConfigError(
            f"{name} does not exist",
            where="the sources of the project",
            why="a check copies every source of the catalog",
            fix="load it first, or remove it from the project's sources",
        )
    return view.columns


def _cut(operator: Operator, source: str, columns: Sequence[Column], seed: int, count: int) -> int | None:
    found = operator.query(cut(source, columns, seed, count))[0][0]
    return None if found is None else int(found)


def _looked_at(operator: Operator, name: Name) -> tuple[tuple[Column, ...], int]:
    """The columns of a table, and how many rows it has."""
    found = columns_of(operator, name)
    counted = ", ".join(["count(1)", *(f"count({quote(column.name)})" for column in found)])
    rows, *present = operator.query(f"SELECT {counted} FROM {name.sql}")[0]
    columns = (Column(one.name, one.type, count < rows) for one, count in zip(found, present, strict=True))
    return tuple(columns), int(rows)


def _identifying(
    operator: Operator, name: Name, columns: Sequence[Column], rows: int, told: Collection[Sequence[str]]
) -> frozenset[str]:
    """The columns that probably identify a row, and those that the table or the project say do.

    Values of prices and times may all be different by chance. So a column is taken for a key by itself, or
    with others, if it may name something, and any other only where no such is found.
    """
    keyed = find_keyed(operator.catalog, name)
    known = {column.lower() for key in (*told, *([] if keyed is None else [keyed.key])) for column in key}
    of_known = [column for column in columns if column.name.lower() in known]
    unique = list(_unique(operator, name, [(column,) for column in columns], rows))
    likely = [column for (column,) in unique if column.may_name or column.type == "date"]
    found = {column.name for column in (*of_known, *likely)}
    if of_known or any(column.may_name for column in likely):
        return frozenset(found)
    for size in (2, 3):
        for with_times in (False, True):
            several = [
                column
                for column in columns
                if not column.nulls and (column.may_name or (with_times and column.is_time))
            ][:_MOST_COLUMNS]
            keys = list(_unique(operator, name, list(combinations(several, size)), rows))
            if keys:
                # Which of them is the key nobody says, so that none is broken.
                return frozenset(found | {column.name for key in keys for column in key})
    # Without any, whole rows are left alone but for coming and going.
    return frozenset(column.name for (column,) in unique) or frozenset(column.name for column in columns)


def _unique(
    operator: Operator, name: Name, keys: Sequence[tuple[Column, ...]], rows: int
) -> Iterator[tuple[Column, ...]]:
    """Those of some columns, or groups of them, of which each row has other values."""
    if not keys:
        return
    counted = (f"count(DISTINCT {', '.join(column.value for column in key)})" for key in keys)
    counts = operator.query(f"SELECT {', '.join(counted)} FROM {name.sql}")[0]
    yield from (key for key, count in zip(keys, counts, strict=True) if count == rows)
