"""SQL that converts structs, lists and maps of an older snapshot to the table's current types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dbt_arctic.keyed.initial_default import initial_value
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.keyed.widening import can_widen


def as_today(value: str, then: str, now: str) -> str:
    """SQL of a value with its current nested fields, matched by field id.

    A field that was added later is NULL or has its default, and a widened one gets its current type.

    :param then: the nested type at the snapshot, as in ``CatalogColumn.nested``.
    :param now: the current nested type.
    """
    return _made(value, json.loads(then), json.loads(now), 0)


def has_other_types(then: str, now: str) -> bool:
    """Whether a part with the same field id had a type that Iceberg does not promote to the current one.

    The table was then replaced by one with other types.
    """
    return _has_other_types(json.loads(then), json.loads(now))


def _has_other_types(then: Any, now: Any) -> bool:
    if then == now:
        return False
    match then, now:
        case {"type": "struct"}, {"type": "struct"}:
            known = {field["id"]: field["type"] for field in then["fields"]}
            return any(
                field["id"] in known and _has_other_types(known[field["id"]], field["type"])
                for field in now["fields"]
            )
        case {"type": "list"}, {"type": "list"}:
            return _has_other_types(then["element"], now["element"])
        case {"type": "map"}, {"type": "map"}:
            return any(_has_other_types(then[part], now[part]) for part in ("key", "value"))
        case str(), str():
            return then != "unknown" and not can_widen(_spark_type(then), _spark_type(now))
    return True


def _spark_type(primitive: str) -> str:
    return {"long": "bigint"}.get(primitive, primitive.replace(" ", ""))


def field_ids(nested: str) -> frozenset[int]:
    """The field ids of a nested type."""
    return frozenset(_ids(json.loads(nested))) if nested else frozenset()


def _ids(type_: Any) -> Iterator[int]:
    match type_:
        case {"type": "struct", "fields": fields}:
            for field in fields:
                yield field["id"]
                yield from _ids(field["type"])
        case dict():
            for part in ("element", "key", "value"):
                if part in type_:
                    yield type_[f"{part}-id"]
                    yield from _ids(type_[part])


def _made(value: str, then: Any, now: Any, depth: int) -> str:
    if then == now:
        return value
    match now:
        case {"type": "struct"}:
            known = {field["id"]: field for field in then["fields"]}
            fields = ", ".join(
                f"{literal(field['name'])}, {_field(value, known.get(field['id']), field, depth)}"
                for field in now["fields"]
            )
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({fields}) END"
        case {"type": "list"}:
            each = f"x{depth}"
            return f"transform({value}, {each} -> {_made(each, then['element'], now['element'], depth + 1)})"
        case {"type": "map"}:
            key, each = f"k{depth}", f"x{depth}"
            made = value
            if then["key"] != now["key"]:
                of_key = _made(key, then["key"], now["key"], depth + 1)
                made = f"transform_keys({made}, ({key}, {each}) -> {of_key})"
            if then["value"] != now["value"]:
                of_value = _made(each, then["value"], now["value"], depth + 1)
                made = f"transform_values({made}, ({key}, {each}) -> {of_value})"
            return made
    return f"CAST({value} AS {now})"


def _field(value: str, then: dict[str, Any] | None, now: dict[str, Any], depth: int) -> str:
    if then is None:
        return initial_value(now.get("initial", ""), now["spark_type"])
    return _made(f"{value}.{quote(then['name'])}", then["type"], now["type"], depth)
