"""Parses SQL into a syntax tree in which each column is qualified by its relation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError, TokenError
from sqlglot.optimizer.qualify import qualify
from sqlglot.tokenizer_core import TokenType

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.frontend.duplicate_names import rename_duplicates
from dbt_arctic.planner.frontend.named_windows import with_written_windows
from dbt_arctic.planner.frontend.parser_differences import in_parser_terms
from dbt_arctic.planner.frontend.pivots_and_generators import with_written_relations
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.reasons import CannotPlan, Line, at_line, line_of
from dbt_arctic.planner.spark.aliases import rename_hidden
from dbt_arctic.planner.spark.dialect import verbatim, with_signs, with_suffixes
from dbt_arctic.planner.spark.functions import SESSION, TIME
from dbt_arctic.planner.spark.quantifiers import mark_quantifiers
from dbt_arctic.planner.spark.syntax import cte_of, dotted, is_bare
from dbt_arctic.planner.spark.token_differences import refuse_words

_GENERATORS = frozenset(
    [
        *("range", "stack", "explode", "explode_outer", "posexplode", "posexplode_outer"),
        *("inline", "inline_outer", "json_tuple", "sql_keywords"),
    ]
)
_SPELLED = "spelled"
_WITHOUT_PARENTHESES = frozenset(TIME | SESSION)
_TIME_WITHOUT_PARENTHESES = frozenset(["current_date", "current_time", "current_timestamp", "localtimestamp"])


def parse(sql: str) -> exp.Query:
    """Parse one query.

    :raises CannotPlan: sqlglot cannot parse the text as one query.
    """
    return parsed(sql).copy()


@lru_cache(maxsize=64)
def parsed(sql: str) -> exp.Query:
    """Parse one query into a tree that is shared and must not be changed.

    The tree is cached, because a text is parsed several times to plan a refresh.

    :raises CannotPlan: sqlglot cannot parse the text as one query.
    """
    try:
        tokens = verbatim().tokenize(sql)
        refuse_words(sql, tokens)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        statements = verbatim().parser().parse(tokens, sql)
    except SqlglotError as error:
        what = f"the SQL could not be read: {_description(error)}"
        raise CannotPlan("not-parsed", what, "rewrite it, and report the construct", _place(error)) from error
    if len(statements) > 1:
        raise CannotPlan("not-a-query", "several statements", "write one SELECT")
    tree = statements[0] if statements else None
    if tree is None:
        raise CannotPlan("not-a-query", "no statement", "write one SELECT")
    while isinstance(tree, exp.Subquery) and is_bare(tree):
        tree = tree.this
    if isinstance(tree, exp.Subquery):
        what = "a query in parentheses, with WITH before or something behind them"
        raise refused(what, "write it without the parentheses, or SELECT * FROM (...) AS q", tree)
    if not isinstance(tree, exp.Query):
        what = f"a {tree.key.upper()} statement is not a query"
        raise CannotPlan("not-a-query", what, "write one SELECT", line_of(tree))
    _refuse_time_as_name(tree)
    _refuse_empty(tree)
    for node in tree.walk():
        # Expressions are compared by their text, so comments must not make them differ.
        node.pop_comments()
    with_suffixes(tree)
    with_signs(tree)
    _name_values(tree)
    _name_units(tree)
    mark_quantifiers(tree)
    return tree


def _refuse_empty(tree: exp.Query) -> None:
    """Refuse an empty SELECT or DISTINCT.

    A column may be named ``select`` or ``distinct``, which sqlglot parses as a keyword.
    """
    for found in tree.find_all(exp.Select, exp.Distinct):
        if not found.expressions and not isinstance(found.parent, exp.Select):
            what = f"{found.key.upper()} of nothing"
            raise CannotPlan("not-parsed", what, "put a column of that name in backticks", line_of(found))
    for order in list(tree.find_all(exp.Order)):
        first, inside = order.expressions[0].this, order.parent
        if len(order.expressions) > 1 or not (isinstance(first, exp.Column) and first.sql().upper() == "ALL"):
            continue
        if not isinstance(inside, exp.Query) or inside.args.get("limit") or inside.args.get("offset"):
            raise refused("ORDER BY ALL", "list the columns", order)
        order.pop()  # It has no effect on the rows.
    for found in tree.find_all(exp.Fetch):
        raise refused("FETCH", "write LIMIT; a column of that name needs backticks", found)


def _refuse_time_as_name(tree: exp.Query) -> None:
    """Refuse an alias such as ``current_date`` that sqlglot would resolve.

    Spark calls the function, unless a relation has a column of this name, whatever a SELECT names its items.
    """
    given = {alias.alias.lower() for alias in tree.find_all(exp.Alias)} & _TIME_WITHOUT_PARENTHESES
    for found in tree.find_all(exp.Column) if given else ():
        if not found.table and found.name.lower() in given:
            name = found.name.lower()
            fix = f"write {name}() for the function, and give the column another name"
            raise refused(f"{name}, a function and the name of a column", fix, found)


def _name_values(tree: exp.Query) -> None:
    """Move the alias of ``VALUES 1, 2 AS t(x)``, which sqlglot parses as an alias of the last value."""
    for values in tree.find_all(exp.Values):
        last = values.expressions[-1]
        value = last.expressions[-1] if isinstance(last, exp.Tuple) else last
        if isinstance(value, exp.Alias):
            known = values.args.get("alias")
            columns = known.args.get("columns") if known is not None else None
            values.set("alias", exp.TableAlias(this=value.args["alias"], columns=columns))
            value.replace(value.this)


_OF_UNITS = frozenset(
    ["dateadd", "date_add", "datediff", "date_diff", "timediff", "timestampadd", "timestampdiff"]
)


def _name_units(tree: exp.Query) -> None:
    """Mark the unit of ``dateadd(DAY, n, d)`` as a keyword. It is parsed as a column."""
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in _OF_UNITS and len(call.expressions) == 3:
            unit = call.expressions[0]
            # A lambda's parameter may have the name of a unit.
            if isinstance(unit, exp.Identifier) or (isinstance(unit, exp.Column) and not unit.table):
                unit.replace(exp.Var(this=unit.name))


def named_relations(tree: exp.Query) -> dict[str, exp.Table]:
    """The tables and views that a query reads, by their dotted names as written, each at its first place.

    Names of common table expressions are not included.
    """
    found: dict[str, exp.Table] = {}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not is_cte(table):
            found.setdefault(dotted(table), table)
    return found


def is_unseen(table: exp.Table) -> bool:
    """Whether an item of FROM may read relations that ``named_relations`` misses.

    This is the case for functions and for metadata tables.
    """
    function = table.this
    if isinstance(function, exp.Identifier):
        return False
    # A generator reads only its arguments.
    return not (isinstance(function, exp.Anonymous) and function.name.lower() in _GENERATORS)


@lru_cache(maxsize=1000)
def spelled(sql: str) -> str:
    """The tokens of a text in a form without white space and comments, for comparisons."""
    try:
        tokens = verbatim().tokenize(sql)
    except SqlglotError:
        return sql
    return " ".join(repr((token.token_type.name, token.text)) for token in tokens)


def _refuse_left_stars(tree: exp.Query) -> None:
    for star in tree.find_all(exp.Star):
        inside = star.parent
        while isinstance(inside, exp.Column | exp.Dot):
            inside = inside.parent
        if isinstance(inside, exp.Select):
            what = "*, whose columns cannot be determined: two have one name, or it belongs to a struct"
            raise CannotPlan("not-resolved", what, "list the columns", line_of(star))


def named(tree: exp.Query, full: Callable[[str], str]) -> exp.Query:
    """The tree with each relation under its full name.

    :param full: maps a dotted name as written to the full one.
    """
    made = tree.copy()
    for table in list(made.find_all(exp.Table)):
        if not isinstance(table.this, exp.Identifier) or is_cte(table):
            continue
        at_line(table, line_of(table))
        parts = [exp.to_identifier(part, quoted=True) for part in full(dotted(table)).split(".")]
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
        for place, part in zip(("this", "db", "catalog"), reversed(parts), strict=False):
            table.set(place, part)
    return made


def qualified(tree: exp.Query, schemas: Schemas) -> exp.Query:
    """The tree with stars expanded, aliases resolved and each column qualified.

    :raises CannotPlan: a name could not be resolved.
    """
    nested: dict[str, object] = {}
    for name, columns in schemas.items():
        level = nested
        *path, last = name.split(".")
        for part in path:
            level = level.setdefault(part, {})  # type: ignore[assignment]
        level[last] = {column.lower(): type_ for column, type_ in columns}
    try:
        done = _resolved(_in_terms_of_names(tree, schemas), nested)
    except CannotPlan:
        # Duplicate names that no expression refers to are no reason to give up.
        again = _resolved(_in_terms_of_names(tree, schemas), nested, checked=False)
        renamed = False
        while rename_duplicates(again):
            renamed = True
            again = _resolved(again, nested, checked=False)
        if not renamed:
            raise
        done = _resolved(again, nested)
    for brackets in list(done.find_all(exp.Paren)):
        # An equality is only recognized if its operands are columns, not columns in parentheses.
        if isinstance(brackets.this, exp.Column) and not isinstance(brackets.parent, exp.Dot):
            brackets.replace(brackets.this)
    _spell_fields(done, schemas)
    _choose_joined(done)
    return done


def _in_terms_of_names(tree: exp.Query, schemas: Schemas) -> exp.Query:
    """A copy of the tree in which names mean the same to sqlglot as to Spark."""
    tree = with_written_relations(with_written_windows(tree), schemas)
    known = named_columns(tree, (name for columns in schemas.values() for name, _ in columns))
    made = in_parser_terms(tree, schemas, known)
    rename_hidden(made, known)
    for node in list(made.find_all(exp.Column)):
        name = node.name.lower()
        if not node.table and name in _WITHOUT_PARENTHESES and name not in known:
            called = exp.Anonymous(this=node.name)
            at_line(called, line_of(node))
            node.replace(called)
    for name_part in made.find_all(exp.Identifier):
        name_part.meta[_SPELLED] = name_part.name
    return made


def _resolved(tree: exp.Query, nested: dict[str, object], *, checked: bool = True) -> exp.Query:
    """The tree with stars expanded and columns qualified. The given tree is changed.

    :param nested: the schemas, nested by the parts of their names.
    :param checked: whether an unknown name is an error.
    """
    try:
        done = qualify(
            tree,
            dialect=verbatim(),
            schema=nested,
            validate_qualify_columns=checked,
            quote_identifiers=True,
            isolate_tables=False,
        )
    except SqlglotError as error:
        what = f"a name could not be resolved: {_description(error)}"
        fix = "qualify columns by the aliases of their relations"
        raise CannotPlan("not-resolved", what, fix, _place(error)) from error
    assert isinstance(done, exp.Query)
    if checked:
        _refuse_left_stars(done)
    return done


def _spell_fields(tree: exp.Query, schemas: Schemas) -> None:
    """Restore the case of field names, which sqlglot lowercases. Keys of a map are case-sensitive."""
    of_tables: dict[str, str] = {}
    for name, type_ in (column for columns in schemas.values() for column in columns):
        of_tables[name.lower()] = of_tables.get(name.lower(), "") + type_
    for dot in tree.find_all(exp.Dot):
        root = dot.this
        while isinstance(root, exp.Dot | exp.Bracket | exp.Paren):
            root = root.this
        # Field names of a struct are case-insensitive.
        known = of_tables.get(root.name.lower()) if isinstance(root, exp.Column) else None
        may_be_map = known is None or "map<" in known
        if may_be_map and isinstance(dot.expression, exp.Identifier) and _SPELLED in dot.expression.meta:
            dot.expression.set("this", dot.expression.meta[_SPELLED])


def _choose_joined(tree: exp.Query) -> None:
    """Replace the columns that sqlglot creates for JOIN USING.

    In Spark, such a column is that of one side, except in a FULL JOIN. sqlglot takes the first value that is
    not NULL, in a type common to both. Only these have the class ``Coalesce``: a ``coalesce`` in the text is
    parsed as a function name.
    """
    for found in list(tree.find_all(exp.Coalesce)):
        last = found.expressions[-1]
        select = found.find_ancestor(exp.Select)
        side = None
        while select is not None and side is None:
            joins = select.args.get("joins") or []
            side = next((join.side or "" for join in joins if join.alias_or_name == last.table), None)
            select = select.find_ancestor(exp.Select)
        match (side or "").upper():
            case "FULL":
                found.set("expressions", [last])
            case "RIGHT":
                found.replace(last)
            case _:
                found.replace(found.this)


def named_columns(tree: exp.Query, columns: Iterable[str]) -> frozenset[str]:
    """Names in lower case that may refer to a column in a query: of its relations, or its aliases."""
    given = (alias.alias for alias in tree.find_all(exp.Alias))
    listed = (
        name.name for alias in tree.find_all(exp.TableAlias) for name in alias.args.get("columns") or []
    )
    return frozenset(name.lower() for name in (*columns, *given, *listed))


def is_cte(table: exp.Table) -> bool:
    """Whether a table's name refers to a common table expression."""
    return cte_of(table) is not None


_PLACE = re.compile(r"\.? Line:? (\d+), Col: \d+\.?|Missing .* from (\d+):\d+")
_TOKEN = re.compile(r"<Token token_type: [\w.]+, text: (.*?), line: \d+, .*?>")


def _description(error: SqlglotError) -> str:
    """The message of sqlglot without the position."""
    first = str(error.__cause__ if isinstance(error.__cause__, TokenError) else error).split("\n", 1)[0]
    return _PLACE.sub(lambda found: found[0] if found[2] else "", _TOKEN.sub(r"\1", first))


def _place(error: SqlglotError) -> Line | None:
    """The line in the message of sqlglot; ``None`` if it has none."""
    found = _PLACE.search(f"{error} {error.__cause__}")
    return Line(int(found[1] or found[2])) if found is not None else None
