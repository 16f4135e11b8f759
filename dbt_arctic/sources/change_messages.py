"""SQL of what a message of change events says, for each format in the same columns. Pure.

Columns of the result, in addition to those of the messages:

* ``_kind``: ``change``, ``truncate``, a kind of message that is ignored, or NULL for anything else.
* ``_table``: ``database.table``.
* ``_operation``: ``insert``, ``update``, ``delete``, ``read``.
* ``_at``: when the row changed, according to the database.
* ``_place``: the order of the event, as text that sorts like the events; NULL if it has none.
* ``_changes``: an array of structs with the maps ``before`` and ``after``, of variants by column name; of a
  capture, of texts.
* ``_fields``: what the message says about the types of the columns, by column name; of a capture, the columns
  that were not sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.change_settings import ChangeEvents, EarlierColumns

TEXT = "_text"
"""The column with the text of a message."""

_MAP = "MAP<STRING, VARIANT>"
_FIELD = "STRUCT<name: STRING, parameters: MAP<STRING, STRING>>"
_NESTED = f"STRUCT<name: STRING, parameters: MAP<STRING, STRING>, items: {_FIELD}, field: STRING>"
_SCHEMA = f"`schema` STRUCT<fields: ARRAY<STRUCT<field: STRING, fields: ARRAY<{_NESTED}>>>>"
_NO_FIELDS = f"CAST(NULL AS MAP<STRING, {_NESTED}>)"


def messages(events: ChangeEvents, source: str, delivered: str) -> str:
    """SQL of the messages, in the columns above.

    :param source: SQL of a relation with ``TEXT``.
    :param delivered: SQL of the order in which messages were delivered, as text; NULL if it is not known.
    """
    if events.format == "capture":
        return _captured(events, source)
    parsed = computed([("_message", f"TRY_CAST(try_parse_json({quote(TEXT)}) AS {_MAP})")], source)
    parse = {"debezium": _debezium, "maxwell": _maxwell, "canal": _canal}
    return parse[events.format](events, parsed, delivered)


def _get(container: str, name: str, kind: str = "STRING") -> str:
    return f"TRY_CAST({container}[{literal(name)}] AS {kind})"


def computed(columns: Iterable[tuple[str, str]], relation: str) -> str:
    """SQL that adds columns to a relation, each of which is computed once for a row.

    Spark would repeat the expression of a column of a SELECT wherever a filter above refers to it. It does
    not repeat the columns of a generator.
    """
    named = list(columns)
    listed = ",\n  ".join(f"{literal(name)}, {sql}" for name, sql in named)
    names = ", ".join(quote(name) for name, _ in named)
    return f"SELECT *\nFROM {relation}\nLATERAL VIEW inline(array(named_struct(\n  {listed}))) AS {names}"


def _place(events: ChangeEvents, position: str, delivered: str) -> str:
    return delivered if events.order == "delivery" else position


def _debezium(events: ChangeEvents, parsed: str, delivered: str) -> str:
    has_schema = "map_contains_key(`_message`, 'schema') AND map_contains_key(`_message`, 'payload')"
    payload = _get("`_message`", "payload", _MAP)
    described = f"from_json({quote(TEXT)}, {literal(_SCHEMA)}).`schema`.fields"
    # The schemas of before and after have the same columns.
    of_rows = f"get(filter({described}, f -> f.field IN ('before', 'after')), 0).fields"
    by_name = f"map_from_entries(transform({of_rows}, f -> struct(f.field, f)))"
    envelope = computed(
        [
            ("_event", f"IF({has_schema}, {payload}, `_message`)"),
            ("_fields", f"IF({has_schema}, {by_name}, {_NO_FIELDS})"),
        ],
        f"(\n{parsed}\n)",
    )
    sourced = computed(
        [("_source", _get("`_event`", "source", _MAP)), ("_op", _get("`_event`", "op"))],
        f"(\n{envelope}\n)",
    )
    is_tombstone = f"({quote(TEXT)} IS NULL OR trim({quote(TEXT)}) IN ('', 'null'))"
    is_heartbeat = "map_keys(`_event`) = array('ts_ms')"
    kind = (
        f"CASE WHEN {is_tombstone} THEN 'tombstone' "
        "WHEN `_op` IN ('c', 'r', 'u', 'd') THEN 'change' WHEN `_op` = 't' THEN 'truncate' "
        "WHEN `_op` = 'm' THEN 'logical decoding message' "
        f"WHEN {is_heartbeat} THEN 'heartbeat' "
        "WHEN map_contains_key(`_event`, 'ddl') OR map_contains_key(`_event`, 'tableChanges') "
        "THEN 'schema change' "
        f"WHEN {_get('`_event`', 'status')} IN ('BEGIN', 'END') THEN 'transaction' END"
    )
    namespace = f"coalesce({_get('`_source`', 'schema')}, {_get('`_source`', 'db')})"
    operations = "map('c', 'insert', 'u', 'update', 'd', 'delete', 'r', 'read')"
    changes = (
        f"array(struct({_get('`_event`', 'before', _MAP)} AS before, "
        f"{_get('`_event`', 'after', _MAP)} AS after))"
    )
    columns = [
        ("_kind", kind),
        ("_table", f"concat_ws('.', {namespace}, {_get('`_source`', 'table')})"),
        ("_operation", f"{operations}[`_op`]"),
        ("_at", f"timestamp_millis({_get('`_source`', 'ts_ms', 'BIGINT')})"),
        ("_place", _place(events, _debezium_position(), delivered)),
        ("_changes", changes),
    ]
    return computed(columns, f"(\n{sourced}\n)")


def _debezium_position() -> str:
    """PostgreSQL: the log sequence number of the last commit before, then that of the event.

    The changes of concurrent transactions alternate in the log, and events come transaction by transaction.
    MySQL and MariaDB: the file of the binlog, the position in it, and the row of the event.
    """
    lsn = _get("`_source`", "lsn")
    commit = f"get(from_json({_get('`_source`', 'sequence')}, 'ARRAY<STRING>'), 0)"
    # A row that a snapshot has read comes before the changes that were made from there on.
    read = "IF(`_op` = 'r', '0', '1')"
    postgres = f"concat(lpad(coalesce({commit}, {lsn}), 20, '0'), '.', {read}, '.', lpad({lsn}, 20, '0'))"
    file = f"nullif(regexp_extract({_get('`_source`', 'file')}, '([0-9]+)$', 1), '')"
    position, row = _get("`_source`", "pos"), f"coalesce({_get('`_source`', 'row')}, '0')"
    mysql = (
        f"concat(lpad({file}, 10, '0'), '.', lpad({position}, 20, '0'), '.', {read}, '.', "
        f"lpad({row}, 10, '0'))"
    )
    connector = _get("`_source`", "connector")
    return (
        f"CASE WHEN {connector} = 'postgresql' THEN {postgres} "
        f"WHEN {connector} IN ('mysql', 'mariadb') THEN {mysql} END"
    )


def _keys_before(events: ChangeEvents, old: str, new: str) -> str:
    """The key before an update, from the columns that have changed and the row as it is now."""
    names = ", ".join(map(literal, events.key))
    values = ", ".join(
        f"IF(map_contains_key({old}, {name}), {old}[{name}], {new}[{name}])"
        for name in map(literal, events.key)
    )
    return f"map_from_arrays(array({names}), array({values}))"


def _maxwell(events: ChangeEvents, parsed: str, delivered: str) -> str:
    made = computed([("_type", _get("`_message`", "type")), ("_fields", _NO_FIELDS)], f"(\n{parsed}\n)")
    data, old = _get("`_message`", "data", _MAP), _get("`_message`", "old", _MAP)
    kind = (
        f"CASE WHEN {quote(TEXT)} IS NULL OR trim({quote(TEXT)}) IN ('', 'null') THEN 'tombstone' "
        "WHEN `_type` IN ('insert', 'update', 'delete', 'bootstrap-insert') THEN 'change' "
        "WHEN `_type` IN ('table-drop', 'database-drop') THEN 'truncate' "
        "WHEN `_type` LIKE 'table-%' OR `_type` LIKE 'database-%' THEN 'schema change' "
        "WHEN `_type` IN ('bootstrap-start', 'bootstrap-complete') THEN 'bootstrap' "
        "WHEN `_type` = 'heartbeat' THEN 'heartbeat' END"
    )
    position = _get("`_message`", "position")
    parts = [f"nullif(regexp_extract({position}, '([0-9]+):([0-9]+)$', {at}), '')" for at in (1, 2)]
    # The last row of a transaction has no offset.
    row = (
        f"CASE WHEN {_get('`_message`', 'commit')} = 'true' THEN '9999999999' "
        f"ELSE lpad({_get('`_message`', 'xoffset')}, 10, '0') END"
    )
    place = f"concat(lpad({parts[0]}, 10, '0'), '.', lpad({parts[1]}, 20, '0'), '.', {row})"
    before = (
        f"CASE `_type` WHEN 'delete' THEN {data} WHEN 'update' THEN {_keys_before(events, old, data)} END"
    )
    columns = [
        ("_kind", kind),
        ("_table", f"concat_ws('.', {_get('`_message`', 'database')}, {_get('`_message`', 'table')})"),
        ("_operation", "IF(`_type` = 'bootstrap-insert', 'read', `_type`)"),
        ("_at", f"timestamp_seconds({_get('`_message`', 'ts', 'BIGINT')})"),
        ("_place", _place(events, place, delivered)),
        ("_changes", f"array(struct({before} AS before, {data} AS after))"),
    ]
    return computed(columns, f"(\n{made}\n)")


def _canal(events: ChangeEvents, parsed: str, delivered: str) -> str:
    made = computed([("_type", _get("`_message`", "type")), ("_fields", _NO_FIELDS)], f"(\n{parsed}\n)")
    data, old = (_get("`_message`", name, f"ARRAY<{_MAP}>") for name in ("data", "old"))
    kind = (
        f"CASE WHEN {quote(TEXT)} IS NULL OR trim({quote(TEXT)}) IN ('', 'null') THEN 'tombstone' "
        f"WHEN `_type` IN ('INSERT', 'UPDATE', 'DELETE') AND {data} IS NOT NULL THEN 'change' "
        "WHEN `_type` IN ('TRUNCATE', 'ERASE') THEN 'truncate' "
        f"WHEN {_get('`_message`', 'isDdl')} = 'true' THEN 'schema change' "
        "WHEN `_type` = 'QUERY' THEN 'statement' END"
    )
    time = _get("`_message`", "es", "BIGINT")
    place = f"CASE WHEN {time} > 0 THEN concat(lpad(CAST({time} AS STRING), 16, '0'), '.', {delivered}) END"
    old_row = f"coalesce(get({old}, p), CAST(map() AS {_MAP}))"
    before = f"CASE `_type` WHEN 'DELETE' THEN r WHEN 'UPDATE' THEN {_keys_before(events, old_row, 'r')} END"
    columns = [
        ("_kind", kind),
        ("_table", f"concat_ws('.', {_get('`_message`', 'database')}, {_get('`_message`', 'table')})"),
        ("_operation", "lower(`_type`)"),
        ("_at", f"timestamp_millis({time})"),
        ("_place", _place(events, place, delivered)),
        ("_changes", f"transform({data}, (r, p) -> struct({before} AS before, r AS after))"),
    ]
    return computed(columns, f"(\n{made}\n)")


def _captured(events: ChangeEvents, source: str) -> str:
    """The messages of a capture table. Their values are texts, or the JSON text of arrays."""
    schema = (
        "operation STRING, `table` STRING, at_ms BIGINT, place STRING, unsent ARRAY<STRING>, "
        "`before` MAP<STRING, STRING>, `after` MAP<STRING, STRING>, shape STRING"
    )
    # Without the option, Jackson reads no text of more than 20 million characters.
    message = f"from_json({quote(TEXT)}, {literal(schema)}, map('maxStringLen', '2147483647'))"
    parsed = computed([("_message", message)], source)
    before, after = (_named_as_now(events, f"`_message`.`{image}`") for image in ("before", "after"))
    unsent = "`_message`.unsent"
    if events.earlier is not None:
        names = _names_of_now(events.earlier)
        renamed = f"transform(filter({unsent}, c -> map_contains_key({names}, c)), c -> {names}[c])"
        unsent = f"IF({_is_earlier(events.earlier)}, {renamed}, {unsent})"
    columns = [
        ("_kind", "IF(`_message`.operation IN ('truncate', 'alter'), `_message`.operation, 'change')"),
        ("_table", "`_message`.`table`"),
        ("_operation", "`_message`.operation"),
        ("_at", "timestamp_millis(`_message`.at_ms)"),
        ("_place", "`_message`.place"),
        ("_changes", f"array(struct({before} AS before, {after} AS after))"),
        ("_fields", unsent),
    ]
    return computed(columns, f"(\n{parsed}\n)")


def _is_earlier(earlier: EarlierColumns) -> str:
    # The replica identity may follow.
    return f"substring_index(`_message`.shape, '[', 1) = {literal(earlier.shape)}"


def _names_of_now(earlier: EarlierColumns) -> str:
    """SQL of a map from the names in an earlier change to those of now."""
    return f"map({', '.join(literal(one) for pair in earlier.names.items() for one in pair)})"


def _named_as_now(events: ChangeEvents, image: str) -> str:
    """SQL of the values before or after a captured change, by the names that columns have now."""
    if events.earlier is None:
        return image
    names = _names_of_now(events.earlier)
    own = f"map_filter({image}, (c, v) -> map_contains_key({names}, c))"
    return f"IF({_is_earlier(events.earlier)}, transform_keys({own}, (c, v) -> {names}[c]), {image})"


__all__ = ["TEXT", "computed", "messages"]
