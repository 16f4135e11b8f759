"""No name and no value leaves its quotes, whatever is in it.

Each statement is made twice: once with tame names and values, once with hostile ones. Cut into code, names
and literals as Spark cuts it, the code of the two has to be the same, and each name or literal has to be
read back as what went in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dbt_arctic.adapter.impl import ArcticAdapter
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.catalog.ddl import quoted
from dbt_arctic.engine import literals
from dbt_arctic.engine.lexer import Piece, pieces
from dbt_arctic.engine.type_text import field_name
from dbt_arctic.keyed import (
    adoption,
    compact,
    create,
    erasure,
    overwrite,
    partial,
    read,
    replace,
    rollback,
    savepoint,
    upserts_from_difference,
    write,
)
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.branch import create_branch, drop_branch, fast_forward
from dbt_arctic.keyed.changes_between import changes, difference
from dbt_arctic.keyed.checks import Check, checked_select
from dbt_arctic.keyed.history import History, MetaColumns, affected_keys_sql, events_sql
from dbt_arctic.keyed.history_sql import intervals
from dbt_arctic.keyed.layout import Layout, partition_expression, partition_field
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.modify import Clause, Modification, modify_rows
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.replay import insert_replay
from dbt_arctic.keyed.table import Column, Generation, KeyedTable, from_properties
from dbt_arctic.keyed.version import Consumed, Version, encode_consumed
from dbt_arctic.store.lease import renew_statement

VERSION = Version(3, 11, 12)
NAMES = tuple(f"zq{number} zq" for number in range(12))
"""Tame names. With a blank, so that they need their quotes as much as hostile ones do."""

HOSTILE = st.text(alphabet="'`\"\\\n\r\t\0;-/*${}%_#(),.<>:= ab01üÜ\u2028\U0001f600", min_size=1, max_size=12)
KNOWN = [
    "`; DROP TABLE t; --",
    "'); DROP TABLE t; --",
    "\\",
    "\\'",
    "/*",
    "*/ --",
    "${env:HOME}",
    "{{ env_var('HOME') }}",
    "a\nb",
    "\x0012",
    "it's",
    "``",
    "%s",
]


@dataclass(frozen=True)
class World:
    """Names and values that a statement is made of."""

    words: tuple[str, ...]

    @property
    def table(self) -> KeyedTable:
        _, schema, identifier, key, second, plain, nested, owner, table_id, comment, *_ = self.words
        columns = (
            Column(key, "string", comment),
            Column(second, "date"),
            Column(plain, f"struct<{field_name(nested + ' ')}:map<string,int>,b:int>", comment),
        )
        return KeyedTable(
            name=Name("lake", schema, identifier),
            generation=Generation(3, table_id, table_id + "c", second),
            key=(key, second),
            layout=Layout(4, key, (f"day({quote(second)})", quote(plain)), (key, second)),
            columns=columns,
            owner=owner,
            previous=Generation(2, table_id, owner),
            required=(plain,),
            root=identifier,
        )

    @property
    def batch(self) -> Batch:
        names = self.table.column_names
        checks = (Check(self.words[9], self.words[8], "x > 1"),)
        return Batch(self.words[7], "SELECT 1", self.table.key, names, names, (), "a = b", checks, names[1])

    @property
    def history(self) -> History:
        _, _, _, key, sequence, time, tracked, model, ignored, *names = self.words
        columns = {key: "string", sequence: "date", time: "date", tracked: "double", ignored: "string"}
        return History(
            model,
            (key,),
            sequence,
            time,
            columns,
            (tracked,),
            (ignored,),
            "md5('a')",
            MetaColumns(*names[:2]),
        )

    @property
    def properties(self) -> dict[str, str]:
        # They are listed in their order, which a hostile one would change.
        return {f"zz{self.words[10]}": self.words[11], "arctic.consumed": self.consumed}

    @property
    def consumed(self) -> str:
        return encode_consumed({self.words[10]: Consumed(self.words[8], self.words[11])})


def _unescaped(text: str) -> str:
    """A literal as Spark reads it (``unescapeSQLString``)."""
    known = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

    def value(found: re.Match[str]) -> str:
        code = found[1]
        if code[0] in "uU" and len(code) > 1:
            return chr(int(code[1:], 16))
        return chr(int(code, 8)) if len(code) == 3 else known.get(code, code)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)", value, text[1:-1], flags=re.DOTALL)


def _value(text: str) -> str:
    assert text[0] in "`'", text
    return text[1:-1].replace("``", "`") if text[0] == "`" else _unescaped(text)


def cut(sql: str) -> Iterator[tuple[Piece, str]]:
    for kind, text in pieces(sql):
        assert kind is not Piece.COMMENT, text
        if kind is Piece.CODE:
            # What begins and does not end would be code to the lexer.
            assert not set(text) & set("'`\";"), text
            assert not re.search(r"--|/\*|\$\{", text), text
        else:
            # Outside names, Spark would replace it before it reads the statement.
            assert text[0] == "`" or "${" not in text, text
        yield kind, text if kind is Piece.CODE else _value(text)


def check(tame: str, hostile: str, words: tuple[str, ...]) -> None:
    """Two statements are the same but for the words, and each word is read back."""
    left, right = list(cut(tame)), list(cut(hostile))
    assert [kind for kind, _ in left] == [kind for kind, _ in right]
    for (kind, before), (_, after) in zip(left, right, strict=True):
        if kind is Piece.CODE:
            assert before == after
        else:
            check_value(before, after, words)


def check_value(before: Any, after: Any, words: tuple[str, ...]) -> None:
    if not isinstance(before, str):
        check_parts(before, after, words)
    elif after != translated(before, words):
        if before[:1] in "{[":
            check_parts(json.loads(before), json.loads(after), words)
        else:
            check(before, after, words)  # SQL inside a literal: an argument of a procedure, a partition field


def check_parts(before: Any, after: Any, words: tuple[str, ...]) -> None:
    assert type(before) is type(after)
    if isinstance(before, dict):
        assert [translated(name, words) for name in before] == list(after)
        before, after = list(before.values()), list(after.values())
    if isinstance(before, list):
        for left, right in zip(before, after, strict=True):
            check_value(left, right, words)
    else:
        assert before == after


def translated(text: str, words: tuple[str, ...]) -> str:
    known = dict(zip(NAMES, words, strict=True))
    return re.sub("|".join(NAMES), lambda found: known[found[0]], text)


KNOWN_COLUMNS = {11: {"a": "bigint"}, 12: {"a": "bigint"}}
RANGE = LogRange(frozenset({7, 8}), ((21, frozenset({7, 8})),))


def statements(world: World) -> dict[str, str]:
    table, batch, properties = world.table, world.batch, world.properties
    word = world.words
    update = Modification("", word[10], (Clause("matched", "update", "a = b", {table.key[0]: "c"}),))
    merge = Modification("", word[10], update.clauses, "src", word[11], "a = b")
    staged = overwrite.StagedBatch(5, 6)
    other = table.name.sibling(word[10])
    return {
        "events": events_sql(world.history, batch),
        "intervals": intervals(world.history, "SELECT 1", "SELECT 2"),
        "affected": affected_keys_sql(world.history, "staged", ["a = b"]),
        "insert": write.insert_into_change(table, batch, 7, properties, word[10]),
        "fill_base": write.fill_base(table, batch, properties),
        "fill_tombstones": write.fill_tombstones(table, batch, 7, properties),
        "mark_buckets": write.mark_buckets(table, properties),
        "create_branch": create_branch(other, word[10], 5),
        "drop_branch": drop_branch(other, word[10]),
        "fast_forward": fast_forward(other, word[10]),
        "create_base": create.create_base(table, 1, properties, word[9]),
        "order_base": create.order_base(table),
        "create_change": create.create_change(table, 1),
        "keep_statistics": create.keep_statistics(table),
        "publish_view": create.publish_view(table, word[9], properties),
        "set_retention": create.set_retention(table),
        "add_columns": create.add_columns(other, [((column.name,), column.type) for column in table.columns]),
        "drop_columns": create.drop_columns(other, [(name,) for name in table.column_names]),
        "widen_column": create.widen_column(other, (table.columns[2].name,), table.columns[2].type),
        "drop_not_null": create.drop_not_null(other, [(column,) for column in table.column_names]),
        "comment_columns": create.comment_columns(other, {word[10]: word[11]}),
        "comment_table": create.comment_table(other, word[11]),
        "rename_table": create.rename_table(table.base, other),
        "drop_table": create.drop_table(other),
        "drop_view": create.drop_view(other),
        "merge_on_read": read.merge_on_read(table, VERSION),
        "tombstones_of": read.tombstones_of(table, VERSION),
        "changes": changes(table, VERSION, VERSION, RANGE, "both"),
        "difference": difference("SELECT 1", "SELECT 2", table.key, table.types, "both"),
        "appended_rows": read.appended_rows(table.base, 1, 2, other.identifier),
        "merge_changes": compact.merge_changes(table, 5, [1, 2], word[10]),
        "list_kept_rows": compact.list_kept_rows(table, 5),
        "note_nothing_to_trim": compact.note_nothing_to_trim(table, compact.NothingToTrim(5, 6)),
        "trim": compact.trim(table, [1, 2], True),
        "any_of": erasure.any_of(table.key, table.types, [(word[10], word[11])]),
        "check_literals": erasure.check_literals([erasure.KeyText(word[10], "string", word[11])]),
        "count_rows": erasure.count_rows(other, erasure.any_of(table.key, table.types, [word[10:12]]), True),
        "hide_rows": erasure.hide_rows(other, "a = b", table.key[0], True),
        "rewrite_files": erasure.rewrite_files(
            other, erasure.any_of(table.key, table.types, [word[10:12]]), True
        ),
        "rewrite_manifests": erasure.rewrite_manifests(other, 3),
        "split_manifests": erasure.split_manifests(other, 8, {word[10]: word[11]}),
        "join_manifests": "\n".join(erasure.join_manifests(other, word[11])),
        "carry_on": erasure.empty_commit_sql(other, table.column_names, properties),
        "expire_before": erasure.expire_before(other, 5),
        "note_consumed": savepoint.note_consumed(other, 5, {word[9]: Consumed(word[10], word[11])}),
        "forget_consumed": savepoint.forget_consumed(other, 5),
        "check_keys": adoption.check_keys(other, 5, table.key),
        "describe": adoption.describe(table, other, 5, {}),
        "mark_adopted": adoption.mark_adopted(other, table.column_names, properties),
        "forget": "\n".join(adoption.undo_description(other, {f"arctic.{word[10]}": "x"})),
        "replace_interval": replace.replace_interval(table, batch, VERSION, "a = b", 7, properties, word[10]),
        "replace_rows": overwrite.replace_rows(
            table, staged, VERSION, [(word[10], word[11])], 7, properties, word[10]
        ),
        "complete_rows": partial.fill_kept_columns(
            table, batch, table.column_names, VERSION, 7, properties, word[10]
        ),
        "roll_back": rollback.insert_difference(table, "SELECT 1", "SELECT 2", 7, properties, word[10]),
        "difference_from": upserts_from_difference.difference_from(
            table, "SELECT 1", VERSION, {}, "SELECT 2"
        ),
        "replay": insert_replay(table, [7], RANGE, {}, table, RANGE, {}, 9, properties, word[10]),
        "update": modify_rows(table, update, VERSION, 7, properties, word[10], word[9]),
        "merge": modify_rows(table, merge, VERSION, 7, properties, word[10], word[9]),
        "checked": checked_select(
            "SELECT 1", table.column_names, batch.checks, table.key, table.key[0], word[9]
        ),
        "renew": renew_statement(table, 5),
        "partition": partition_expression(
            f"truncate(3, {quote(word[10])})", "lake", "m.", {word[10]: "string"}
        )[0],
        "field": partition_field(f"bucket(3, {quote(word[10])})"),
        "relation": ArcticRelation.create("lake", word[1], word[2]).on_branch(word[10]).render(),
        "adapter": ArcticAdapter.string_literal(word[10]) + ArcticAdapter.quote(word[11]),
        "of_the_catalog": quoted(*word[:3]),
        "bound": literals.literal(word[10]) + literals.literal(word[11]),
    }


MADE = statements(World(NAMES))


def distinct(words: list[str]) -> bool:
    return len({word.lower().strip() for word in words}) == len(words) and all(word.strip() for word in words)


@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(HOSTILE, min_size=12, max_size=12).filter(distinct))
def test_no_statement_takes_a_word_for_anything_but_itself(words: list[str]) -> None:
    for what, sql in statements(World(tuple(words))).items():
        assert sql, what
        check(MADE[what], sql, tuple(words))


@pytest.mark.parametrize("word", KNOWN)
def test_the_usual_suspects(word: str) -> None:
    words = tuple(f"{word}{number}" for number in range(12))
    for what, sql in statements(World(words)).items():
        check(MADE[what], sql, words)


@settings(deadline=None)
@given(HOSTILE)
def test_a_table_is_read_back_from_its_properties(word: str) -> None:
    words = tuple(f"{word}{number}" for number in range(12))
    table = World(words).table
    assert from_properties(table.name, table.to_properties(), table.columns) == table


@given(HOSTILE)
def test_a_literal_and_a_name_are_read_back(word: str) -> None:
    assert _value(literal(word)) == _value(literals.literal(word)) == _value(quote(word)) == word
