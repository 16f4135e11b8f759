"""The point in time of a run: one value in the whole run, and another one at the last refresh.

A call of ``current_date()`` becomes a ``TimeFunction`` with its current value and that of the model's last
refresh. A row may enter or leave a condition with such a call without being changed. These rows are found by
evaluating the condition for both values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from dbt_arctic.errors import ConfigError
from dbt_arctic.planner.algebra.columns import expressions
from dbt_arctic.planner.algebra.operators import Node, walk
from dbt_arctic.planner.reasons import at_line, line_of
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.spark.function_types import (
    OF_STRINGS,
    OF_STRINGS_OR_BYTES,
)
from dbt_arctic.planner.spark.functions import SESSION, TIME, function_name, kind_of
from dbt_arctic.planner.typing.inference import Types, type_of
from dbt_arctic.planner.typing.inferred_type import TIMESTAMP, category_of, is_known, may_hold_moments

TIMES = re.compile(r"(now|today|tomorrow|yesterday)(\s*[^a-z\s]\S*|\s+\S+)?", re.IGNORECASE)
"""Strings that Spark casts to a point in time relative to now."""
OF_TODAY = re.compile(r"T\d{1,2}|T?\d{1,2}:\d{1,2}(:.*)?", re.IGNORECASE)
"""Strings that Spark casts to a timestamp of the current day."""
_COMPARED = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")

DATE = frozenset(["current_date", "curdate"])
KNOWN = DATE | {"current_timestamp", "now"}
"""Functions that are replaced by a literal."""


@dataclass(frozen=True)
class Clock:
    """The time of a run.

    :param date: in the session's time zone, for example ``2026-11-22``.
    :param instant: in UTC, for example ``2026-11-22 10:00:00.5Z``.
    """

    date: str
    instant: str

    @classmethod
    def at(cls, moment: datetime, zone: str) -> Clock:
        """The clock for a point in time.

        :param moment: with its time zone.
        :param zone: the session's time zone.
        """
        instant = moment.astimezone(timezone.utc)
        return cls(moment.astimezone(zone_of(zone)).date().isoformat(), f"{instant:%Y-%m-%d %H:%M:%S.%f}Z")

    def literal(self, function: str) -> str:
        """The literal for a function of time."""
        return f"DATE '{self.date}'" if function in DATE else f"TIMESTAMP_LTZ '{self.instant}'"


def zone_of(name: str) -> tzinfo:
    """A time zone by its name in Spark: a region, or an offset.

    >>> zone_of("+02:00").utcoffset(None), zone_of("GMT-3").utcoffset(None) == timedelta(hours=-3)
    (datetime.timedelta(seconds=7200), True)

    :raises ConfigError: the name is unknown.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-size if offset[1] == "-" else size)
    try:
        return timezone.utc if name == "Z" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ConfigError(
            f"the session's time zone {name} is not known",
            where="spark.sql.session.timeZone",
            why="the day of an automatic model's refresh depends on it",
            fix="name a region or an offset: 'Europe/Berlin', '+02:00'",
        ) from error


class Time(Protocol):
    """Supplies the SQL for a function of time."""

    def literal(self, function: str) -> str:
        """The value of a time function as a literal."""


class AsCalled:
    """The call itself, for SQL that is stored and run at other times."""

    def literal(self, function: str) -> str:
        """The call of the function."""
        return f"{function}()"


def calls(tree: exp.Query, columns: Container[str]) -> Iterator[tuple[exp.Anonymous | exp.Column, str]]:
    """The calls of functions of time, each with its name in lower case.

    :param columns: the columns of all relations, in lower case. Without parentheses, a column takes
        precedence over a function.
    """
    for found in tree.find_all(exp.Anonymous, exp.Column):
        assert isinstance(found, exp.Anonymous | exp.Column)
        name = found.name.lower()
        if name not in TIME:
            continue
        if isinstance(found, exp.Anonymous):
            if not found.expressions:
                yield found, name
        elif not found.table and not found.this.args.get("quoted") and name not in columns:
            yield found, name


def may_depend_on_time(tree: exp.Query) -> bool:
    """Whether a query may depend on the time or the user without calling a function of ``TIME``."""
    for found in tree.find_all(exp.Literal, exp.Anonymous, exp.Column):
        name = found.name.lower()
        if isinstance(found, exp.Literal):
            may = TIMES.fullmatch(found.name.strip()) is not None or is_of_today(found)
        elif isinstance(found, exp.Column):
            may = not found.table and name in SESSION
        else:
            # A user-defined function may depend on anything.
            may = kind_of(name) in ("session", "unknown") or (
                name == "unix_timestamp" and not found.expressions
            )
        if may:
            return True
    return False


def with_time_functions(tree: exp.Query, columns: Container[str], now: Time, last: Time | None) -> exp.Query:
    """The tree with calls of functions of time replaced by ``TimeFunction``.

    :param last: the time of the last refresh; ``None`` if it is unknown, or if there was none.
    """
    made = tree.copy()
    for call, name in list(calls(made, columns)):
        if name in KNOWN:
            before_ = last.literal(name) if last is not None else ""
            replaced = TimeFunction(this=now.literal(name), before=before_, call=f"{name}()")
            at_line(replaced, line_of(call))
            call.replace(replaced)
    return made


MAKE_TIMESTAMPS = re.compile(r"(try_)?(to_|make_)?timestamp(_ltz|_ntz)?|(timestamp|date)_?add")
"""Functions that return a timestamp."""
_OF_ONE_TYPE = frozenset(
    [
        *("any_value", "array", "coalesce", "first", "greatest", "ifnull", "lag", "last", "lead", "least"),
        *("map", "max", "min", "nullif", "nvl", "nvl2"),
    ]
)

_TAKE_STRINGS = (OF_STRINGS | OF_STRINGS_OR_BYTES) - {"date_format", "from_unixtime"} | {
    *("ascii", "collect_list", "collect_set", "concat", "contains", "count", "date", "endswith"),
    *("find_in_set", "get_json_object", "hash", "hour", "instr", "length", "levenshtein", "like", "locate"),
    *("md5", "minute", "named_struct", "position", "regexp_like", "rlike", "second", "split"),
    *("startswith", "struct", "to_date", "unhex", "xxhash64"),
}
"""Functions that keep a string argument as a string, or whose value does not depend on its date."""


_WITHOUT_TIMESTAMPS = OF_STRINGS | OF_STRINGS_OR_BYTES | {"concat"}
"""Functions that never return a timestamp, alone or nested, though their type may be unknown."""


def is_of_today(literal: exp.Expr, types: Types | None = None) -> bool:
    """Whether a string without a date becomes a timestamp of the current day, by a cast or a comparison.

    :param types: the types of columns. Without them, any column may be a timestamp.
    """
    if not (isinstance(literal, exp.Literal) and literal.is_string):
        return False
    if OF_TODAY.fullmatch(literal.name.strip()) is None:
        return False
    if types is None:
        return True
    here: exp.Expr = literal
    while isinstance(here.parent, exp.Paren):
        here = here.parent
    parent = here.parent
    if isinstance(parent, exp.Cast):
        return type_of(parent) == TIMESTAMP
    name = None if parent is None else function_name(parent)
    if name is not None and name not in _OF_ONE_TYPE:
        return name not in _TAKE_STRINGS
    others: list[exp.Expr] = []
    shares_type = isinstance(parent, (*_COMPARED, exp.Add, exp.Sub)) or name in _OF_ONE_TYPE
    if parent is not None and shares_type:
        others = list(parent.iter_expressions())
    elif isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) and here.arg_key == "this":
        others = [parent.parent.this]
    elif isinstance(parent, exp.Case) and here.arg_key == "this":
        others = [branch.this for branch in parent.args["ifs"]]
    elif isinstance(parent, exp.Tuple):
        # Each element is compared with the one at the same position of another tuple.
        whole = parent.find_ancestor(*_COMPARED)
        others = [] if whole is None else [*whole.find_all(exp.Column)]
    elif isinstance(parent, exp.If | exp.Case):
        case = parent.parent if isinstance(parent.parent, exp.Case) else parent
        branches = case.args["ifs"] if isinstance(case, exp.Case) else [case]
        others = [branch.args["true"] for branch in branches]
        others += [one for one in (case.args.get("default"), case.args.get("false")) if one is not None]
    return any(one is not here and _may_be_timestamp(one, types) for one in others)


def _may_be_timestamp(value: exp.Expr, types: Types) -> bool:
    if isinstance(value, exp.Cast):
        return type_of(value) == TIMESTAMP
    known = types.of(value)
    if is_known(known):
        return category_of(known) == "timestamp"
    name = function_name(value)
    if (
        isinstance(value, exp.Case | exp.If | exp.Paren | exp.Window | exp.Add | exp.Sub)
        or name in _OF_ONE_TYPE
    ):
        return any(_may_be_timestamp(one, types) for one in value.iter_expressions())
    return _may_contain_timestamp(value, types)


def _may_contain_timestamp(value: exp.Expr, types: Types) -> bool:
    """Whether a value may be a timestamp, or contain one."""
    if isinstance(value, exp.Literal):
        # The schema of a JSON function.
        return "timestamp" in value.name.lower()
    known = types.of(value)
    if is_known(known) or isinstance(value, exp.Column):
        return may_hold_moments(known)
    name = function_name(value)
    if name in _WITHOUT_TIMESTAMPS:
        return False
    if name and MAKE_TIMESTAMPS.fullmatch(name):
        return True
    return any(_may_contain_timestamp(one, types) for one in value.iter_expressions())


def time_has_changed(*parts: exp.Expression | None) -> bool:
    """Whether an expression contains a function of time whose value has changed."""
    return any(
        call.args["before"] != call.this
        for part in parts
        if part is not None
        for call in part.find_all(TimeFunction)
    )


def reads_changed_time(node: Node) -> bool:
    """Whether the result of a query over unchanged rows may differ only because time passed."""
    for part in walk(node):
        subqueries = [
            one for subquery in getattr(part, "subqueries", ()) for one in (*subquery.links, subquery.value)
        ]
        if time_has_changed(*expressions(part), *subqueries):
            return True
    return False


def at_last_refresh(part: exp.Expression) -> exp.Expression:
    """A condition with the values of the last refresh."""

    def earlier(node: exp.Expression) -> exp.Expression:
        if isinstance(node, TimeFunction):
            return TimeFunction(this=node.args["before"], before=node.args["before"], call=node.args["call"])
        return node

    return part.copy().transform(earlier, copy=False) if time_has_changed(part) else part


def differs(values: Iterable[exp.Expression]) -> exp.Expression | None:
    """The condition that one of these values has changed since the last refresh; ``None`` if none can."""
    made: exp.Expression | None = None
    for value in dict.fromkeys(value for value in values if time_has_changed(value)):
        sides = [exp.Paren(this=one) for one in (value.copy(), at_last_refresh(value))]
        other = exp.Not(this=exp.Paren(this=exp.NullSafeEQ(this=sides[0], expression=sides[1])))
        made = other if made is None else exp.Or(this=made, expression=other)
    return None if made is None else exp.Paren(this=made)


_OPPOSITE: dict[type, Callable[..., exp.Expression]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
}


def not_true(parts: tuple[exp.Expression, ...]) -> exp.Expression:
    """Whether one of these conditions is false or unknown, in a form that can prune files."""
    found = [_is_not_true(part) for part in parts]
    made = found[0]
    for other in found[1:]:
        made = exp.Or(this=made, expression=other)
    return exp.Paren(this=made)


def _is_not_true(part: exp.Expression) -> exp.Expression:
    while isinstance(part, exp.Paren):
        part = part.this
    opposite = _OPPOSITE.get(type(part))
    if opposite is None:
        known = exp.Anonymous(this="coalesce", expressions=[part.copy(), exp.Boolean(this=False)])
        return exp.Not(this=known)
    sides = [part.this, part.expression]
    made: exp.Expression = opposite(this=sides[0].copy(), expression=sides[1].copy())
    for side in sides:
        unknown = exp.Is(this=exp.Paren(this=side.copy()), expression=exp.Null())
        made = exp.Or(this=made, expression=unknown)
    return made
