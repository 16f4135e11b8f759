"""SQL for the differences between the rows of two queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import FLOATS, distinguishable, same_row, same_value

TOLERANCES = {"double": "1e-9D", "float": "1e-5D"}
"""Relative tolerance for floating-point values that may differ because they were added in a different
order."""


@dataclass(frozen=True)
class ColumnPair:
    """A column of two relations: its name in each, and a Spark type for the values of both."""

    name: str
    other: str
    type: str


def count_differing(one: str, other: str, columns: Sequence[tuple[str, str]]) -> str:
    """SQL for the number of rows that only one of two queries returns, and the number of rows of the first.

    A row counts as often as it is missing in the other query. Each query is run once.

    :param columns: name and type of the columns of both that matter.
    """
    pairs = [ColumnPair(name, name, type_) for name, type_ in columns]
    return (
        "SELECT coalesce(sum(abs(_arctic_surplus)), 0), coalesce(sum(_arctic_rows), 0)\n"
        f"FROM (\n{_surplus(one, other, pairs)}\n)"
    )


def differing_keys(
    one: str,
    other: str,
    key: Sequence[tuple[str, str]],
    exact: Sequence[tuple[str, str]],
    within_tolerance: Sequence[tuple[str, str]],
) -> str:
    """SQL for keys that only one of two queries returns, and rows that differ between the two.

    :param within_tolerance: floating-point columns, which are compared with a tolerance.
    """
    here = "true AS _arctic_here"
    conditions = [same_row("l", "r", dict(exact))] if exact else []
    conditions += [
        is_within_tolerance(f"l.{quote(name)}", f"r.{quote(name)}", type_) for name, type_ in within_tolerance
    ]
    same = " AND ".join(conditions or ["true"])
    return (
        f"SELECT 1 AS differs\nFROM (SELECT *, {here} FROM (\n{one}\n)) AS l\n"
        f"FULL JOIN (SELECT *, {here} FROM (\n{other}\n)) AS r\nON {same_row('l', 'r', dict(key))}\n"
        f"WHERE NOT coalesce(l._arctic_here AND r._arctic_here AND {same}, false)"
    )


def is_within_tolerance(left: str, right: str, type_: str) -> str:
    """SQL that is true if two floating-point values are equal up to the tolerance of their type."""
    distance = f"abs({left} - {right})"
    # In Spark, NaN is greater than any number and equal to itself. NaN and infinity equal no other value
    # within a tolerance.
    return (
        f"({left} <=> {right} OR ({distance} < double('Infinity') "
        f"AND {distance} <= {TOLERANCES[type_]} * greatest(abs({left}), abs({right}))))"
    )


def compare_by_key(
    one: str, other: str, key: Sequence[ColumnPair], columns: Sequence[ColumnPair], *, is_unique: bool
) -> str:
    """SQL that compares two queries by a key, in one aggregation.

    One row: the rows of the first query and of the second; the rows that only the first has, only the second,
    and that differ; the largest number of rows of one key; then for each of ``columns``, the rows in which it
    differs.

    :param columns: the columns other than the key.
    :param is_unique: whether both are known to have at most one row for each key, without NULLs.
    """
    flags = [f"coalesce({quote(_differs(at))}, false)" for at in range(len(columns))]
    changed = " OR ".join(flags) or "false"
    counts = ", ".join(["", *(f"count_if({flag})" for flag in flags)])
    return (
        "SELECT count_if(_arctic_here), count_if(_arctic_there), count_if(_arctic_there IS NULL), "
        f"count_if(_arctic_here IS NULL), count_if({changed}), coalesce(max(_arctic_rows), 1){counts}\n"
        f"FROM (\n{_joined(one, other, key, columns, is_unique)}\n)"
    )


def sample_by_key(
    one: str,
    other: str,
    key: Sequence[ColumnPair],
    columns: Sequence[ColumnPair],
    most: int,
    *,
    is_unique: bool,
) -> str:
    """SQL of rows that differ, in the order of their key: at most ``most`` of each kind.

    Columns: the kind (``here``: only the first query has the row; ``there``: only the second; ``changed``);
    the key; then for each of ``columns`` the value of the first query, that of the second, and whether a
    row that both have differs in it.
    """
    changed = " OR ".join(f"coalesce({quote(_differs(at))}, false)" for at in range(len(columns))) or "false"
    kind = (
        "CASE WHEN _arctic_there IS NULL THEN 'here' WHEN _arctic_here IS NULL THEN 'there' "
        "ELSE 'changed' END"
    )
    names = [f"_arctic_k{at}" for at in range(len(key))]
    for at in range(len(columns)):
        names += [f"_arctic_l{at}", f"_arctic_r{at}", _differs(at)]
    order = quote_all(names[: len(key)])
    return (
        f"SELECT {quote_all(['_arctic_kind', *names])}\nFROM (\n"
        f"SELECT *, row_number() OVER (PARTITION BY _arctic_kind ORDER BY {order}) AS _arctic_number\n"
        "FROM (\n"
        f"SELECT *, {kind} AS _arctic_kind\nFROM (\n"
        f"{_joined(one, other, key, columns, is_unique, with_values=True)}\n)\n"
        f"WHERE _arctic_here IS NULL OR _arctic_there IS NULL OR {changed}\n)\n)\n"
        f"WHERE _arctic_number <= {most}\nORDER BY _arctic_kind, {order}"
    )


def _differs(at: int) -> str:
    return f"_arctic_differs_{at}"


def _joined(
    one: str,
    other: str,
    key: Sequence[ColumnPair],
    columns: Sequence[ColumnPair],
    is_unique: bool,
    *,
    with_values: bool = False,
) -> str:
    if is_unique:  # buckets of two keyed tables are joined in place by `=` only
        on = " AND ".join(f"l.{quote(pair.name)} = r.{quote(pair.other)}" for pair in key)
    else:
        on = " AND ".join(_same_pair(pair) for pair in key)
    selected = ["l._arctic_here AS _arctic_here", "r._arctic_there AS _arctic_there"]
    if is_unique:
        selected.append("CAST(NULL AS BIGINT) AS _arctic_rows")
    else:
        selected.append("greatest(l._arctic_rows, r._arctic_rows) AS _arctic_rows")
    selected += [
        f"l._arctic_here AND r._arctic_there AND NOT ({_same_pair(pair)}) AS {quote(_differs(at))}"
        for at, pair in enumerate(columns)
    ]
    if with_values:
        selected += [
            f"CASE WHEN l._arctic_here THEN l.{quote(pair.name)} ELSE r.{quote(pair.other)} END "
            f"AS {quote(f'_arctic_k{at}')}"
            for at, pair in enumerate(key)
        ]
        selected += [
            f"{side}.{quote(name)} AS {quote(f'_arctic_{side}{at}')}"
            for at, pair in enumerate(columns)
            for side, name in (("l", pair.name), ("r", pair.other))
        ]
    sides = [
        _side(one, "_arctic_here", [pair.name for pair in key], is_unique),
        _side(other, "_arctic_there", [pair.other for pair in key], is_unique),
    ]
    return f"SELECT {', '.join(selected)}\nFROM {sides[0]} AS l\nFULL JOIN {sides[1]} AS r\nON {on}"


def _side(sql: str, flag: str, key: Sequence[str], is_unique: bool) -> str:
    counted = "" if is_unique else f", count(1) OVER (PARTITION BY {quote_all(key)}) AS _arctic_rows"
    return f"(SELECT *, true AS {flag}{counted} FROM (\n{sql}\n))"


def _same_pair(pair: ColumnPair) -> str:
    return same_value(f"l.{quote(pair.name)}", f"r.{quote(pair.other)}", pair.type)


def compare_as_bags(one: str, other: str, columns: Sequence[ColumnPair]) -> str:
    """SQL that compares two queries without a key, in one aggregation.

    One row: the rows of the first query and of the second; the rows that only the first has, and only the
    second. A row counts as often as it is missing in the other query.
    """
    return (
        "SELECT coalesce(sum(_arctic_rows), 0), coalesce(sum(_arctic_rows - _arctic_surplus), 0), "
        "coalesce(sum(greatest(_arctic_surplus, 0)), 0), coalesce(sum(greatest(-_arctic_surplus, 0)), 0)\n"
        f"FROM (\n{_surplus(one, other, columns)}\n)"
    )


def sample_of_bags(one: str, other: str, columns: Sequence[ColumnPair], most: int) -> str:
    """SQL of rows that one of two queries returns more often: at most ``most`` of each.

    Columns: the surplus of the first query, and ``columns``; a float as its text.
    """
    names = quote_all(pair.name for pair in columns)
    return (
        f"SELECT _arctic_surplus, {names}\nFROM (\n"
        "SELECT *, row_number() OVER (PARTITION BY _arctic_surplus > 0 ORDER BY abs(_arctic_surplus) DESC) "
        f"AS _arctic_number\nFROM (\n{_surplus(one, other, columns, with_values=True)}\n)\n"
        f"WHERE _arctic_surplus <> 0\n)\nWHERE _arctic_number <= {most}\nORDER BY _arctic_surplus < 0"
    )


def _surplus(one: str, other: str, columns: Sequence[ColumnPair], *, with_values: bool = False) -> str:
    forms = [quote(f"_arctic_form{at}") for at in range(len(columns))]
    here = _with_forms(forms, [(pair.name, pair) for pair in columns], with_values)
    there = _with_forms(forms, [(pair.other, pair) for pair in columns], with_values)
    shown = "".join(
        f", {form if pair.type in FLOATS else f'any_value({quote(pair.name)})'} AS {quote(pair.name)}"
        for form, pair in zip(forms, columns, strict=True)
        if with_values
    )
    return (
        "SELECT sum(_arctic_weight) AS _arctic_surplus, count_if(_arctic_weight = 1) AS _arctic_rows"
        f"{shown}\nFROM (\n"
        f"SELECT {here}, 1 AS _arctic_weight\nFROM (\n{one}\n)\nUNION ALL\n"
        f"SELECT {there}, -1 AS _arctic_weight\nFROM (\n{other}\n)\n)\n"
        f"GROUP BY {', '.join(forms)}"
    )


def _with_forms(forms: Sequence[str], columns: Sequence[tuple[str, ColumnPair]], with_values: bool) -> str:
    """The columns of one query, by their names there, in the form in which they are compared."""
    selected = []
    for form, (name, pair) in zip(forms, columns, strict=True):
        # A float and a double have other texts for the same value.
        value = f"CAST({quote(name)} AS {pair.type})" if pair.type in FLOATS else quote(name)
        selected.append(f"{distinguishable(value, pair.type)} AS {form}")
        if with_values and pair.type not in FLOATS:
            selected.append(f"{quote(name)} AS {quote(pair.name)}")
    return ", ".join(selected)
