"""The states of an upstream whose changes are found by a comparison of its rows at two versions."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import distinguishable
from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW, State

_SIGN = quote("_arctic_sign")


def compared_states(old: str, new: str, types: Mapping[str, str], key: tuple[str, ...]) -> dict[State, str]:
    """The states if only the two states themselves are known, and are compared."""
    minus, plus = _without(old, new, types), _without(new, old, types)
    changed = f"({minus})\nUNION ALL\n({plus})"
    weighted = weighted_changes_sql(minus, plus, quote_all(types))
    found: dict[State, str] = {
        "old": old,
        "minus": minus,
        "plus": plus,
        "changed": changed,
        "weighted": weighted,
    }
    if key:
        found["keys"] = f"SELECT DISTINCT {quote_all(key)} FROM (\n{changed}\n)"
    return found


def weighted_changes_sql(minus: str, plus: str, columns: str) -> str:
    """The SQL of the rows in which two states differ, with their weights."""
    sign = quote(SIGN_OF_ROW)
    lost = f"SELECT {columns}, -1 AS {sign}\nFROM (\n{minus}\n)"
    return f"{lost}\nUNION ALL\nSELECT {columns}, 1 AS {sign}\nFROM (\n{plus}\n)"


def _without(rows: str, others: str, types: Mapping[str, str]) -> str:
    """The rows of a multiset difference: rows minus others, with multiplicities."""
    listed = quote_all(types)
    compared = [distinguishable(quote(name), type_) for name, type_ in types.items()]
    if compared == [quote(name) for name in types]:
        return f"SELECT {listed} FROM (\n{rows}\n)\nEXCEPT ALL\nSELECT {listed} FROM (\n{others}\n)"
    # Spark has no set operations for maps and variants.
    kept = ", ".join(f"any_value({quote(name)}) AS {quote(name)}" for name in types)
    return (
        f"SELECT {listed}\nFROM (\n"
        f"  SELECT {kept}, sum({_SIGN}) AS {_SIGN}\n"
        f"  FROM (\nSELECT {listed}, 1 AS {_SIGN} FROM (\n{rows}\n)\n"
        f"UNION ALL\nSELECT {listed}, -1 AS {_SIGN} FROM (\n{others}\n)\n  )\n"
        f"  GROUP BY {', '.join(compared)}\n  HAVING sum({_SIGN}) > 0\n)\n"
        f"LATERAL VIEW explode(sequence(1L, {_SIGN})) _arctic_copies AS _arctic_copy"
    )


__all__ = ["compared_states", "weighted_changes_sql"]
