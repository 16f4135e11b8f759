"""Queries of views that take the fields of structs by name, see ``adapter/view_columns.py``."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.keyed.names import BY_NAME


def with_fields_by_name(query: exp.Query) -> exp.Query:
    """The query of a view with the values by name only, which are right for each order of the fields.

    In the text, Spark chooses between such a value and the column itself, which is equal and faster to read.

    >>> from dbt_arctic.planner.frontend.parse import parse
    >>> choice = "IDENTIFIER(IF(typeof(`s`) = 'struct<a:int>', '`s`', '`arctic_by_name_1`')) AS `s`"
    >>> with_fields_by_name(parse(f"SELECT {choice} FROM t")).sql("spark")
    'SELECT `arctic_by_name_1` AS `s` FROM t'
    """
    for call in list(query.find_all(exp.Anonymous)):
        if call.name.upper() == "IDENTIFIER" and isinstance(call.expressions[0], exp.If):
            other = call.expressions[0].args["false"]
            if isinstance(other, exp.Literal) and other.name.startswith(f"`{BY_NAME}"):
                call.replace(exp.column(other.name[1:-1], quoted=True))
    return query
