"""Rewrites PIVOT, UNPIVOT and generators outside of LATERAL VIEW by operators that have rules.

* ``PIVOT`` groups by all other columns, and has an aggregate with FILTER for each value.
* ``UNPIVOT`` is a ``posexplode`` of the columns' values.
* A generator in a select list, in FROM or in a join with LATERAL is a LATERAL VIEW.

Other forms are left as they are, and refused by the builder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import sqlglot
from sqlglot import exp

from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.spark.dialect import to_sql, verbatim
from dbt_arctic.planner.spark.functions import GENERATORS, function_name
from dbt_arctic.planner.spark.syntax import from_of, has_aggregate, unaliased
from dbt_arctic.planner.typing.inference import type_of
from dbt_arctic.planner.typing.inferred_type import INTEGERS, read_type

_NO_RENAMED_ROWS = ("group", "having", "qualify", "windows")
_KINDS = ("", "CROSS", "INNER")
_BELOW = "_below"


def with_written_relations(tree: exp.Query, schemas: Schemas) -> exp.Query:
    """The tree with these constructs rewritten, as far as possible."""
    is_there = any(table.args.get("pivots") for table in tree.find_all(exp.Table, exp.Subquery)) or any(
        function_name(call) in GENERATORS for call in tree.find_all(exp.Anonymous)
    )
    if not is_there:
        return tree
    made = tree.copy()
    columns = _Columns.of(made, schemas)
    taken = {name.name.lower() for name in made.find_all(exp.Identifier)}
    names = (f"_made_{number}" for number in count(1) if f"_made_{number}" not in taken)
    for relation in list(made.find_all(exp.Table, exp.Subquery)):
        _write_pivot(relation, columns, names)
    for select in list(made.find_all(exp.Select)):
        _write_generator_of_from(select)
        _write_generators_of_joins(select)
        _write_generator_of_list(select, names)
    return made


# Pivots


@dataclass(frozen=True)
class _Columns:
    """The columns and aliases of a query.

    :param stored: names and types of the columns of relations.
    :param given: aliases and their expressions in select lists.
    """

    stored: Sequence[tuple[str, str]]
    given: Sequence[tuple[str, exp.Expression]]

    @classmethod
    def of(cls, tree: exp.Query, schemas: Schemas) -> _Columns:
        return cls(
            [column for columns in schemas.values() for column in columns],
            [(item.alias, item.this) for item in tree.find_all(exp.Alias)],
        )

    def kinds(self, name: str) -> set[str]:
        """The kinds of values that a column with this name may have."""
        types = [type_.lower() for stored, type_ in self.stored if stored.lower() == name.lower()]
        found = {"whole" if read_type(type_) in INTEGERS else type_ for type_ in types}
        for given, value in self.given:
            if given.lower() == name.lower() and not (
                isinstance(value, exp.Column) and value.name.lower() == name.lower()
            ):
                found.add("whole" if type_of(value) in INTEGERS else "any")
        return found

    def is_spelled_so(self, name: str) -> bool:
        names = [*(stored for stored, _ in self.stored), *(given for given, _ in self.given)]
        return all(one == name for one in names if one.lower() == name.lower())


def _write_pivot(relation: exp.Expression, columns: _Columns, names: Iterator[str]) -> None:
    pivots = relation.args.get("pivots") or []
    if len(pivots) != 1 or relation.parent is None:
        return
    (pivot,) = pivots
    below = relation.copy()
    below.set("pivots", None)
    below.set("alias", exp.TableAlias(this=exp.to_identifier(_BELOW)))
    text = _unpivoted(pivot, columns, names) if pivot.args.get("unpivot") else _pivoted(pivot, columns)
    if text is None:
        return
    query = sqlglot.parse_one(text, dialect=verbatim())
    for table in list(query.find_all(exp.Table)):
        if table.name == _BELOW:
            table.replace(below)
    alias = pivot.args.get("alias") or exp.TableAlias(
        this=exp.to_identifier(relation.alias_or_name or next(names))
    )
    written = exp.Subquery(this=query, alias=alias.copy(), joins=relation.args.get("joins"))
    below.set("joins", None)
    relation.replace(written)


def _pivoted(pivot: exp.Pivot, known: _Columns) -> str | None:
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0].this, exp.Column):
        return None
    column, listed = fields[0].this, fields[0].expressions
    values = [_pivot_value(value, known.kinds(column.name)) for value in listed]
    aggregates = [(item.alias, unaliased(item)) for item in pivot.expressions]
    functions = {function_name(call) for _, call in aggregates}
    # For a value without rows, Spark returns NULL also for a count, but not if a string may be involved.
    if not functions <= {"sum", "avg", "count", "min", "max"} or (
        "count" in functions and functions & {"min", "max"}
    ):
        return None
    if not values or None in values or (len(aggregates) > 1 and not all(name for name, _ in aggregates)):
        return None
    used = {
        column.name.lower(),
        *(one.name.lower() for _, call in aggregates for one in call.find_all(exp.Column)),
    }
    items = []
    for name, value in (one for one in values if one is not None):
        rows = f"FILTER (WHERE {to_sql(column)} <=> {value})"
        for given, call in aggregates:
            text = f"{to_sql(call)} {rows}"
            if function_name(call) == "count":
                text = f"CASE WHEN count(*) {rows} > 0 THEN {text} END"
            items.append(f"{text} AS {quote(name if len(aggregates) == 1 else f'{name}_{given}')}")
    others = ", ".join(quote(name) for name in sorted(used))
    return f"SELECT {_BELOW}.* EXCEPT ({others}), {', '.join(items)} FROM {_BELOW} GROUP BY ALL"


class _PivotValue(NamedTuple):
    """A value of a PIVOT: the name of its columns, and its SQL."""

    name: str
    sql: str


def _pivot_value(value: exp.Expression, kinds: set[str]) -> _PivotValue | None:
    """A value of a PIVOT, which Spark casts to the column's type; ``None`` if unsure.

    :param kinds: the possible kinds of the column: ``whole`` for integers, or its type.
    """
    plain = value.this if isinstance(value, exp.PivotAlias) else value
    if not isinstance(plain, exp.Literal):
        return None
    name = value.args["alias"].name if isinstance(value, exp.PivotAlias) else plain.name
    fits = kinds == {"string"} if plain.is_string else kinds == {"whole"} and plain.name.isdigit()
    return _PivotValue(name, to_sql(plain)) if fits else None


def _unpivoted(pivot: exp.Pivot, known: _Columns, names: Iterator[str]) -> str | None:
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or len(pivot.expressions) != 1 or isinstance(pivot.expressions[0], exp.Tuple):
        return None
    columns, labels = [], []
    for value in fields[0].expressions:
        plain = value.this if isinstance(value, exp.PivotAlias) else value
        # A column without an alias gets the spelling of the table.
        if not isinstance(plain, exp.Column) or plain.table or not known.is_spelled_so(plain.name):
            return None
        columns.append(quote(plain.name))
        labels.append(value.args["alias"].name if isinstance(value, exp.PivotAlias) else plain.name)
    made = next(names)
    place, given = f"{made}.place", f"{made}.given"
    cases = " ".join(f"WHEN {number} THEN {literal(name)}" for number, name in enumerate(labels))
    items = [
        f"{_BELOW}.* EXCEPT ({', '.join(columns)})",
        f"CASE {place} {cases} END AS {quote(fields[0].this.name)}",
        f"{given} AS {quote(pivot.expressions[0].name)}",
    ]
    values = ", ".join(f"{_BELOW}.{column}" for column in columns)
    view = f"LATERAL VIEW posexplode(array({values})) {made} AS place, given"
    where = "" if pivot.args.get("include_nulls") else f" WHERE {given} IS NOT NULL"
    return f"SELECT {', '.join(items)} FROM {_BELOW} {view}{where}"


# Generators


def _write_generator_of_from(select: exp.Select) -> None:
    """Rewrite ``FROM explode(...) AS e(x)`` as a LATERAL VIEW over one row."""
    first = from_of(select)
    if not isinstance(first, exp.Table) or function_name(first.this) not in GENERATORS:
        return
    names = list(first.alias_column_names)
    if not names or not first.alias:
        return
    alias, listed = quote(first.alias), ", ".join(map(quote, names))
    view = f"LATERAL VIEW {to_sql(first.this)} {alias} AS {listed}"
    text = f"SELECT {listed} FROM (SELECT 1 AS `_one`) AS `_one` {view}"
    query = sqlglot.parse_one(text, dialect=verbatim())
    first.replace(
        exp.Subquery(
            this=query,
            alias=exp.TableAlias(this=exp.to_identifier(first.alias, quoted=True)),
            joins=first.args.get("joins"),
        )
    )


def _write_generators_of_joins(select: exp.Select) -> None:
    """Rewrite generators in the last joins of a SELECT, which is the place of a LATERAL VIEW."""
    joins: list[exp.Join] = select.args.get("joins") or []
    moved: list[exp.Lateral] = []
    while joins and not select.args.get("laterals"):
        join, lateral = joins[-1], joins[-1].this
        side, on = (join.side or "").upper(), join.args.get("on")
        is_generator = isinstance(lateral, exp.Lateral) and function_name(lateral.this) in GENERATORS
        by_columns = join.method or join.args.get("using")
        if not is_generator or by_columns or side not in ("", "LEFT") or (join.kind or "") not in _KINDS:
            break
        if on is not None and on != exp.true():
            break
        if side == "LEFT":
            lateral.set("outer", True)
        lateral.set("view", True)
        moved.insert(0, lateral)
        joins.pop()
    if moved:
        select.set("joins", joins)
        select.set("laterals", moved)


def _write_generator_of_list(select: exp.Select, names: Iterator[str]) -> None:
    made = [item for item in select.expressions if function_name(_generated(item)) in GENERATORS]
    others = [item for item in select.expressions if item not in made]
    in_the_way = any(select.args.get(part) for part in _NO_RENAMED_ROWS) or from_of(select) is None
    if len(made) != 1 or in_the_way or any(has_aggregate(item) or item.find(exp.Window) for item in others):
        return
    (item,) = made
    given = _given(item)
    if not given:
        return
    alias = next(names)
    columns = [exp.to_identifier(f"{alias}_{place}") for place in range(len(given))]
    lateral = exp.Lateral(
        this=_generated(item).copy(),
        view=True,
        alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns),
    )
    select.append("laterals", lateral)
    listed = [
        exp.alias_(exp.column(column.name, table=alias), name.copy())
        for column, name in zip(columns, given, strict=True)
    ]
    place = select.expressions.index(item)
    select.set("expressions", [*select.expressions[:place], *listed, *select.expressions[place + 1 :]])


def _generated(item: exp.Expression) -> exp.Expression:
    return item.this if isinstance(item, exp.Alias | exp.Aliases) else item


def _given(item: exp.Expression) -> Sequence[exp.Identifier]:
    if isinstance(item, exp.Alias):
        return [item.args["alias"]]
    return item.expressions if isinstance(item, exp.Aliases) else []


__all__ = ["with_written_relations"]
