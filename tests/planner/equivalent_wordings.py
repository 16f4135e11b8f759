"""Random queries in other words: what the planner reads of them differs, and what they mean does not.

The result is that of the query as it was drawn. So the words need not be such that DuckDB knows them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import sqlglot
from sqlglot import exp

from tests.planner.inner_state import judge_with_state
from tests.planner.limit_queries import draw_limited, judge_limited
from tests.planner.oracle import Database, Verdict, judge
from tests.planner.random_queries import Case, draw
from tests.planner.random_tables import SCHEMAS
from tests.planner.state_queries import draw_kept
from tests.planner.sums_of_queries import draw_summed, judge_summed

OPERATORS = ("other words",)

_DRAWN = re.compile(r"\b[egknopqstuw]\d+\b")
"""The names that a drawn query gives: no two things in it have the same."""
_SUBQUERY = re.compile(r"(?<!FROM )(?<!JOIN )(?<!AS )(?<!^)(?<!UNION )\(SELECT")

_OF_TABLES = tuple(dict.fromkeys(column for columns in SCHEMAS.values() for column, _ in columns))
_OTHERS = (
    *(
        "date",
        "user",
        "value",
        "order",
        "year",
        "count",
        "sum",
        "left",
        "null",
        "case",
        "end",
        "all",
        "first",
    ),
    *("a b", "a.b", "é", "1st", "group", "timestamp", "interval", "window", "-", "it's"),
)
"""Names that need quotes, or might be taken for something else."""


def draw_worded(seed: int) -> Case:
    drawn, _ = _way(seed)
    return in_other_words(drawn(seed), random.Random(f"words/{seed}"))


def judge_worded(database: Database, case: Case) -> Verdict:
    """As a case is judged that is read as it was drawn."""
    _, judged = _way(case.seed)
    verdict = judged(database, case)
    if verdict.outcome == "wrong":
        verdict = replace(verdict, why=f"{verdict.why}\nin other words: {case.written}")
    return replace(verdict, met=verdict.met | {*OPERATORS})


_Way = tuple[Callable[[int], Case], Callable[[Database, Case], Verdict]]


def _way(seed: int) -> _Way:
    ways: tuple[_Way, ...] = (
        *[(draw, judge)] * 5,
        *[(draw_summed, judge_summed)] * 2,
        *[(draw_limited, judge_limited)] * 2,
        (draw_kept, judge_with_state),
    )
    return random.Random(f"worded/{seed}").choice(ways)


def in_other_words(case: Case, dice: random.Random) -> Case:
    """The case with ``written``, of which the columns have the names that are written there."""
    bare = dice.random() < 0.5
    text = _unqualified(case.sql) if bare else case.sql
    names = _names(text, dice, bare=bare)
    written = _called(_spaced(_worded(text, dice), dice), names, dice)
    renamed = {column: names.get(column, column) for column in case.columns}
    columns = tuple(renamed[column] for column in case.columns)
    return replace(case, written=written, columns=columns, key=tuple(renamed[one] for one in case.key))


def _names(text: str, dice: random.Random, *, bare: bool) -> dict[str, str]:
    """Other names for some of those that were given.

    What the text calls by its name alone does not get that of a table's column, which would be taken for it;
    and a relation not where a subquery could have such a column.
    """
    drawn = sorted({found[0] for found in _DRAWN.finditer(text)})
    relations = {found[1] for found in re.finditer(r"\b([etqw]\d+)\.", text)}
    others = list(_OTHERS)
    alike = [] if bare else list(_OF_TABLES)
    dice.shuffle(others)
    dice.shuffle(alike)
    made = {}
    for name in drawn:
        alone = re.search(rf"(?<!AS )(?<![.\w]){name}\b(?!\.)", text) is not None
        captured = name in relations and _SUBQUERY.search(text) is not None
        if alike and not alone and not captured and dice.random() < 0.5:
            made[name] = alike.pop()
        elif others and dice.random() < 0.3:
            made[name] = others.pop()
    return made


def _called(text: str, names: dict[str, str], dice: random.Random) -> str:
    """The text with these names, in quotes where they need some, and here and there in capitals."""

    def called(found: re.Match[str]) -> str:
        name = names.get(found[0], found[0])
        refers = text[: found.start()].endswith(".") or text[found.end() :].startswith(".")
        if refers and dice.random() < 0.1:
            name = name.upper()
        return f"`{name}`" if name.lower() in _OTHERS or dice.random() < 0.1 else name

    return _DRAWN.sub(called, text)


# Columns by their names alone


def _unqualified(sql: str) -> str:
    """The text without the names of relations, wherever a column's own name says which it is."""
    tree = sqlglot.parse_one(sql, dialect="spark")
    spans = sorted(_needless(tree), reverse=True)
    for start, end in spans:
        sql = sql[:start] + sql[end:]
    return sql


def _needless(tree: exp.Expr) -> Iterator[tuple[int, int]]:
    named = {cte.alias: cte.this for cte in tree.find_all(exp.CTE)}
    for column in tree.find_all(exp.Column):
        qualifier = column.args.get("table")
        if qualifier is not None and _says_enough(column, named):
            yield qualifier.meta["start"], column.this.meta["start"]


def _says_enough(column: exp.Column, named: dict[str, exp.Expr]) -> bool:
    select = column.parent_select
    while select is not None:
        sources = dict(_sources(select, named))
        own = column.table in sources
        if any(column.name in columns for alias, columns in sources.items() if alias != column.table):
            return False
        if own:
            # sqlglot needs the relation of columns that only the condition of a join uses.
            return column.table not in _hidden(select)
        select = select.parent_select
    return False


def _hidden(select: exp.Expr) -> set[str]:
    joins = select.args.get("joins") or ()
    return {join.this.alias for join in joins if join.kind in ("SEMI", "ANTI")}


def _sources(select: exp.Expr, named: dict[str, exp.Expr]) -> Iterator[tuple[str, Iterable[str]]]:
    joins = select.args.get("joins") or ()
    relations = [one.this for one in (select.args.get("from_"), *joins) if one is not None]
    for relation in relations:
        yield relation.alias_or_name, _columns(relation, named)
    for view in select.args.get("laterals") or ():
        yield view.alias, [column.name for column in view.args["alias"].columns]


def _columns(relation: exp.Expr, named: dict[str, exp.Expr]) -> Iterable[str]:
    if isinstance(relation, exp.Table):
        if relation.name in SCHEMAS:
            return [name for name, _ in SCHEMAS[relation.name]]
        return _columns(named[relation.name], named)
    query = relation.this if isinstance(relation, exp.Subquery) else relation
    if isinstance(query, exp.Subquery | exp.SetOperation):
        return _columns(query.this, named)
    if not query.is_star:
        return list(query.named_selects)
    return [name for _, columns in _sources(query, named) for name in columns]


# Words

_SYNONYMS = (
    (r"(?<!LEFT )(?<!RIGHT )(?<!FULL )(?<!SEMI )(?<!ANTI )JOIN", ("JOIN", "INNER JOIN")),
    (r"(LEFT|RIGHT|FULL) JOIN", (r"\1 JOIN", r"\1 OUTER JOIN")),
    (r"LEFT (SEMI|ANTI) JOIN", (r"LEFT \1 JOIN", r"\1 JOIN")),
    (r"EXCEPT", ("EXCEPT", "MINUS")),
    (r"(UNION|INTERSECT)(?= \()", (r"\1", r"\1 DISTINCT")),
    (r"<>", ("<>", "!=")),
    (r"<=>", ("<=>", "IS NOT DISTINCT FROM")),
    (r"coalesce\(", ("coalesce(", "nvl(", "IFNULL(")),
    (r"count\(\*\)", ("count(*)", "COUNT( * )", "count(1)")),
    (r"([\w.]+) IS NULL", (r"\1 IS NULL", r"isnull(\1)", r"(\1 IS NULL)", r"\1 <=> NULL")),
    (r"([\w.]+) IS NOT NULL", (r"\1 IS NOT NULL", r"isnotnull(\1)", r"NOT \1 IS NULL")),
    (r"([\w.]+) NOT IN ", (r"\1 NOT IN ", r"NOT \1 IN ")),
    (r"([\w.]+) <> (\d+)", (r"\1 <> \2", r"NOT \1 = \2", r"NOT (\1 = \2)", r"\2 <> \1")),
    (r"([\w.]+) < (\d+)", (r"\1 < \2", r"\2 > \1", r"NOT \1 >= \2")),
    (r"([\w.]+) >= (\d+)", (r"\1 >= \2", r"\1 > \2 - 1", r"\1 BETWEEN \2 AND 9999")),
    (r"SELECT(?! DISTINCT)", ("SELECT", "SELECT", "SELECT ALL")),
    (r"(?<=\w) AS (?=[gknopqst]\d)", (" AS ", " ")),
    (r"GROUP BY \d+(?:, \d+)*", (r"\g<0>", "GROUP BY ALL")),
    (r"OVER (win\d)", (r"OVER \1", r"OVER (\1)")),
    (r"WINDOW (win1) AS ", (r"\g<0>", r"WINDOW \1 AS win0, win0 AS ")),
    (r"CAST\(([\w.]+) AS INT\)", (r"\g<0>", r"INT(\1)", r"\1::INT")),
)
_COMPARED = re.compile(r"(<=|>=|<>|!=|[<>=]) (\d+)\b(?! -)")
_NUMBERS = (
    *(r"\2", r"(\2)", r"+\2", r"'\2'", r"\2L", r"\2D", r"\2BD", r"\2.0", r"\2e0"),
    *(r"INT(\2)", r"\2::BIGINT", r"-(-\2)"),
)
_KEYWORD = re.compile(r"\b[A-Z]{2,}\b")
_SPACES = (*[" "] * 12, "\n", "\t", "  ", " /* it's; */ ", " -- a 'b'; \"\n", "/* ` */ ")
_BETWEEN = re.compile("(?<!GROUP)(?<!ORDER)(?<!PARTITION)(?<!GROUPING) ", re.IGNORECASE)


def _worded(text: str, dice: random.Random) -> str:
    for pattern, words in _SYNONYMS:
        text = re.sub(pattern, partial(_reworded, dice=dice, words=words, known={}), text)
    numbers = tuple(rf"\1 {number}" for number in _NUMBERS)
    text = _COMPARED.sub(partial(_reworded, dice=dice, words=numbers, known={}), text)
    lower = dice.random()
    return _KEYWORD.sub(lambda found: found[0].lower() if dice.random() < lower else found[0], text)


def _reworded(
    found: re.Match[str], dice: random.Random, words: tuple[str, ...], known: dict[str, str]
) -> str:
    """The same in the same words: what is selected and what groups have in common is one expression."""
    return found.expand(known.setdefault(found[0], dice.choice(words)))


def _spaced(text: str, dice: random.Random) -> str:
    if dice.random() < 0.5:
        return text
    # What is one keyword to a parser has nothing but blanks inside.
    return _BETWEEN.sub(lambda _: dice.choice(_SPACES), text)
