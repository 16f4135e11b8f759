"""Session functions without parentheses, and columns of the same name."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.spark.syntax import alias_columns, cte_of, dotted, from_of, names_given, plain_columns

_USER_FUNCTIONS = frozenset(["current_user", "session_user", "user"])
"""Functions of the session that need no parentheses."""


def refuse_session_functions(tree: exp.Query, schemas: Schemas) -> None:
    """Refuse names like ``user`` that sqlglot resolves as an alias of the SELECT.

    In WHERE and in other items of the SELECT, Spark calls the function, unless a relation has such a column.
    """
    for select in tree.find_all(exp.Select):
        given = names_given(select) & _USER_FUNCTIONS
        given = given - _columns_read(select, schemas) if given else given
        for found in plain_columns(select.args.get("where"), *select.expressions) if given else ():
            if found.name.lower() in given:
                what = f"{found.name}, a function and the name of a column"
                raise refused(what, "qualify the column by its relation", found)


def _columns_read(select: exp.Select, schemas: Schemas, within: tuple[exp.Expr, ...] = ()) -> set[str]:
    """The columns of the relations in a SELECT's FROM, in lower case.

    :param within: the enclosing common table expressions, because one may be recursive.
    """
    relations = [from_of(select), *(join.this for join in select.args.get("joins") or [])]
    found: set[str] = set()
    for given in relations:
        relation = given
        while isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Subquery | exp.Table):
            relation = relation.this
        cte = cte_of(relation) if isinstance(relation, exp.Table) else None
        if isinstance(relation, exp.Subquery):
            found |= _columns_given(relation.this, schemas, within)
        elif cte is not None:
            found |= set() if cte in within else _columns_given(cte.this, schemas, (*within, cte))
        elif isinstance(relation, exp.Table):
            found |= {name.lower() for name, _ in schemas.get(dotted(relation).lower(), ())}
        for one in (given, relation):
            found |= set() if one is None else {column.name.lower() for column in alias_columns(one)}
    for lateral in select.args.get("laterals") or []:
        found |= {column.name.lower() for column in alias_columns(lateral)}
    return found


def _columns_given(query: exp.Expr, schemas: Schemas, within: tuple[exp.Expr, ...]) -> set[str]:
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.SetOperation):
        return _columns_given(query.left, schemas, within)
    if not isinstance(query, exp.Select):
        return set()
    given = {item.alias_or_name.lower() for item in query.expressions}
    return given | _columns_read(query, schemas, within) if query.is_star else given
