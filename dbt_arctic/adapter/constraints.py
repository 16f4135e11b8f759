"""Converts a model's contract from dbt to what a write needs: columns, checks, warnings.

Runs no SQL. For the enforcement of each constraint see docs/reference/constraints.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error

from dbt_arctic.data_type import written_kind
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.assignment import is_spelled_alike
from dbt_arctic.keyed.checks import Check, checked_select
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import ACTION, UNAVAILABLE

_SHOWN = 8
"""Number of columns of a row that an error shows if there is no key."""
_LONG = ("array", "map", "struct", "variant", "binary", "interval", "geometry", "geography")
"""Types whose values are too long for an error, or cannot be represented as JSON."""

_NOT_STORED = (ACTION, UNAVAILABLE)
"""Columns of a keyed model that its table does not have."""


@dataclass(frozen=True)
class Contract:
    """An enforced contract.

    :param columns: the columns in the order of the contract.
    :param checks: the constraints that each write checks.
    :param required: NOT NULL columns.
    :param ignored: constraints that are not enforced.
    :param shown: the columns that an error shows of a row without a key.
    """

    columns: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    required: tuple[str, ...] = ()
    ignored: tuple[ModelLevelConstraint, ...] = ()
    shown: tuple[str, ...] = ()


def read_contract(model: Mapping[str, Any], key: Sequence[str] = ()) -> Contract | None:
    """A model's contract; ``None`` if it is not enforced.

    :param key: the unique_key of a keyed model, which is unique and NOT NULL.
    :raises ConfigError: a constraint is invalid.
    """
    if not (model["config"].get("contract") or {}).get("enforced"):
        return None
    name = str(model["name"])
    columns = tuple(str(column["name"]) for column in (model.get("columns") or {}).values())
    checks: list[Check] = []
    required: list[str] = []
    ignored: list[ModelLevelConstraint] = []
    in_key = {column.lower() for column in key}
    for constraint in _constraints(model):
        if constraint.type == ConstraintType.not_null:
            _refuse_expression(name, constraint)
            for column in _existing(name, constraint, columns):
                required.append(column)
                if column.lower() in in_key:
                    continue  # checked in every batch, with or without a contract
                title = constraint.name or f"not_null on {column}"
                checks.append(Check(title, f"not_null on {column}", f"{quote(column)} IS NULL"))
        elif constraint.type == ConstraintType.check:
            checks.append(_check(name, constraint))
        elif constraint.type in (ConstraintType.primary_key, ConstraintType.unique) and key:
            if _same(constraint.columns, key):
                required += _existing(name, constraint, columns)
            elif constraint.type == ConstraintType.primary_key:
                raise ConfigError(
                    f"the primary key of the contract is {', '.join(constraint.columns)}, "
                    f"but unique_key is {', '.join(key)}",
                    where=name,
                    why="a keyed table has a single key",
                    fix="use the same columns in both",
                )
            else:
                ignored.append(constraint)
        else:
            ignored.append(constraint)
    return Contract(
        columns, tuple(checks), tuple(dict.fromkeys(required)), tuple(ignored), _shown(model, columns)
    )


def contracted_select(
    contract: Contract, model: Mapping[str, Any], sql: str, stored: Sequence[str] | None = None
) -> str:
    """The SQL of a plain model with the columns in the order of the contract, and with checks of its rows.

    :param stored: the columns of the target table; ``None`` if they are those of the contract.
    """
    config = model["config"]
    unique_key = _as_list(config.get("unique_key"))
    layout = [partition_column(field) for field in _as_list(config.get("partition_by"))]
    return checked_select(
        sql,
        contract.columns,
        contract.checks,
        shown=_matching(unique_key, contract.columns) or contract.shown,
        carrier=_carrier(contract.columns, stored, {*unique_key, *layout}),
        where=str(model["name"]),
    )


def ordered_select(contract: Contract, sql: str, produced: Sequence[str]) -> str:
    """The SQL of a keyed model with the columns in the order of the contract.

    Columns that are not stored are left out.
    """
    action = [column for column in produced if column.lower() in _NOT_STORED]
    columns = [column for column in contract.columns if column.lower() not in _NOT_STORED]
    return checked_select(sql, [*columns, *action], (), (), "", "")


def contract_mismatch(
    declared: Iterable[tuple[str, str]], produced: Iterable[tuple[str, str]], keyed: bool
) -> tuple[list[dict[str, str]], list[dict[str, str]]] | None:
    """The columns of a contract and of a query in the form of dbt's error; ``None`` if they match.

    Names are case-insensitive as everywhere in Spark, including those of fields. The order of columns may
    differ, because the order of the contract is written. The order of fields must be the same.
    """
    wanted = [_formatted(*column) for column in declared if not (keyed and column[0].lower() in _NOT_STORED)]
    found = [_formatted(*column) for column in produced if not (keyed and column[0].lower() in _NOT_STORED)]
    by_name = {column["name"]: column["data_type"] for column in wanted}
    same = len(found) == len(wanted) and all(
        column["name"] in by_name and is_spelled_alike(by_name[column["name"]], column["data_type"])
        for column in found
    )
    return None if same else (wanted, found)


def warn_of_ignored(contract: Contract, adapter: str) -> None:
    """Emit dbt's warning for each constraint that is not enforced, unless it is disabled."""
    for constraint in contract.ignored:
        if constraint.warn_unsupported:
            warn_or_error(ConstraintNotSupported(constraint=constraint.type.value, adapter=adapter))


def _constraints(model: Mapping[str, Any]) -> Iterable[ModelLevelConstraint]:
    """All constraints in the form of model constraints, with the column for those of a column."""
    for column in (model.get("columns") or {}).values():
        for raw in column.get("constraints") or []:
            yield ModelLevelConstraint.from_dict({**raw, "columns": [str(column["name"])]})
    for raw in model.get("constraints") or []:
        parsed = ModelLevelConstraint.from_dict(dict(raw))
        parsed.columns = [_unquoted(column) for column in parsed.columns]
        yield parsed


def _check(model: str, constraint: ModelLevelConstraint) -> Check:
    expression = (constraint.expression or "").strip()
    if not expression:
        raise ConfigError(
            "a check constraint has no expression",
            where=model,
            fix="add one, for instance: expression: amount >= 0",
        )
    on = f" on {', '.join(constraint.columns)}" if constraint.columns else ""
    title = constraint.name or f"check{on}"
    # On a separate line, for an expression that ends with a comment.
    return Check(title, f"check {expression}", f"NOT (\n{expression}\n)")


def _refuse_expression(model: str, constraint: ModelLevelConstraint) -> None:
    if constraint.expression:
        raise ConfigError(
            f"the not_null constraint on {', '.join(constraint.columns)} has an expression",
            where=model,
            why="Spark's NOT NULL has no expression",
            fix="remove the expression, or use a check constraint",
        )


def _existing(model: str, constraint: ModelLevelConstraint, columns: Sequence[str]) -> list[str]:
    unknown = [name for name in constraint.columns if name.lower() not in {c.lower() for c in columns}]
    if unknown or not constraint.columns:
        raise ConfigError(
            f"a {constraint.type.value} constraint refers to {', '.join(unknown) or 'no column'}",
            where=model,
            why=f"the contract's columns are: {', '.join(columns)}",
            fix="correct the constraint's columns",
        )
    return _matching(constraint.columns, columns)


def _shown(model: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    types = {
        str(column["name"]): str(column.get("data_type") or "")
        for column in model.get("columns", {}).values()
    }
    short = [column for column in columns if written_kind(types[column]) not in _LONG]
    return tuple((short or columns)[:_SHOWN])


def _carrier(columns: Sequence[str], stored: Sequence[str] | None, avoided: set[str]) -> str:
    """The column that contains the checks. It must be stored, because Spark computes no other column."""
    kept = {name.lower() for name in (columns if stored is None else stored)}
    avoid = {name.lower() for name in avoided}
    candidates = [column for column in columns if column.lower() in kept] or list(columns)
    # Avoids columns of joins and the layout: an expression cannot prune files.
    return next((column for column in reversed(candidates) if column.lower() not in avoid), candidates[-1])


def _formatted(name: str, type_: str) -> dict[str, str]:
    return {"name": name.lower(), "data_type": type_, "formatted": f"{name.lower()} {type_}"}


def _matching(wanted: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The requested columns that exist, in their own spelling."""
    by_lower = {column.lower(): column for column in columns}
    return [by_lower[name.lower()] for name in wanted if name.lower() in by_lower]


def _same(columns: Sequence[str], key: Sequence[str]) -> bool:
    return {name.lower() for name in columns} == {name.lower() for name in key}


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value or []]


def _unquoted(name: str) -> str:
    stripped = name.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in '`"':
        return stripped[1:-1]
    return stripped
