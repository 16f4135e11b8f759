"""SQL that turns UPDATE, DELETE and MERGE on a keyed table into changes, with a single append.

The user's expressions are not modified. The surrounding query provides the relations that they refer to,
under the user's names: the merged rows of the target, and the source of a MERGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dbt_arctic.keyed.checks import Check, raise_error_sql, shown_row, when_broken
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.read import key_equality, merge_on_read, tombstones_of
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.keyed.write import insert_rows

Kind = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]

UPDATED, INSERTED, DELETED, MOVED = range(4)
"""``_offset`` of the rows, from which the commit counts rows by effect. With one row per key there is no
order."""

_OLD, _NEW, _CLAUSE = "_arctic_old_", "_arctic_new_", quote("_arctic_clause")
_IN_TARGET, _IN_SOURCE = quote("_arctic_in_target"), quote("_arctic_in_source")
_TOMBSTONE = quote("_arctic_tombstone")


@dataclass(frozen=True)
class Clause:
    """The effect of a statement on some rows.

    :param condition: SQL in addition to the condition of ``kind``; ``None`` for all rows.
    :param values: SQL by column of the table. In an insert, a missing column is NULL.
    """

    kind: Kind
    action: Action
    condition: str | None
    values: Mapping[str, str]


@dataclass(frozen=True)
class Modification:
    """A statement whose columns are resolved in the table. An UPDATE or DELETE has one clause and no source.

    :param prefix: a WITH clause that precedes it, or empty.
    :param alias: the name of the target's rows in the expressions.
    :param source: SQL of a relation with its alias.
    :param source_alias: the name of its rows.
    """

    prefix: str
    alias: str
    clauses: tuple[Clause, ...]
    source: str | None = None
    source_alias: str = ""
    on: str = ""

    def moves_keys(self, table: KeyedTable) -> bool:
        """Whether a row may get a different key."""
        return any(
            clause.action == "insert" or (clause.action == "update" and set(clause.values) & set(table.key))
            for clause in self.clauses
        )


def modify_rows(
    table: KeyedTable,
    modification: Modification,
    version: Version,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
    where: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL of an append to a branch of the change table.

    It has the effect of the statement on the rows of ``version``.

    :param where: the model or table that errors name.
    """
    rows = merge_on_read(table, version, known)
    if modification.source is None and not modification.moves_keys(table):
        select = _of_one_table(table, modification, rows, txn, where)
    else:
        deleted = None
        if table.sequence_by and modification.moves_keys(table):
            # A tombstone is not one of the merged rows, but overrides a new row of its key.
            deleted = tombstones_of(table, version, known)
        select = _of_several_rows(table, modification, rows, deleted, txn, where)
    statement = insert_rows(table, txn, properties, select, branch)
    return f"{modification.prefix}\n{statement}" if modification.prefix else statement


def count_rows(table: KeyedTable, snapshot_id: int, txn: int) -> str:
    """SQL that counts the written rows by effect."""
    return (
        f"SELECT {quote(OFFSET)}, count(*)\nFROM {table.change.at(snapshot_id)}\n"
        f"WHERE {quote(TXN)} = {txn}\nGROUP BY {quote(OFFSET)}"
    )


def _of_one_table(table: KeyedTable, modification: Modification, rows: str, txn: int, where: str) -> str:
    """SQL for a statement that processes each row independently, because keys do not change."""
    (clause,) = modification.clauses
    alias = quote(modification.alias)
    columns = ",\n  ".join(
        f"({clause.values[column]}) AS {quote(column)}"
        if column in clause.values
        else f"{alias}.{quote(column)}"
        for column in table.column_names
    )
    old = ""
    if table.sequence_by:
        old = f", {alias}.{quote(table.sequence_by)} AS {quote(_OLD + 'sequence')}"
    action, offset = ("'D'", DELETED) if clause.action == "delete" else ("'U'", UPDATED)
    condition = f"\nWHERE (\n{clause.condition}\n)" if clause.condition is not None else ""
    checks = _row_checks(table, where)
    if table.sequence_by:
        checks += _sequence_checks(table, where, quote(_OLD + "sequence"))
    checked = f"CASE {' '.join(checks)} ELSE {offset}L END" if checks else f"{offset}L"
    return f"""\
SELECT {quote_all(table.column_names)}, {quote(ACTION)}, {checked}, CAST({txn} AS BIGINT)
FROM (
SELECT {columns},
  {action} AS {quote(ACTION)}{old}
FROM (
{rows}
) AS {alias}{condition}
) AS r"""


def _of_several_rows(
    table: KeyedTable, modification: Modification, rows: str, deleted: str | None, txn: int, where: str
) -> str:
    """SQL for a statement that joins rows.

    Joins source with target rows, and moved rows with those at their new keys.

    Each affected row is split into the new row under its new key and the old row under its old key. For each
    key, the new row is kept if there is one, otherwise the delete.

    :param deleted: SQL of the tombstones that override a new row of their key; ``None`` if there can be none.
    """
    key = quote_all(table.key)
    of_key = f"OVER (PARTITION BY {key})"
    newest = f"row_number() OVER (PARTITION BY {key} ORDER BY {quote(ACTION)} DESC"
    what = quote("_arctic_what")
    there = quote("_arctic_there")
    checks = [
        *_key_checks(table, where),
        *_row_checks(table, where),
        *(_sequence_checks(table, where, quote(_OLD + "sequence")) if table.sequence_by else []),
        *(_tombstone_checks(table, where) if deleted is not None else []),
    ]
    old_sequence = ""
    if table.sequence_by:
        sequence = quote(table.sequence_by)
        of_old = f"max(CASE WHEN {quote(ACTION)} = 'D' THEN {sequence} END)"
        old_sequence = f",\n    {of_old} {of_key} AS {quote(_OLD + 'sequence')}"
    collisions, tested = "", "false"
    if modification.moves_keys(table):
        tested = f"o.{there} IS NOT NULL"
        collisions = f"""
LEFT JOIN (
SELECT {key}, true AS {there}
FROM (
{rows}
) AS r
) AS o
  ON {key_equality("w", "o", table.key)} AND w.`_arctic_was` = 0"""
    overriding, gone = "", ""
    if deleted is not None:
        gone = f", d.{_TOMBSTONE}"
        overriding = f"""
LEFT JOIN (
SELECT {key}, {quote(str(table.sequence_by))} AS {_TOMBSTONE}
FROM (
{deleted}
) AS t
) AS d
  ON {key_equality("w", "d", table.key)}"""
    listed = ", ".join(f"w.{quote(column)}" for column in table.column_names)
    return f"""\
SELECT {quote_all(table.column_names)}, {quote(ACTION)},
  CASE {" ".join(checks)} ELSE {what} END, CAST({txn} AS BIGINT)
FROM (
SELECT {listed}, w.{quote(ACTION)}, w.{what}, w.`_arctic_comes`, w.`_arctic_changed`,
  {tested} AS {there}{f", w.{quote(_OLD + 'sequence')}" if table.sequence_by else ""}{gone}
FROM (
  SELECT *,
    count_if({quote(ACTION)} = 'U') {of_key} AS `_arctic_comes`,
    count_if({quote(ACTION)} = 'D') {of_key} AS `_arctic_was`,
    count_if({what} = {MOVED}) {of_key} + max(CASE WHEN {what} = {DELETED} THEN 1 ELSE 0 END) {of_key}
      AS `_arctic_changed`,
    {newest}, {what}) AS `_arctic_rank`{old_sequence}
  FROM (
{_taken_apart(table, modification, rows)}
  ) AS e
) AS w{collisions}{overriding}
WHERE w.`_arctic_rank` = 1
) AS f"""


def _taken_apart(table: KeyedTable, modification: Modification, rows: str) -> str:
    def struct(prefix: str, action: str, what: str) -> str:
        fields = [
            f"{literal(column)}, {quote(f'{prefix}{at}')}" for at, column in enumerate(table.column_names)
        ]
        fields += [f"{literal(ACTION)}, {literal(action)}", f"'_arctic_what', {what}"]
        return f"named_struct({', '.join(fields)})"

    becomes = [at for at, clause in enumerate(modification.clauses) if clause.action != "delete"]
    was = [at for at, clause in enumerate(modification.clauses) if clause.action != "insert"]
    inserts = [at for at, clause in enumerate(modification.clauses) if clause.action == "insert"]
    deletes = [at for at, clause in enumerate(modification.clauses) if clause.action == "delete"]
    parts = [
        f"CASE WHEN {_among(becomes)} THEN "
        + struct(_NEW, "U", f"CASE WHEN {_among(inserts)} THEN {INSERTED}L ELSE {UPDATED}L END")
        + " END",
        f"CASE WHEN {_among(was)} THEN "
        + struct(_OLD, "D", f"CASE WHEN {_among(deletes)} THEN {DELETED}L ELSE {MOVED}L END")
        + " END",
    ]
    made = ",\n  ".join(parts)
    return f"""\
SELECT inline(filter(array(
  {made}
), x -> x IS NOT NULL))
FROM (
{_affected(table, modification, rows)}
) AS a
WHERE {_CLAUSE} IS NOT NULL"""


def _among(clauses: Sequence[int]) -> str:
    return f"{_CLAUSE} IN ({', '.join(map(str, clauses))})" if clauses else "false"


def _affected(table: KeyedTable, modification: Modification, rows: str) -> str:
    """SQL of each joined row: its clause, the old row, and the new row."""
    alias = quote(modification.alias)
    names = list(enumerate(table.column_names))
    old = [f"{alias}.{quote(column)} AS {quote(f'{_OLD}{at}')}" for at, column in names]
    new = [f"{_new_value(table, modification, column)} AS {quote(f'{_NEW}{at}')}" for at, column in names]
    branches = []
    for at, clause in enumerate(modification.clauses):
        condition = _kind(modification, clause.kind)
        if clause.condition is not None and modification.source is not None:
            condition += f" AND (\n{clause.condition}\n)"
        branches.append(f"WHEN {condition} THEN {at}")
    columns = ",\n  ".join([f"CASE {' '.join(branches)} END AS {_CLAUSE}", *old, *new])
    return f"SELECT {columns}\nFROM {_joined(modification, rows)}"


def _new_value(table: KeyedTable, modification: Modification, column: str) -> str:
    """SQL of the new value, cast to the column type in each clause.

    So no clause decides the type of the others.
    """
    type_ = table.types[column]
    branches = []
    for at, clause in enumerate(modification.clauses):
        if clause.action == "delete":
            continue
        kept = f"{quote(modification.alias)}.{quote(column)}" if clause.action == "update" else "NULL"
        value = clause.values.get(column)
        branches.append(f"WHEN {at} THEN CAST({kept if value is None else f'({value})'} AS {type_})")
    return f"CASE {_CLAUSE} {' '.join(branches)} END" if branches else f"CAST(NULL AS {type_})"


def _kind(modification: Modification, kind: Kind) -> str:
    if modification.source is None:
        return "true"
    target = f"{quote(modification.alias)}.{_IN_TARGET}"
    source = f"{quote(modification.source_alias)}.{_IN_SOURCE}"
    return {
        "matched": f"{target} IS NOT NULL AND {source} IS NOT NULL",
        "not matched": f"{target} IS NULL",
        "not matched by source": f"{source} IS NULL",
    }[kind]


def _joined(modification: Modification, rows: str) -> str:
    alias = quote(modification.alias)
    if modification.source is None:
        # The only condition of the statement is a filter: it may contain subqueries, and it prunes files.
        (clause,) = modification.clauses
        condition = f"\nWHERE (\n{clause.condition}\n)" if clause.condition is not None else ""
        return f"(\n{rows}\n) AS {alias}{condition}"
    kinds = {clause.kind for clause in modification.clauses}
    join = {
        (False, False): "JOIN",
        (True, False): "RIGHT JOIN",
        (False, True): "LEFT JOIN",
        (True, True): "FULL JOIN",
    }["not matched" in kinds, "not matched by source" in kinds]
    return f"""\
(
SELECT *, true AS {_IN_TARGET}
FROM (
{rows}
) AS r
) AS {alias}
{join} (
SELECT *, true AS {_IN_SOURCE}
FROM {modification.source}
) AS {quote(modification.source_alias)}
  ON (
{modification.on}
)"""


def _key_checks(table: KeyedTable, where: str) -> list[str]:
    any_null = " OR ".join(f"{quote(column)} IS NULL" for column in table.key)
    row = shown_row(table.key)
    no_key = raise_error_sql(
        "AR-303",
        "the statement would set a key column to NULL: ",
        row,
        where,
        "a key must identify the row that an update or delete is meant for",
        "leave these rows out, or give them a key",
    )
    twice = raise_error_sql(
        "AR-304",
        "several rows would get the key ",
        row,
        where,
        "a key must be unique; nothing was changed",
        "leave one of them out, or update the existing row",
    )
    matched_twice = raise_error_sql(
        "AR-304",
        "several rows of the source match the row with the key ",
        row,
        where,
        "it is ambiguous which of them applies; nothing was changed",
        "make the source have one row for each row of the target, for instance with GROUP BY",
    )
    return [
        f"WHEN {any_null} THEN CAST({no_key} AS BIGINT)",
        f"WHEN `_arctic_changed` > 1 THEN CAST({matched_twice} AS BIGINT)",
        f"WHEN `_arctic_comes` > 1 OR `_arctic_there` THEN CAST({twice} AS BIGINT)",
    ]


def _row_checks(table: KeyedTable, where: str) -> list[str]:
    checks = [Check(f"not_null on {name}", "NOT NULL", f"{quote(name)} IS NULL") for name in table.required]
    return when_broken(checks, table.key, where, f"{quote(ACTION)} = 'U'")


def _sequence_checks(table: KeyedTable, where: str, old: str) -> list[str]:
    assert table.sequence_by is not None
    sequence = quote(table.sequence_by)
    wrong = raise_error_sql(
        "AR-309",
        f"a row would get a value in {table.sequence_by} that is smaller than that of the existing row: ",
        shown_row([*table.key, table.sequence_by]),
        where,
        "the greatest value of a key wins, so the change would have no effect",
        f"keep {table.sequence_by} unchanged, or increase it",
    )
    return [
        f"WHEN {quote(ACTION)} = 'U' AND ({sequence} IS NULL OR {sequence} < {old}) "
        f"THEN CAST({wrong} AS BIGINT)"
    ]


def _tombstone_checks(table: KeyedTable, where: str) -> list[str]:
    assert table.sequence_by is not None
    sequence = quote(table.sequence_by)
    # A vertical bar separates the parts of the error.
    deleted_at = f"replace(CAST({_TOMBSTONE} AS STRING), '|', '/')"
    loses = raise_error_sql(
        "AR-309",
        f"a row would get the key of a deleted row, but no greater value in {table.sequence_by}: ",
        f"concat({shown_row([*table.key, table.sequence_by])}, ', deleted at ', {deleted_at})",
        where,
        "the greatest value of a key wins, and between equal values the delete, so the row would not exist",
        f"give the row a value in {table.sequence_by} that is greater than that of the delete",
    )
    return [f"WHEN {quote(ACTION)} = 'U' AND {sequence} <= {_TOMBSTONE} THEN CAST({loses} AS BIGINT)"]
