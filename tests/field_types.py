"""Pairs of types three deep, as a table and a later version of its model may have them; and an oracle in
plain Python that says what the table's type becomes, and what a row reads as then.

Structs are dicts, arrays lists of one, maps tuples of two.
"""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import strategies as st

from dbt_arctic.keyed.names import literal

WIDER = {"int": "bigint", "float": "double", "decimal(4,2)": "decimal(9,2)"}
NAMES = ("a", "B", "x y", "element", "tick`", "p.q")

leaves = st.sampled_from([*WIDER, *WIDER.values(), "string", "date"])
types: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3),
        st.lists(inner, min_size=1, max_size=1),
        st.tuples(st.sampled_from(["string", "int"]), inner),
    ),
    max_leaves=8,
)


@st.composite
def drifted(draw: st.DrawFn, type_: Any) -> Any:
    """A type that a model may have a version later: mostly alike, with some differences."""
    if draw(st.integers(0, 9)) == 9:
        return draw(types)
    if isinstance(type_, dict):
        kept = [name for name in type_ if draw(st.integers(0, 3)) < 3] or list(type_)[:1]
        found = {name: draw(drifted(type_[name])) for name in draw(st.permutations(kept))}
        for name in NAMES:
            if name not in type_ and draw(st.integers(0, 3)) == 3:
                found[name] = draw(types)
        return found
    if isinstance(type_, list):
        return [draw(drifted(type_[0]))]
    if isinstance(type_, tuple):
        return (type_[0], draw(drifted(type_[1])))
    return draw(st.sampled_from([WIDER.get(type_, type_), type_]))


def text(type_: Any) -> str:
    if isinstance(type_, dict):
        quoted = {name: "`" + name.replace("`", "``") + "`" for name in type_ if not name.isalpha()}
        return f"struct<{','.join(f'{quoted.get(n, n)}:{text(one)}' for n, one in type_.items())}>"
    if isinstance(type_, list):
        return f"array<{text(type_[0])}>"
    if isinstance(type_, tuple):
        return f"map<{text(type_[0])},{text(type_[1])}>"
    return str(type_)


def is_convertible(table: Any, model: Any) -> bool:
    """Whether no part of a model's type is of a kind that a table's never becomes, or takes."""
    if isinstance(table, dict) and isinstance(model, dict):
        return all(is_convertible(table[name], model[name]) for name in table if name in model)
    if isinstance(table, list) and isinstance(model, list):
        return is_convertible(table[0], model[0])
    if isinstance(table, tuple) and isinstance(model, tuple):
        keys = WIDER.get(model[0]) == table[0] or table[0] == model[0]
        return keys and is_convertible(table[1], model[1])
    if not (isinstance(table, str) and isinstance(model, str)):
        return False
    return table == model or WIDER.get(table) == model or WIDER.get(model) == table


def became(table: Any, model: Any, kinds: set[str]) -> Any:
    """A table's type after the changes of some kinds."""
    if isinstance(table, dict):
        kept = {
            name: became(one, model[name], kinds) if name in model else one
            for name, one in table.items()
            if name in model or "removed" not in kinds
        }
        new = {name: one for name, one in model.items() if name not in table and "added" in kinds}
        return kept | new
    if isinstance(table, list):
        return [became(table[0], model[0], kinds)]
    if isinstance(table, tuple):
        return (table[0], became(table[1], model[1], kinds))
    return model if "widened" in kinds and model == WIDER.get(table) else table


def read_as(value: Any, type_: Any) -> Any:
    """A value by the names of the fields that a type has: those that it lacks are NULL."""
    if value is None:
        return None
    if isinstance(type_, dict):
        return {name: read_as(value.get(name), one) for name, one in type_.items()}
    if isinstance(type_, list):
        return [read_as(one, type_[0]) for one in value]
    if isinstance(type_, tuple):
        return {key: read_as(one, type_[1]) for key, one in value.items()}
    return value


@st.composite
def values(draw: st.DrawFn, type_: Any) -> Any:
    """A value of a type, or NULL in any place."""
    if draw(st.integers(0, 4)) == 4:
        return None
    if isinstance(type_, dict):
        return {name: draw(values(one)) for name, one in type_.items()}
    if isinstance(type_, list):
        return draw(st.lists(values(type_[0]), max_size=2))
    if isinstance(type_, tuple):
        keys = st.sampled_from(["k", "l"]) if type_[0] == "string" else st.integers(0, 3)
        return draw(st.dictionaries(keys, values(type_[1]), max_size=2))
    if type_ == "date":
        return datetime.date(2026, 1, draw(st.integers(1, 28)))
    return draw(st.sampled_from(["", "x", "'"]) if type_ == "string" else st.integers(0, 9))


def sql(value: Any, type_: Any) -> str:
    """A value of a type as Spark's SQL."""
    return f"CAST({_sql(value, type_)} AS {text(type_)})"


def _sql(value: Any, type_: Any) -> str:
    if value is None:
        return f"CAST(NULL AS {text(type_)})"
    if isinstance(type_, dict):
        fields = (f"{literal(name)}, {_sql(value[name], one)}" for name, one in type_.items())
        return f"named_struct({', '.join(fields)})"
    if isinstance(type_, list):
        return f"array({', '.join(_sql(one, type_[0]) for one in value)})"
    if isinstance(type_, tuple):
        entries = (
            f"{literal(key) if isinstance(key, str) else key}, {_sql(one, type_[1])}"
            for key, one in value.items()
        )
        return f"map({', '.join(entries)})"
    return f"CAST({literal(str(value))} AS {text(type_)})"
