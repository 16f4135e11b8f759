"""Text that sqlglot, or a plan that puts expressions elsewhere, takes for something else than Spark does.

What can be said in a way that both read alike is said so. For the rest there is no plan: it is looked for
before names are resolved, since nothing of it is left to be seen after that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from dbt_arctic.planner.functions import SESSION, TIME, function_name, is_aggregate, kind_of
from dbt_arctic.planner.moment import TIMES
from dbt_arctic.planner.reasons import CannotPlan, line_of

_LIST = "list the columns under names of their own in a subquery before it"


def said_alike(tree: exp.Query) -> exp.Query:
    """The tree with what means the same to both.

    :raises CannotPlan: something in it does not.
    """
    for check in (_stars, _joins, _aliases_below, _aliases_in_having, _operators, _calls, _values):
        check(tree)
    made = tree.copy()
    _intervals(made)
    _field_names(made)
    _parameters(made)
    return made


def _refused(what: str, fix: str, where: exp.Expr) -> CannotPlan:
    return CannotPlan("unsupported", what, fix, line_of(where))


# What is refused


def _stars(tree: exp.Query) -> None:
    """In a function it means the columns of the relations here; a plan has others in their place."""
    for star in tree.find_all(exp.Star):
        inside = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
        if isinstance(inside, exp.Select) or isinstance(star.parent, exp.Count):
            continue
        raise _refused("* inside a function", "list the columns", star)


def _joins(tree: exp.Query) -> None:
    """After a RIGHT or FULL JOIN, Spark joins by what stands for both columns; sqlglot by the first."""
    for node in tree.walk():
        outer = False
        for join in node.args.get("joins") or []:
            natural = (join.method or "").upper() == "NATURAL"
            if outer and (natural or join.args.get("using")):
                raise _refused("USING after a RIGHT or FULL JOIN", "write ON", join)
            outer = outer or (join.side or "").upper() in ("RIGHT", "FULL")


def _aliases(select: exp.Select) -> set[str]:
    """Names that a SELECT gives to something else than a column of that name."""
    return {
        item.alias.lower()
        for item in select.expressions
        if isinstance(item, exp.Alias)
        and not (isinstance(item.this, exp.Column) and item.this.name.lower() == item.alias.lower())
    }


def _plain_columns(*parts: exp.Expr | None) -> Iterator[exp.Column]:
    return (one for part in parts if part is not None for one in part.find_all(exp.Column) if not one.table)


def _aliases_below(tree: exp.Query) -> None:
    """Spark's WHERE knows no alias of its SELECT: in a subquery, such a name is of the query around it."""
    for select in tree.find_all(exp.Select):
        parent = select.parent
        while isinstance(parent, exp.SetOperation | exp.Paren | exp.Subquery):
            if isinstance(parent, exp.Subquery) and isinstance(parent.parent, exp.From | exp.Join):
                break
            parent = parent.parent
        if parent is None or isinstance(parent, exp.CTE | exp.Subquery):
            continue
        given = _aliases(select)
        for found in _plain_columns(select.args.get("where")):
            if found.name.lower() in given:
                what = f"{found.name}, which is a name of the subquery's SELECT, in its WHERE"
                raise _refused(what, "qualify the column by its relation", found)


def _aliases_in_having(tree: exp.Query) -> None:
    """Inside an aggregate, Spark takes a name of HAVING for a column of FROM first."""
    for select in tree.find_all(exp.Select):
        having, given = select.args.get("having"), _aliases(select)
        if having is None or not given:
            continue
        for call in having.find_all(exp.Anonymous, exp.Filter):
            if isinstance(call, exp.Anonymous) and not is_aggregate(call):
                continue
            for found in _plain_columns(call):
                if found.name.lower() in given:
                    what = f"{found.name}, which is a name of the SELECT, in an aggregate of HAVING"
                    raise _refused(what, "qualify the column by its relation", found)


_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)


def _operators(tree: exp.Query) -> None:
    for found in tree.find_all(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Array, exp.List, exp.Collate):
        if isinstance(found, exp.Collate):
            what = "a collation: which of several equal texts stands for a group depends on their order"
            raise _refused(what, "compare by lower() or upper()", found)
        if isinstance(found, exp.Array | exp.List):
            raise _refused("array(...)[i]", "write element_at, or parentheses around the array", found)
        if isinstance(found.this, _BITS):
            raise _refused("a shift beside & | ^", "put parentheses around it", found)


def _calls(tree: exp.Query) -> None:
    for found in tree.find_all(exp.Anonymous):
        name = found.name.lower()
        if isinstance(found.parent, exp.Dot) and found.parent.expression is found:
            what = f"{found.parent.sql()}: a function of a schema is a user's own"
            raise CannotPlan("unknown-function", what, "use built-in functions", line_of(found))
        if name == "collate":
            what = "a collation: which of several equal texts stands for a group depends on their order"
            raise _refused(what, "compare by lower() or upper()", found)
        if name == "grouping_id" and not found.expressions and _has_several_factors(found):
            raise _refused("grouping_id() of several ROLLUP, CUBE or columns", "name its columns", found)
        if name == "arrays_zip" and not all(isinstance(one, exp.Literal) for one in found.expressions):
            raise _refused("arrays_zip(), whose fields have the names of columns", _LIST, found)


def _has_several_factors(call: exp.Expr) -> bool:
    select = call.find_ancestor(exp.Select)
    group = select.args.get("group") if select is not None else None
    if group is None:
        return False
    listed = list(group.expressions)
    sets = [part for word in ("rollup", "cube", "grouping_sets") for part in group.args.get(word) or []]
    inside = [part for part in listed if isinstance(part, exp.Rollup | exp.Cube | exp.GroupingSets)]
    if len(sets) + len(inside) > 1:
        return True
    if inside:
        return len(listed) > 1
    # WITH ROLLUP, WITH CUBE and GROUPING SETS after a list are of that list.
    return bool(sets and listed and sets[0].expressions and not isinstance(sets[0], exp.GroupingSets))


def _values(tree: exp.Query) -> None:
    """The rows of VALUES are kept as they are written, so that nothing in them may differ between runs."""
    for values in tree.find_all(exp.Values):
        for found in values.walk():
            name = function_name(found)
            if isinstance(found, exp.Column):
                name = found.name.lower()
                bad = name in TIME | SESSION
            elif isinstance(found, exp.Literal):
                name, bad = found.name, found.is_string and TIMES.fullmatch(found.name.strip()) is not None
            else:
                bad = name is not None and (kind_of(name) != "scalar" or name == "unix_timestamp")
            if bad:
                raise _refused(f"{name} in VALUES", "select it", found)


# What is said in another way


def _intervals(tree: exp.Query) -> None:
    """``INTERVAL 1 DAY 2 HOURS`` is one value; sqlglot takes it for a sum, and leaves parentheses out."""
    for found in list(tree.find_all(exp.Add)):
        if _is_interval(found) and not _is_interval(found.parent) and not isinstance(found.parent, exp.Paren):
            found.replace(exp.Paren(this=found.copy()))


def _is_interval(node: exp.Expr | None) -> bool:
    if isinstance(node, exp.Add):
        return _is_interval(node.this) and _is_interval(node.expression)
    return isinstance(node, exp.Interval)


_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")


def _field_names(tree: exp.Query) -> None:
    """The fields of ``struct(a, b AS c)`` and ``(a, b)`` have the names of columns: a plan gives others."""
    for found in reversed(list(tree.find_all(exp.Anonymous, exp.Tuple))):  # those inside others first
        if isinstance(found, exp.Tuple):
            is_value = isinstance(found.parent, exp.Anonymous | exp.AggFunc | exp.Lambda | exp.Alias)
            is_value = is_value or (isinstance(found.parent, exp.Select) and found.arg_key == "expressions")
        else:
            is_value = found.name.lower() == "struct"
        if is_value:
            named = [part for place, one in enumerate(found.expressions, 1) for part in _field(one, place)]
            found.replace(exp.Anonymous(this="named_struct", expressions=named))
    for type_ in tree.find_all(exp.DataType):
        if any(isinstance(field, exp.ColumnDef) for field in type_.expressions):
            type_.meta["case_sensitive"] = True  # sqlglot leaves the names in it as they are


def _field(value: exp.Expr, place: int) -> tuple[exp.Expr, exp.Expr]:
    name, of = f"col{place}", value
    if isinstance(value, exp.Alias):
        name, of = value.alias, value.this
    elif isinstance(value, exp.Identifier):  # a parameter of a lambda
        name = value.name
    elif isinstance(value, exp.Column) and not isinstance(value.this, exp.Star):
        name = value.name
        if name.lower() in TIME | SESSION:
            raise _refused("a field of struct() without a name", "name it with AS", value)
    elif isinstance(value, exp.Dot | exp.Bracket | exp.Star | exp.Column):
        raise _refused("a field of struct() without a name", "name it with AS", value)
    return exp.Literal.string(name), of.copy()


_OTHER_NAMES = (exp.Column, exp.ColumnDef, exp.Alias, exp.TableAlias)


def _parameters(tree: exp.Query) -> None:
    """Parameters of lambdas get names that nothing else has: no relation, and no column in other case."""
    lambdas = list(tree.find_all(exp.Lambda))
    for number, found in enumerate(reversed(lambdas)):  # those inside others first
        names = {parameter.name: f"_p{number}_{place}" for place, parameter in enumerate(found.expressions)}
        same = {name.lower() for name in names}
        for column in found.this.find_all(exp.Column):
            first = column.parts[0].name
            if first.lower() in same:
                what = f"{first}, a parameter of a lambda in other letters, or a name of a relation"
                raise _refused(what, "name the parameter otherwise", column)
        for part in list(found.find_all(exp.Identifier)):
            if part.name not in names or isinstance(part.parent, _OTHER_NAMES):
                continue
            if isinstance(part.parent, exp.Dot) and part.parent.expression is part:
                continue  # a field of that name
            part.replace(exp.to_identifier(names[part.name]))


__all__ = ["said_alike"]
