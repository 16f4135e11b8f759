"""Named windows: replaces each ``OVER w`` of ``WINDOW w AS (...)`` by the window itself.

The rules are Spark's: a name is defined in the SELECT that uses it, names are compared including case and
quotes, and a name may refer to another one that is defined explicitly. Spark's parser refuses a window that
refines another one, ``OVER (w ORDER BY x)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.reasons import CannotPlan, line_of

_PARTS = ("partition_by", "order", "spec")

Name = tuple[str, bool]
"""A name as written, and whether it is quoted."""


def with_written_windows(tree: exp.Query) -> exp.Query:
    """The tree with all named windows replaced by their definitions.

    :raises CannotPlan: Spark does not accept a name, or may resolve it outside of its SELECT.
    """
    if not any(
        _name(window) or isinstance(window.this, exp.Identifier) for window in tree.find_all(exp.Window)
    ):
        return tree
    made = tree.copy()
    for select in made.find_all(exp.Select):
        defined = _defined(select.args.get("windows") or [])
        select.set("windows", None)
        for window in _used(select):
            name = _name(window)
            if name is None:
                continue
            if name not in defined:
                what = f"{name[0]}, a window that its SELECT does not define"
                fix = "define it in the WINDOW clause of the SELECT, in the same case and quotes"
                raise CannotPlan("not-resolved", what, fix, line_of(window))
            _refuse_refined(window)
            _become(window, defined[name])
    left = next((window for window in made.find_all(exp.Window) if _name(window)), None)
    if left is not None:
        raise refused("a named window outside of a select list", "write the window after OVER", left)
    return made


def _defined(windows: list[exp.Window]) -> Mapping[Name, exp.Window]:
    """The windows of a WINDOW clause by name, each with its definition."""
    by_name: dict[Name, exp.Window] = {}
    for window in windows:
        name = _of(window.this)
        if name in by_name:
            raise refused(f"{name[0]}, a window that is defined twice", "leave one of them out", window)
        by_name[name] = window
    made = {}
    for name, window in by_name.items():
        other = _name(window)
        _refuse_refined(window)
        meant = by_name.get(other) if other is not None else window
        if meant is None or (meant is not window and _name(meant) is not None):
            raise refused(f"{name[0]}, which is not a defined window", "write the window out", window)
        made[name] = meant
    return made


def _refuse_refined(window: exp.Window) -> None:
    if _name(window) is not None and any(window.args.get(part) for part in _PARTS):
        raise refused("a window that refines another", "write the whole window: Spark has only names", window)


def _used(select: exp.Select) -> Iterator[exp.Window]:
    """The windows of a select list, without those of subqueries."""
    for item in select.expressions:
        for node in list(item.walk(prune=lambda one: isinstance(one, exp.Query | exp.Subquery))):
            if isinstance(node, exp.Window):
                yield node


def _become(window: exp.Window, defined: exp.Window) -> None:
    for part in _PARTS:
        value = defined.args.get(part)
        copied = [one.copy() for one in value] if isinstance(value, list) else value and value.copy()
        window.set(part, copied)
    window.set("alias", None)


def _name(window: exp.Window) -> Name | None:
    """The name of the window that a window refers to."""
    alias = window.args.get("alias")
    return None if alias is None else _of(alias)


def _of(identifier: exp.Expr) -> Name:
    return identifier.name, bool(identifier.args.get("quoted"))


__all__ = ["with_written_windows"]
