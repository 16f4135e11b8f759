"""Parts of a SELECT that have no operator, each with what can be written instead."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.reasons import CannotPlan, first_line
from dbt_arctic.planner.spark.functions import GENERATORS, function_name

_NOT_OF_SPARK = "leave it out: Spark does not know it"


def refused(what: str, fix: str, *where: exp.Expr | None) -> CannotPlan:
    """The error for a part of a query that has no operator.

    :param where: the cause. The following ones supply the line if it has none.
    """
    return CannotPlan("unsupported", what, fix, first_line(*where))


def refuse_recursive(with_: exp.Expression) -> None:
    """Refuse recursive common table expressions.

    :raises CannotPlan: a common table expression may read itself.
    """
    if with_.args.get("recursive"):
        what = "a recursive common table expression"
        fix = "join the table with itself, once for each level"
        raise CannotPlan("recursive", what, fix, first_line(with_.expressions[0].args["alias"], with_))


def refuse_clauses(select: exp.Select) -> None:
    """Refuse clauses of a SELECT that have no operator.

    :raises CannotPlan: a SELECT has a clause without an operator.
    """
    for clause in ("match", "connect", "start", "sample", "pivots", "into"):
        if select.args.get(clause):
            raise refused(clause.upper(), _NOT_OF_SPARK, select)
    for item in select.expressions:
        if (script := item.find(exp.QueryTransform)) is not None:
            what = "TRANSFORM, whose script may make anything of all rows"
            raise refused(what, "write it in SQL, or run the script outside the model", script)
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        fix = "select row_number() in a subquery, and ask for its value in WHERE"
        raise refused("DISTINCT ON", fix, distinct, select)


def refuse_generators(values: list[exp.Expression]) -> None:
    """Refuse generator functions in a select list.

    :raises CannotPlan: a function of a select list makes several rows of one.
    """
    for value in values:
        name = function_name(value.this if isinstance(value, exp.Aliases) else value)
        if name in GENERATORS:
            fix = "name its columns with AS; next to a window function or a group, use LATERAL VIEW"
            raise refused(f"{name}() in a select list", fix, value)


def refuse_part(relation: exp.Expression) -> None:
    """Refuse relations that are sampled, pivoted or read at another version.

    :raises CannotPlan: a relation has such a clause.
    """
    if relation.args.get("sample"):
        raise refused("TABLESAMPLE", "choose rows by a hash of their key in WHERE", relation)
    if pivots := relation.args.get("pivots"):
        if pivots[0].args.get("unpivot"):
            fix = "write stack() in a LATERAL VIEW, or UNION ALL"
            raise refused("UNPIVOT", fix, relation)
        fix = "write an aggregate over CASE WHEN for each value, with GROUP BY"
        raise refused("PIVOT", fix, *pivots, relation)
    if relation.args.get("when") or relation.args.get("version"):
        raise refused("a version of a table", "copy that version into a table, and read this", relation)


def no_relation(found: exp.Expression) -> CannotPlan:
    """The error for an item of FROM that has no operator."""
    name = function_name(found.this) if isinstance(found.this, exp.Expression) else None
    if name == "range":
        return refused("range() in FROM", "use LATERAL VIEW explode(sequence(...))", found)
    if name is not None:
        return refused(f"{name}() in FROM", "use LATERAL VIEW, or read a table or a view", found)
    return refused(f"{found.key.upper()} in FROM", "read a table, a view or a subquery", found)


def no_lateral(found: exp.Lateral) -> CannotPlan:
    """The error for an item after LATERAL that has no operator."""
    name = function_name(found.this)
    if name is None:
        return refused("a LATERAL subquery", "join with a grouped subquery instead", found)
    if not found.args.get("view"):
        return refused(f"LATERAL {name}()", f"write LATERAL VIEW {name}()", found)
    return refused(f"{name}() in a LATERAL VIEW", f"use one of {', '.join(sorted(GENERATORS))}", found)


def refuse_join(join: exp.Join) -> None:
    """Refuse joins that have no operator.

    :raises CannotPlan: a join has no operator.
    """
    if join.args.get("using") or join.method:
        raise refused(f"a {join.method or 'USING'} join", "write ON", join)
    if isinstance(join.this, exp.Lateral) and not isinstance(join.this.this, exp.Subquery):
        raise no_lateral(join.this)
