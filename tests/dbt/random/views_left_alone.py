"""What a view shows that a run left alone, while its upstream may have been built again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.data_type import Array, DataType, Map, Struct, parse_type
from tests.dbt.random.allowed_outcomes import is_failure
from tests.dbt.random.columns import Table, stored_rows
from tests.dbt.random.oracle import as_stored_upstream
from tests.dbt.random.project import Model, Round


def is_left_alone(model: Model, before: Table | None, round_: Round, results: Mapping[str, Any]) -> bool:
    """Whether a view of an earlier run is still there: the run left it out, or failed to replace it."""
    if model.kind != "view" or before is None or before.form != "view":
        return False
    result = results.get(model.name)
    return model.name in round_.excluded if result is None else is_failure(result)


def shown_by(model: Model, before: Table | None, round_: Round, results: Mapping[str, Any]) -> Table | None:
    """The rows of a view that was left alone in a round; ``None`` where it may be unreadable or shows a part.

    Its columns and fields are those of its last run, by name, with the rows that its upstream has now.

    :param results: dbt's, by name of the node.
    """
    if before is None or not is_left_alone(model, before, round_, results):
        return None
    if model.source in ("inline", "ephemeral"):
        return before
    if before.is_partial:
        return None
    upstream = results.get(f"in_{model.name}")
    if upstream is None or is_failure(upstream):
        return None
    batch = as_stored_upstream(model, round_.batches[model.name])
    there = {one.name.lower(): parse_type(one.type) for one in batch.columns}
    for name, type_ in before.types.items():
        if name.lower() not in there or not _fits(parse_type(type_), there[name.lower()]):
            return None
    return Table(before.types, stored_rows(batch, before.types), form="view")


def _fits(shown: DataType, there: DataType) -> bool:
    """Whether each value has all fields that are shown, with the same types, in any order."""
    match shown, there:
        case Struct(fields), Struct():
            found = [(one, there.field(name)) for name, one in fields]
            return all(other is not None and _fits(one, other[1]) for one, other in found)
        case Array(one), Array(other):
            return _fits(one, other)
        case Map(), Map():
            return _fits(shown.key, there.key) and _fits(shown.value, there.value)
    return shown == there
