"""Parses UPDATE, DELETE and MERGE: where each clause begins and ends.

sqlglot's tokenizer finds the clauses. Their content is taken from the text unchanged, and Spark parses it as
a part of the generated statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.modify import Action, Kind

_HOW_TO = "the statements are shown in docs/how-to/change-rows.md"
_KINDS: tuple[tuple[tuple[str, ...], Kind], ...] = (
    (("NOT", "MATCHED", "BY", "SOURCE"), "not matched by source"),
    (("NOT", "MATCHED", "BY", "TARGET"), "not matched"),
    (("NOT", "MATCHED"), "not matched"),
    (("MATCHED",), "matched"),
)
_NOT_WORDS = {TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER}
_NOT_NAMES = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER}
_OPENING, _CLOSING = "([", ")]"
VERBS = ("UPDATE", "DELETE", "MERGE")


@dataclass(frozen=True)
class ParsedClause:
    """A WHEN or SET clause as it was written.

    :param values: expression text by column path; ``None`` for ``*``.
    """

    kind: Kind
    action: Action
    condition: str | None
    values: tuple[tuple[tuple[str, ...], str], ...] | None = ()


@dataclass(frozen=True)
class ParsedModification:
    """A statement on the table ``target`` (the parts of its name), split into its clauses."""

    verb: str
    prefix: str
    target: tuple[str, ...]
    alias: str | None
    clauses: tuple[ParsedClause, ...]
    source: str | None = None
    source_alias: str = ""
    on: str = ""


def verb_of(sql: str) -> str:
    """The verb of a statement in capitals. For a statement that begins with WITH, the verb after it.

    :raises ConfigError: there is none, or the text cannot be tokenized.
    """
    text = _Text(sql)
    at = text.find(("SELECT", "INSERT", *VERBS), 1) if text.word(0) == "WITH" else 0
    return text.word(at) if at is not None else "WITH"


def parse_modification(sql: str) -> ParsedModification:
    """Split an UPDATE, DELETE or MERGE into its clauses.

    :raises ConfigError: it is none of these, or a part of it cannot be parsed.
    """
    text = _Text(sql)
    start = 0
    if text.word(0) == "WITH":
        start = text.find(VERBS, 1) or 0
    prefix = text.between(0, start)
    verb = text.word(start)
    if verb == "UPDATE":
        target, at = text.name(start + 1)
        where = text.find(("WHERE",), at)
        set_at = text.require("SET", at)
        condition = None if where is None else text.between(where + 1, text.end)
        values = text.assignments(set_at + 1, text.end if where is None else where)
        clause = ParsedClause("matched", "update", condition, values)
        return ParsedModification(verb, prefix, target, text.alias(at, set_at), (clause,))
    if verb == "DELETE":
        target, at = text.name(text.require("FROM", start + 1, start + 1) + 1)
        where = text.find(("WHERE",), at)
        condition = None if where is None else text.between(where + 1, text.end)
        clause = ParsedClause("matched", "delete", condition)
        alias = text.alias(at, text.end if where is None else where)
        return ParsedModification(verb, prefix, target, alias, (clause,))
    if verb == "MERGE":
        return _parse_merge(text, start, prefix)
    raise ConfigError(
        f"{verb or 'this'} is not UPDATE, DELETE or MERGE",
        where=text.shown,
        fix=_HOW_TO,
    )


def _parse_merge(text: _Text, start: int, prefix: str) -> ParsedModification:
    target, at = text.name(text.require("INTO", start + 1, start + 1) + 1)
    using = text.require("USING", at)
    on = text.require("ON", using)
    alias = text.alias(at, using)
    first = text.require("WHEN", on)
    clauses = []
    begin: int | None = first
    while begin is not None:
        following = text.find(("WHEN",), begin + 1)
        clauses.append(_parse_when(text, begin, text.end if following is None else following))
        begin = following
    return ParsedModification(
        verb="MERGE",
        prefix=prefix,
        target=target,
        alias=alias,
        clauses=tuple(clauses),
        source=text.between(using + 1, on),
        source_alias=text.source_alias(using + 1, on),
        on=text.between(on + 1, first),
    )


def _parse_when(text: _Text, start: int, end: int) -> ParsedClause:
    then = text.require("THEN", start, before=end)
    head = [text.word(at) for at in range(start + 1, then)]
    words, kind = next((one for one in _KINDS if tuple(head[: len(one[0])]) == one[0]), ((), None))
    if kind is None:
        raise text.misunderstood(start, end, "a clause is WHEN [NOT] MATCHED [BY SOURCE] [AND ...] THEN ...")
    after = start + 1 + len(words)
    condition = None
    if after < then:
        if text.word(after) != "AND":
            raise text.misunderstood(
                start, end, "MATCHED must be followed by THEN, or by AND and a condition"
            )
        condition = text.between(after + 1, then)
    action = text.word(then + 1)
    if kind == "not matched":
        if action != "INSERT":
            raise text.misunderstood(start, end, "WHEN NOT MATCHED is followed by THEN INSERT")
        return ParsedClause(kind, "insert", condition, text.inserted(then + 2, end))
    if action == "DELETE" and then + 2 == end:
        return ParsedClause(kind, "delete", condition)
    if action == "UPDATE" and text.word(then + 2) == "SET":
        is_star = text.between(then + 3, end) == "*"
        if is_star and kind == "not matched by source":
            raise text.misunderstood(start, end, "a row that is not in the source has no source values")
        return ParsedClause(kind, "update", condition, None if is_star else text.assignments(then + 3, end))
    raise text.misunderstood(start, end, "after THEN comes UPDATE SET ... or DELETE")


class _Text:
    """The tokens of a statement. Positions are indexes of tokens."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        try:
            self._tokens: list[Token] = list(Spark().tokenize(sql))
        except SqlglotError as error:
            raise ConfigError("the statement cannot be parsed", where=self.shown, why=str(error)) from error
        while self._tokens and self._tokens[-1].token_type is TokenType.SEMICOLON:
            self._tokens.pop()
        self.end = len(self._tokens)
        if not self._tokens:
            raise ConfigError("there is no statement", fix="write UPDATE, DELETE, MERGE or SELECT")
        if any(token.token_type is TokenType.SEMICOLON for token in self._tokens):
            raise ConfigError("there are several statements", where=self.shown, fix="run one at a time")
        self._depths = self._measure()

    @property
    def shown(self) -> str:
        line = " ".join(self._sql.split())
        return line if len(line) <= 120 else line[:119] + "…"

    def _measure(self) -> list[int]:
        """The nesting depth of each token in brackets and CASE expressions."""
        depths, depth, cases = [], 0, 0
        for at, token in enumerate(self._tokens):
            word = self.word(at)
            if token.text in _CLOSING and word:
                depth -= 1
            depths.append(depth + cases)
            if token.text in _OPENING and word:
                depth += 1
            elif at and self._tokens[at - 1].token_type is TokenType.DOT:
                pass  # the name of a column, even if it is a keyword
            elif word == "CASE":
                cases += 1
            elif word == "END" and cases:
                cases -= 1
                depths[-1] -= 1
        return depths

    def word(self, at: int) -> str:
        """A keyword in capitals; empty for a quoted name, a string, a number, or past the end."""
        if at >= len(self._tokens) or self._tokens[at].token_type in _NOT_WORDS:
            return ""
        return self._tokens[at].text.upper()

    def find(self, words: Sequence[str], start: int, before: int | None = None) -> int | None:
        """The position of the first of some keywords outside of brackets."""
        end = self.end if before is None else before
        return next(
            (at for at in range(start, end) if self._depths[at] == 0 and self.word(at) in words), None
        )

    def require(self, word: str, start: int, last: int | None = None, before: int | None = None) -> int:
        """The position of a keyword that the statement must have.

        :param last: the last position where it may occur.
        """
        found = self.find((word,), start, before if last is None else last + 1)
        if found is None:
            raise self.misunderstood(0, self.end, f"{word} is missing")
        return found

    def between(self, start: int, end: int) -> str:
        """The text from one token up to another, exclusive."""
        if start >= end:
            return ""
        return self._sql[self._tokens[start].start : self._tokens[end - 1].end + 1]

    def name(self, at: int) -> tuple[tuple[str, ...], int]:
        """The parts of a name, and the position after it."""
        parts = []
        while at < self.end and self._tokens[at].token_type not in _NOT_NAMES:
            parts.append(self._tokens[at].text)
            at += 1
            if at >= self.end or self._tokens[at].token_type is not TokenType.DOT:
                return tuple(parts), at
            at += 1
        raise self.misunderstood(0, self.end, "the table name is missing")

    def alias(self, start: int, end: int) -> str | None:
        """The alias between the name of a table and the next clause."""
        if start < end and self.word(start) == "AS":
            start += 1
        if start == end:
            return None
        if end - start > 1:
            raise self.misunderstood(start, end, "only an alias may follow the table name")
        return self._tokens[start].text

    def source_alias(self, start: int, end: int) -> str:
        """The name of a relation's rows.

        It is the alias, with or without a list of columns, otherwise the relation's own name.
        """
        last = end - 1
        if self.word(last) == ")":
            opening = next((at for at in range(last - 1, start, -1) if self._depths[at] == 0), start)
            listed = opening > start and self.word(opening) == "("
            if not listed:
                return "_arctic_unnamed"
            last = opening - 1
            if self.word(last) == ")":
                return "_arctic_unnamed"
        return self._tokens[last].text

    def assignments(self, start: int, end: int) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Parse assignments: ``a = 1, t.b = f(x, y)``."""
        found = []
        for first, last in self._listed(start, end):
            parts, equals = self.name(first)
            if equals + 1 >= last or self._tokens[equals].token_type is not TokenType.EQ:
                raise self.misunderstood(first, last, "an assignment must have the form column = value")
            found.append((parts, self._value(equals + 1, last)))
        return tuple(found)

    def inserted(self, start: int, end: int) -> tuple[tuple[tuple[str, ...], str], ...] | None:
        """Parse the columns and values of an INSERT: ``(a, b) VALUES (1, 2)``; ``None`` for ``*``."""
        if self.between(start, end) == "*":
            return None
        values_at = self.find(("VALUES",), start, end)
        if values_at is None or self.word(start) != "(" or self.word(values_at - 1) != ")":
            raise self.misunderstood(start, end, "an insert is INSERT * or INSERT (columns) VALUES (values)")
        names = [self.name(first)[0] for first, _ in self._listed(start + 1, values_at - 1)]
        values = [self._value(*span) for span in self._listed(values_at + 2, end - 1)]
        if self.word(values_at + 1) != "(" or self.word(end - 1) != ")" or len(names) != len(values):
            given = f"{counted(len(names), 'column')} and {counted(len(values), 'value')}"
            raise self.misunderstood(start, end, f"there are {given}")
        return tuple(zip(names, values, strict=True))

    def _value(self, start: int, end: int) -> str:
        if end - start == 1 and self.word(start) == "DEFAULT":
            raise self.misunderstood(start, end, "columns have no default values; write NULL")
        return self.between(start, end)

    def _listed(self, start: int, end: int) -> list[tuple[int, int]]:
        """The items of a comma-separated list at its own depth."""
        if start >= end:
            raise self.misunderstood(start - 1, end + 1, "a list is empty")
        depth = self._depths[start]
        borders = [
            at
            for at in range(start, end)
            if self._tokens[at].token_type is TokenType.COMMA and self._depths[at] == depth
        ]
        spans = list(zip([start, *(at + 1 for at in borders)], [*borders, end], strict=True))
        if any(first >= last for first, last in spans):
            raise self.misunderstood(start, end, "an item of a list is empty")
        return spans

    def misunderstood(self, start: int, end: int, why: str) -> ConfigError:
        shown = " ".join(self.between(max(start, 0), min(end, self.end)).split()) or self.shown
        return ConfigError(
            "the statement is not supported",
            where=shown[:200],
            why=why,
            fix=_HOW_TO,
        )
