"""Column lineage of a model's SQL, as far as the planner can read it. Runs no statement."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dbt_arctic.auto.inputs import analysed_query, find_inputs
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ConfigError, DamagedKeyedTable, UnknownRelation
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.table import ACTION
from dbt_arctic.planner.properties.column_lineage import Derivation, column_lineage
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.dialect import verbatim

_PULL = re.compile(r"incremental_pull\((.+)\)", re.DOTALL)
"""The comment with which the macro ``incremental_pull`` names what a subquery reads."""


class UpstreamColumn(NamedTuple):
    """A column of a table or view from which a value is computed."""

    relation: Name
    column: str
    derivation: Derivation


def find_column_lineage(
    catalog: CatalogReader, target: Name, sql: str, settings: str = ""
) -> Mapping[str, tuple[UpstreamColumn, ...]] | None:
    """By column of a query, the columns of the relations that it names, in the order of their names.

    ``None`` if the planner cannot read the query, or one of the relations.

    :param target: the relation of the model, whose schema completes names.
    :param settings: the session's settings that change the meaning of SQL.
    """
    if unsupported_setting(settings) is not None:
        return None
    try:
        inputs = find_inputs(catalog, target, _of_whole_tables(sql), {}, settings=settings)
    except (TokenError, ConfigError, DamagedKeyedTable, UnknownRelation):
        return None
    if inputs.tree is None:
        return None
    names = {key: upstream.name for key, upstream in inputs.upstreams.items()}
    names |= {key: view.name for key, view in inputs.views.items()}
    try:
        # Without the queries of views, their columns are where the lineage ends.
        query = analysed_query(replace(inputs, trees={}), None)
    except CannotPlan:
        return None
    return {
        column: tuple(
            UpstreamColumn(names[relation], name, derivation)
            for (relation, name), derivation in sorted(sources.items())
        )
        for column, sources in column_lineage(query).items()
    }


def _of_whole_tables(sql: str) -> str:
    """The query with each pull replaced by the table that it reads, which has the same columns."""
    made, end, depth = "", 0, 0
    for token in verbatim().tokenize(sql):
        if token.token_type == TokenType.L_PAREN:
            table = _pulled(token) if depth == 0 else None
            if table is not None:
                made += f"{sql[end : token.start]}(SELECT *, 'U' AS {quote(ACTION)} FROM {table})"
            depth += depth > 0 or table is not None
        elif token.token_type == TokenType.R_PAREN and depth:
            depth -= 1
            end = end if depth else token.end + 1
    return made + sql[end:]


def _pulled(parenthesis: Token) -> str | None:
    found = (_PULL.fullmatch(text.strip()) for text in parenthesis.comments)
    return next((one[1] for one in found if one is not None), None)


__all__ = ["UpstreamColumn", "find_column_lineage"]
