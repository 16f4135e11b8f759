"""Determinism: whether the rows that a query reads determine its result.

If they do not, an incremental refresh cannot be equal to a full refresh. A user may accept some of the
causes, and then also accepts this difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import Filter, Limit, Node, Project, UnionAll, Window, walk
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.frontend.computed_times import may_be_time
from dbt_arctic.planner.frontend.point_in_time import OF_TODAY, TIMES, is_of_today, time_has_changed
from dbt_arctic.planner.frontend.string_literals import labels, stays_text
from dbt_arctic.planner.frontend.time_columns import time_changes_some_rows
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.properties.average_types import WRITTEN, added_as_doubles, averaged
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.interchangeable_rows import ties_decide_nothing, used_of_windows
from dbt_arctic.planner.properties.order_independence import Identical, independent_of_order
from dbt_arctic.planner.properties.unique_keys import is_unique, unique_keys
from dbt_arctic.planner.properties.window_keys import windows_of_written_rows
from dbt_arctic.planner.reasons import CannotPlan, Reason, first_line, line_of
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.spark.functions import SUMS, function_name, kind_of
from dbt_arctic.planner.spark.syntax import core
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import BINARY, category_of, family_of

_CAUSES = {
    "random": ("random", "{} gives another value in each run", "compute it outside the model"),
    "session": ("session", "{} depends on the user or the session of the run", "pass it as a variable"),
    "time": ("time", "{} depends on when the model runs", "pass a date as a variable"),
    "unknown": ("unknown-function", "{} is not a built-in function of Spark", "use built-in functions"),
    "approximate": ("approximate", "{} promises no exact result", "use an exact aggregate"),
    "ordered": (
        "order-dependent",
        "{} depends on the order in which rows come",
        "sort what is collected, order the list or max_by() by the key of the rows, use min, max or a "
        "row_number over a unique order",
    ),
    "float": (
        "float-sum",
        "{} computes with floats: the last digits depend on the order of rows",
        "compute it from sums of decimals, or accept it",
    ),
}

_TIES = "{} depends on the order of rows that the ORDER BY leaves equal"
_UNIQUE = "end the ORDER BY with the key of the rows, set auto to {'ties': 'by_key'}, or accept it"
_NO_KEY = (
    "these rows have no known key: read a keyed table, groups, or the row that row_number() "
    "numbers 1, and order by the key; or accept it"
)

_OF_UNION = (
    "rows of two parts of the UNION ALL below may have one key: select another constant in each part, and "
    "end the ORDER BY with it and the key; or accept it"
)
_ENDS = frozenset({"first", "first_value", "last", "last_value", "max", "min"})

_FIRSTS = frozenset({"first", "first_value"})
_OF_PLACES = frozenset({"lag", "lead", "ntile", "row_number"})
"""Functions of the place of a row in the order."""

_PEERS = frozenset({"cume_dist", "dense_rank", "percent_rank", "rank"})
"""Window functions whose value is the same for all rows that are equal in the window's order."""


def require_determinism(
    node: Node,
    types: Mapping[str, str],
    facts: Facts,
    accept: frozenset[str] = frozenset(),
    key: frozenset[str] = frozenset(),
) -> None:
    """Check that a query's result is determined by the rows that it reads.

    :param types: the types of the columns of scans.
    :param key: columns that are unique in the result, because a duplicate is refused when it is written: to
        the model, or to the auxiliary view with all rows of which a LIMIT selects the first.

    :raises CannotPlan: a part of the query is not deterministic.
    """
    known = cache(lambda: Types(node, types))
    for error in _causes(node, types, facts, _limited_by(node, key)):
        _refuse(error, accept)
    for _, _, error in _tied(node, types, facts, key):
        _refuse(error, accept)
    for part in walk(node):
        # Values of subqueries are included.
        for call in (call for value in all_expressions(part) for call in value.find_all(exp.Expression)):
            name = function_name(call)
            if name not in SUMS:
                continue
            _refuse(float_sum(call, str(name), known()), accept)


def tied_windows(
    node: Node, types: Mapping[str, str], facts: Facts, key: frozenset[str] = frozenset()
) -> Iterator[tuple[Window, exp.Window]]:
    """The window functions that distinguish rows with equal sort keys, so that their result is arbitrary.

    :param key: see ``require_determinism``.
    """
    return ((window, item) for window, item, _ in _tied(node, types, facts, key) if is_any_choice(item))


def is_any_choice(item: exp.Expression) -> bool:
    """Whether the value for any order of equal rows is a right one. A frame of values has all of them."""
    assert isinstance(item, exp.Window)
    name = function_name(core(item.this)) or ""
    frame = item.args.get("spec")
    if frame is not None and str(frame.args.get("kind") or "").upper() == "ROWS":
        return True
    begins_first = frame is None or str(frame.args.get("start")) == "UNBOUNDED"
    return name in _OF_PLACES or (name in _FIRSTS and begins_first)


def _tied(
    node: Node, types: Mapping[str, str], facts: Facts, key: frozenset[str]
) -> Iterator[tuple[Window, exp.Window, CannotPlan]]:
    own = list(windows_of_written_rows(node, key)) if key else []
    used, same = cache(lambda: used_of_windows(node)), identical(node, types)
    for part in walk(node):
        if isinstance(part, Window):
            mine = next((names for one, names in own if one is part), None)
            tied = tied_functions(part, facts, same, mine)
            for item, error in tied:
                others = [one for one, _ in tied]
                if not ties_decide_nothing(part, item, others, used()[id(part)], facts, same):
                    yield part, item, error


def _limited_by(node: Node, key: frozenset[str]) -> tuple[Limit, frozenset[str]] | None:
    """The outermost LIMIT, if it is over all rows of a state, with the key in its columns."""
    names = key
    while isinstance(node, Project | Filter):
        if isinstance(node, Project):
            items = dict(node.items)
            below = {plain(items[name]) for name in names}
            if None in below:
                return None
            names = frozenset(name for name in below if name is not None)
        node = node.child
    return (node, names) if isinstance(node, Limit) and names else None


def depends_on_time(node: Node, types: Mapping[str, str], facts: Facts) -> Reason | None:
    """Why the result of a query may differ at another time, or for another user; ``None`` if it does not.

    Other causes of nondeterminism are ignored.
    """
    codes = ("time", "session", "unknown-function")
    return next((one.reason for one in _causes(node, types, facts) if one.reason.code in codes), None)


def depends_on_order(node: Node, types: Mapping[str, str], facts: Facts) -> bool:
    """Whether the result of a query may differ with the order in which an aggregate gets its rows."""
    return any(one.reason.code == "order-dependent" for one in _causes(node, types, facts))


def _refuse(error: CannotPlan | None, accept: frozenset[str]) -> None:
    if error is not None and error.reason.code.replace("-", "_") not in accept:
        raise error


def _causes(
    node: Node,
    types: Mapping[str, str],
    facts: Facts,
    limited: tuple[Limit, frozenset[str]] | None = None,
) -> Iterator[CannotPlan]:
    """The nondeterministic functions of a query, wherever they occur.

    :param limited: a LIMIT, and columns that are unique in its rows.
    """
    items = cache(lambda: labels(node))
    known = cache(lambda: Types(node, types))
    same = identical(node, types)
    for part in walk(node):
        own = limited[1] if limited is not None and limited[0] is part else None
        if isinstance(part, Limit) and not first_rows_are_known(part, facts, same, own):
            line = first_line(part.limit, part.offset, *part.order)
            what = "a LIMIT whose ORDER BY leaves rows equal"
            yield CannotPlan("ties", what, _UNIQUE, line)
        for one in all_expressions(part):
            if time_has_changed(one) and not any(one is other for other in _changing_some_rows(part)):
                call = next(called for called in one.find_all(TimeFunction))
                what = f"{call.args['call']} has a new value since the last refresh, and so has each row"
                yield CannotPlan("time", what, "pass a date as a variable", first_line(call, one))
        for expression in all_expressions(part):
            independent = (
                None if isinstance(part, Window) else independent_of_order(expression, part, facts, same)
            )
            yield from causes_in(expression, independent, types, items, known)


def _changing_some_rows(node: Node) -> Iterator[exp.Expression]:
    """The expressions with a function of time for which the rows that time changes are found."""
    if isinstance(node, Filter):
        yield from node.conditions
    elif isinstance(node, Project):
        yield from (value for _, value in node.items if time_changes_some_rows(value))


def identical(node: Node, types: Mapping[str, str]) -> Identical:
    """A test for expressions over the columns of a tree: whether values that compare equal are the same.

    Zeros of a float are not, nor strings that a collation takes for one.
    """
    known = cache(lambda: Types(node, types))

    def test(value: exp.Expression) -> bool:
        type_ = known().of(value)
        return category_of(type_) != "float" or type_ == BINARY or family_of(type_) == "string"

    return test


def causes_in(
    expression: exp.Expression,
    independent: Collection[int] | None,
    types: Mapping[str, str],
    items: Callable[[], set[int]],
    known: Callable[[], Types],
) -> Iterator[CannotPlan]:
    """The nondeterministic parts of one expression.

    :param independent: calls by ``id`` whose value does not depend on the row order; ``None`` for all
        calls: those of a window, whose order is checked separately.
    :param items: returns the literals that are only selected, as ``labels`` finds them.
    :param known: returns the types of all columns, not only of those of scans.
    """
    for found in expression.walk():
        name = function_name(found)
        kind = kind_of(name) if name is not None else "scalar"
        text = found.name.strip() if isinstance(found, exp.Literal) and found.is_string else ""
        if TIMES.fullmatch(text) and not stays_text(found, types, items()):
            what = f"'{found.name}', which is interpreted as a time,"
            yield _of_time(what, found)
        if OF_TODAY.fullmatch(text) and is_of_today(found, known()):
            yield _of_time(f"'{found.name}', which is a time of today,", found)
        if may_be_time(found, known):
            yield _of_time(f"{found.sql(dialect='spark')}, which may be interpreted as a time,", found)
        if special := _special(found, name):
            yield special
        if kind not in _CAUSES or (kind == "ordered" and (independent is None or id(found) in independent)):
            continue
        code, what, fix = _CAUSES[kind]
        yield CannotPlan(code, what.format(f"{name}()"), fix, first_line(found, expression))


def _special(found: exp.Expr, name: str | None) -> CannotPlan | None:
    """Functions that look like scalar functions, but are not deterministic."""
    arguments = sum(1 for _ in found.iter_expressions())
    if name == "unix_timestamp" and not arguments:
        return _of_time("unix_timestamp()", found)
    if name == "session_window" or (name == "window" and arguments > 2):
        what = f"{name}() assigns a row to a window that depends on other rows, or to several"
        return refused(what, "number the windows with window functions", found)
    if name == "window":
        what = "window() leaves out rows without a time"
        return refused(what, "use date_trunc()", found)
    return None


def _of_time(what: str, found: exp.Expr) -> CannotPlan:
    code, text, fix = _CAUSES["time"]
    return CannotPlan(code, text.format(what), fix, line_of(found))


def first_rows_are_known(
    node: Limit, facts: Facts, same: Identical, own: frozenset[str] | None = None
) -> bool:
    """Whether the first rows of an order are determined.

    They are if rows that are equal in the order are equal in all columns, or if the order is unique.

    :param same: whether values of an expression that compare equal are identical.
    :param own: columns that identify the rows for another reason.
    """
    named = {plain(part.this) for part in node.order if isinstance(part, exp.Ordered)}
    keys = frozenset() if own is None else frozenset({own})
    if named >= set(node.child.output) and all(same(column(name)) for name in node.child.output):
        return True
    return is_unique(node.child, named, facts, keys)


def tied_functions(
    node: Window, facts: Facts, same: Identical, own: frozenset[str] | None = None
) -> list[tuple[exp.Window, CannotPlan]]:
    """The functions that depend on the order of rows that their window leaves equal, each with its error.

    :param same: whether values of an expression that compare equal are identical.
    :param own: columns that identify the rows of the window for another reason.
    """
    found = []
    for _, item in node.items:
        assert isinstance(item, exp.Window)
        error = _ties(item, node, facts, same, own)
        if error is not None:
            found.append((item, error))
    return found


def _ties(
    item: exp.Window, node: Window, facts: Facts, same: Identical, own: frozenset[str] | None
) -> CannotPlan | None:
    call = item.this
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        call = call.this
    name = function_name(call) or ""
    frame = item.args.get("spec")
    by_row = frame is not None and str(frame.args.get("kind") or "").upper() == "ROWS"
    if name in _PEERS or not (by_row or kind_of(name) in ("ranking", "ordered")):
        return None
    if (
        frame is not None
        and by_row
        and str(frame.args.get("start")) == str(frame.args.get("end")) == "UNBOUNDED"
        and kind_of(name) not in ("ranking", "ordered")
    ):
        return None
    order = item.args.get("order")
    ordered = [part.this for part in order.expressions] if order is not None else []
    named = {plain(part) for part in (*node.partition, *ordered)}
    if is_unique(node.child, named, facts, frozenset() if own is None else frozenset({own})):
        return None
    if _is_of_order(item, call, name, named, same):
        return None
    shown = call.meta.get(WRITTEN, name)
    return CannotPlan("ties", _TIES.format(f"{shown}()"), _advice(node.child, facts), line_of(item))


def _is_of_order(
    item: exp.Window, call: exp.Expression, name: str, named: Collection[str | None], same: Identical
) -> bool:
    """Whether rows that are equal in the window's order get the same value.

    This holds for the first or last value of an ordered column in a frame that ends at peer rows. It does not
    for floats: of 0.0 and -0.0, which are equal in an order, either may be the first.
    """
    frame = item.args.get("spec")
    arguments = list(call.iter_expressions())
    if name not in _ENDS or not arguments or item.find(exp.Filter) is not None:
        return False
    if frame is not None:
        ends = {str(frame.args.get(end) or "CURRENT ROW") for end in ("start", "end")}
        if not ends <= {"UNBOUNDED", "CURRENT ROW"}:
            return False
    return plain(arguments[0]) in set(named) - {None} and same(arguments[0])


def _advice(node: Node, facts: Facts) -> str:
    while isinstance(node, Project | Filter | Window):
        node = node.child
    if isinstance(node, UnionAll):
        without = [place for place, part in enumerate(node.children, 1) if not unique_keys(part, facts)]
        if without:
            return _NO_KEY.replace("these rows", f"part {without[0]} of the UNION ALL below")
        return _OF_UNION
    return _UNIQUE if unique_keys(node, facts) else _NO_KEY


def float_sum(call: exp.Expression, name: str, types: Types) -> CannotPlan | None:
    """The error for a sum of floats, whose last digits depend on the row order; ``None`` for exact types."""
    argument = next(iter(call.iter_expressions()), None)
    if argument is None:
        return None
    sort = types.category(argument)
    is_average = averaged(call) is not None
    doubles = added_as_doubles(argument, types) if is_average else None
    if doubles is None and sort in ("int", "decimal", "other", *(() if is_average else ("bigint",))):
        return None
    if sort in ("int", "bigint"):
        type_ = doubles or "BIGINT"
        what = f"{name}() of {type_} computes with floats: the last digits can depend on the order of rows"
    else:
        what = (
            f"{name}() of floats, or of a type that is not known: the last digits depend on the order of rows"
        )
    # A BIGINT has up to 19 digits. The sum of a decimal has ten more digits than its argument.
    exact_type = "DECIMAL(20, 0)" if sort in ("int", "bigint") else "DECIMAL(28, 6)"
    fix = f"write {name}(CAST(... AS {exact_type})), with as many digits as you need; or accept it"
    return CannotPlan("float-sum", what, fix, line_of(call))
