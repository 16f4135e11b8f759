"""Random queries as equivalent ones: conditions moved, joins in another order, subqueries named or inlined.

The planner reads the rewritten query. The result is that of the query as it was drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import sqlglot
from sqlglot import exp

from tests.planner.chained_queries import draw_chained
from tests.planner.common_queries import draw_shaped
from tests.planner.oracle import Database, Verdict, judge
from tests.planner.random_queries import Case, draw

OPERATORS = ("moved conditions", "reordered joins", "inlined subqueries", "named subqueries")
_OTHER = 1_000_003


def draw_rewritten(seed: int) -> Case:
    """The first query from the seed on that can be rewritten in one of these ways."""
    dice = random.Random(f"rewritten/{seed}")
    drawn = dice.choice([draw, draw, draw_shaped, draw_chained])
    wanted = dice.choice([OPERATORS[0], *OPERATORS])
    place = seed
    while True:
        case = drawn(place)
        tree = sqlglot.parse_one(case.sql, dialect="spark")
        if _HOW[wanted](tree, dice):
            done = {wanted, *(name for name in OPERATORS if dice.random() < 0.5 and _HOW[name](tree, dice))}
            written = tree.sql(dialect="spark")
            return replace(case, seed=seed, written=written, operators=frozenset(done))
        place += _OTHER
        drawn = dice.choice([draw, draw_chained])


def judge_rewritten(database: Database, case: Case) -> Verdict:
    verdict = judge(database, case)
    if verdict.outcome == "wrong":
        return replace(verdict, why=f"{verdict.why}\nrewritten: {case.written}")
    return verdict


def _joins(select: exp.Select) -> list[exp.Join]:
    return select.args.get("joins") or []


def _is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER") and join.args.get("on") is not None


def _selects(tree: exp.Expr) -> list[exp.Select]:
    """The selects with inner joins alone, whose conditions may stand in ON or in WHERE."""
    return [
        one
        for one in tree.find_all(exp.Select)
        if _joins(one) and all(map(_is_inner, _joins(one))) and not one.args.get("laterals")
    ]


def _moved(tree: exp.Expr, dice: random.Random) -> bool:
    """Conditions of inner joins in WHERE, or those of WHERE in the last join."""
    done = False
    for select in _selects(tree):
        last, where = _joins(select)[-1], select.args.get("where")
        if where is not None and where.find(exp.Query) is None and dice.random() < 0.5:
            last.set("on", exp.and_(last.args["on"].copy(), where.this.copy()))
            select.set("where", None)
            done = True
        elif dice.random() < 0.8:
            conditions = [join.args["on"].copy() for join in _joins(select)]
            for join in _joins(select):
                join.set("on", None)
                join.set("kind", "CROSS")
            own = [] if where is None else [where.this.copy()]
            select.set("where", exp.Where(this=exp.and_(*own, *conditions)))
            done = True
    return done


def _reordered(tree: exp.Expr, dice: random.Random) -> bool:
    """The relations of inner joins in another order, and the sides of outer joins exchanged."""
    done = False
    for select in tree.find_all(exp.Select):
        joins = _joins(select)
        if not joins or select.is_star or select.args.get("laterals"):
            continue
        first = select.args["from_"]
        if len(joins) == 1 and joins[0].side in ("LEFT", "RIGHT") and joins[0].kind in ("", "OUTER"):
            joins[0].set("side", {"LEFT": "RIGHT", "RIGHT": "LEFT"}[joins[0].side])
        elif joins[0].side or joins[0].kind not in ("", "INNER") or joins[0].args.get("on") is None:
            continue
        mine, other = first.this.copy(), joins[0].this.copy()
        first.set("this", other)
        joins[0].set("this", mine)
        done = True
    return done


def _inlined(tree: exp.Expr, dice: random.Random) -> bool:
    """Common table expressions in the places where they are read."""
    done = False
    while (found := tree.args.get("with_")) is not None:
        cte = found.expressions[0]
        for table in [one for one in tree.find_all(exp.Table) if one.name == cte.alias]:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            table.replace(exp.Subquery(this=cte.this.copy(), alias=alias))
        rest = found.expressions[1:]
        tree.set("with_", exp.With(expressions=rest) if rest else None)
        done = True
    return done


def _named(tree: exp.Expr, dice: random.Random) -> bool:
    """Subqueries in FROM as common table expressions."""
    derived = [
        one
        for one in tree.find_all(exp.Subquery)
        if isinstance(one.parent, exp.From | exp.Join)
        and one.alias
        and one.find_ancestor(exp.CTE) is None
        # What is in a subquery of another place may name columns of the rows around it.
        and not isinstance(one.find_ancestor(exp.Exists, exp.In, exp.Lateral, exp.Where), exp.Expr)
    ]
    if not derived:
        return False
    known = tree.args.get("with_")
    named = list(known.expressions) if known is not None else []
    for number, one in enumerate(reversed(derived)):
        name = f"named_{number}"
        named.append(exp.CTE(this=one.this.copy(), alias=exp.TableAlias(this=exp.to_identifier(name))))
        one.replace(exp.Table(this=exp.to_identifier(name), alias=one.args["alias"].copy()))
    tree.set("with_", exp.With(expressions=named))
    return True


_HOW: dict[str, Callable[[exp.Expr, random.Random], bool]] = dict(
    zip(OPERATORS, (_moved, _reordered, _inlined, _named), strict=True)
)
