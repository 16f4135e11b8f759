"""Parser differences: constructs that sqlglot, or a plan that moves expressions, reads differently.

If possible, a construct is rewritten so that both read it in the same way. Otherwise there is no plan. The
checks run before names are resolved, because resolution removes the evidence.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.query import Schemas
from dbt_arctic.planner.algebra.scalars import as_operand, is_whole_number
from dbt_arctic.planner.frontend.point_in_time import TIMES
from dbt_arctic.planner.frontend.session_functions import refuse_session_functions
from dbt_arctic.planner.frontend.unsupported import refused
from dbt_arctic.planner.reasons import CannotPlan, line_of
from dbt_arctic.planner.spark.dialect import BOUND_OTHERWISE
from dbt_arctic.planner.spark.functions import SESSION, TIME, function_name, is_aggregate, kind_of
from dbt_arctic.planner.spark.syntax import dotted, from_of, names_given, plain_columns

Known = frozenset[str]
"""Names in lower case that may refer to a column in the query. They may have other meanings as well."""


def in_parser_terms(tree: exp.Query, schemas: Schemas, known: Known) -> exp.Query:
    """The tree rewritten so that sqlglot and Spark read it in the same way.

    :raises CannotPlan: a construct cannot be rewritten.
    """
    for qualify in tree.find_all(exp.Qualify):
        # Name resolution removes the names in it, and their line numbers with them.
        fix = "select the window function in a subquery, and ask for its value in WHERE"
        raise refused("QUALIFY", fix, qualify)
    _stars(tree)
    _joins(tree)
    _aliases_below(tree, schemas)
    _operators(tree)
    _calls(tree)
    _values(tree)
    refuse_session_functions(tree, schemas)
    _numbers_of_groups(tree)
    made = tree.copy()
    _having(made)
    _intervals(made)
    _field_names(made, known)
    _parameters(made)
    _constants(made)
    _operands(made)
    return made


def _constants(tree: exp.Query) -> None:
    """Protect integer literals with an alias.

    Where the alias is used, Spark takes the precision of the type, rather than that of the digits.
    """
    for select in tree.find_all(exp.Select):
        named = {
            item.alias.lower(): item
            for item in select.expressions
            if isinstance(item, exp.Alias) and is_whole_number(item.this)
        }
        if named:
            for found in select.find_all(exp.Column):
                item = named.get(found.name.lower()) if not found.table else None
                if item is not None and is_whole_number(item.this):
                    item.set("this", as_operand(item.this))


def _operands(tree: exp.Query) -> None:
    """Put aliased expressions in parentheses, because they are one operand where the alias is used.

    sqlglot would leave out parentheses in sums and products, and so add floats in another order.
    """
    for select in tree.find_all(exp.Select):
        given: set[str] = set()
        for item in select.expressions:
            if isinstance(item, exp.Alias):
                value = item.this.unnest()
                again = isinstance(value, exp.Column) and not value.table and value.name.lower() in given
                if again or isinstance(value, exp.Binary | exp.Unary):
                    given.add(item.alias.lower())
        for found in list(plain_columns(select)) if given else ():
            if found.name.lower() in given and isinstance(found.parent, exp.Binary | exp.Unary):
                found.replace(exp.Paren(this=found.copy()))


# Refused constructs


def _numbers_of_groups(tree: exp.Query) -> None:
    """Refuse numbers in ROLLUP, CUBE and GROUPING SETS, which are positions of columns."""
    for found in tree.find_all(exp.Rollup, exp.Cube, exp.GroupingSets):
        for part in found.find_all(exp.Literal):
            if isinstance(part.parent, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Paren):
                raise refused("a number as a group of ROLLUP, CUBE or GROUPING SETS", "name the column", part)


def _stars(tree: exp.Query) -> None:
    """Refuse ``*`` as the argument of a function: the plan's relations have other columns."""
    for star in tree.find_all(exp.Star):
        inside = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
        if isinstance(inside, exp.Select):
            continue
        if isinstance(star.parent, exp.Count) and not star.parent.expressions:
            continue
        raise refused("* inside a function", "list the columns", star)


def _joins(tree: exp.Query) -> None:
    """Refuse USING after a RIGHT or FULL JOIN: Spark joins by the merged column, sqlglot by the first one."""
    for node in tree.walk():
        outer = False
        for join in node.args.get("joins") or []:
            natural = (join.method or "").upper() == "NATURAL"
            if outer and (natural or join.args.get("using")):
                raise refused("USING after a RIGHT or FULL JOIN", "write ON", join)
            outer = outer or (join.side or "").upper() in ("RIGHT", "FULL")


def _aliases_below(tree: exp.Query, schemas: Schemas) -> None:
    """Refuse an alias in the WHERE of a subquery: there, Spark resolves it in the outer query."""
    for select in tree.find_all(exp.Select):
        where = select.args.get("where")
        given = names_given(select) - _columns_of_from(select, schemas) if where is not None else set()
        if given and _is_in_expression(select):
            for found in plain_columns(where):
                if found.name.lower() in given:
                    what = f"{found.name}, which is a name of the subquery's SELECT, in its WHERE"
                    raise refused(what, "qualify the column by its relation", found)


def _is_in_expression(select: exp.Select) -> bool:
    """Whether a SELECT is a subquery of an expression, so that it can refer to outer columns."""
    node: exp.Expr = select
    while node.parent is not None:
        parent = node.parent
        if isinstance(node, exp.Query) and not isinstance(parent, exp.From | exp.Join | exp.CTE | exp.Query):
            return True
        node = parent
    return False


def _columns_of_from(select: exp.Select, schemas: Schemas) -> set[str]:
    """The columns of the tables in the FROM of a SELECT, as far as they are known."""
    relations = [from_of(select), *(join.this for join in select.args.get("joins") or [])]
    found: set[str] = set()
    for relation in relations:
        if isinstance(relation, exp.Table):
            found.update(column.lower() for column, _ in schemas.get(dotted(relation).lower(), ()))
    return found


def _having(tree: exp.Query) -> None:
    """Refuse an alias in an aggregate of HAVING: there, Spark resolves it as a column of FROM first."""
    for select in tree.find_all(exp.Select):
        having, given = select.args.get("having"), names_given(select)
        if having is None or not given:
            continue
        first = from_of(select)
        alone = not select.args.get("joins") and not select.args.get("laterals")
        relation = first.alias_or_name if first is not None and alone else ""
        for call in having.find_all(exp.Anonymous, exp.Filter):
            if isinstance(call, exp.Anonymous) and not is_aggregate(call):
                continue
            inside = call.expression if isinstance(call, exp.Filter) else call
            for found in list(plain_columns(inside)):
                if found.name.lower() not in given:
                    continue
                if not relation:
                    what = f"{found.name}, which is a name of the SELECT, in an aggregate of HAVING"
                    raise refused(what, "qualify the column by its relation", found)
                found.set("table", exp.to_identifier(relation))


_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)


_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_PREDICATES = (exp.In, exp.Between, exp.Is, exp.Like, exp.ILike, exp.RegexpLike, exp.Not)


def _operators(tree: exp.Query) -> None:
    for compared in tree.find_all(*_COMPARISONS):
        if isinstance(compared.expression, _PREDICATES):
            # Spark evaluates the comparison before the predicate.
            raise refused(
                "a comparison next to IN, BETWEEN, LIKE or IS", "put parentheses around it", compared
            )
        if BOUND_OTHERWISE in getattr(compared.expression, "meta", {}):
            raise refused("a comparison next to another one", "put parentheses around it", compared)
    for brackets in tree.find_all(exp.Paren):
        if isinstance(brackets.this, exp.Alias):
            raise refused("a path into a variant, or an interval, in parentheses", "leave them out", brackets)
    for found in tree.find_all(*_SHIFTS, exp.Array, exp.List, exp.Collate, exp.DPipe, exp.In):
        query = found.args.get("query") if isinstance(found, exp.In) else None
        if isinstance(query, exp.Subquery) and isinstance(query.this, exp.Subquery):
            raise refused("IN ((SELECT ...)), a list of one value", "write one pair of parentheses", found)
        if isinstance(found, exp.Collate):
            raise _collated(found)
        if isinstance(found, exp.Array | exp.List):
            raise refused("array(...)[i]", "write element_at, or parentheses around the array", found)
        if isinstance(found, exp.DPipe) and isinstance(found.this, _SHIFTS):
            raise refused("a shift next to ||", "put parentheses around it", found)
        if isinstance(found, exp.DPipe) and isinstance(found.expression, exp.Add | exp.Sub):
            raise refused("+ or - after ||", "put parentheses around it", found)
        if isinstance(found, _SHIFTS) and isinstance(found.this, _BITS):
            raise refused("a shift next to & | ^", "put parentheses around it", found)


def _collated(found: exp.Expr) -> CannotPlan:
    what = "a collation: which of several equal strings represents a group depends on their order"
    return refused(what, "compare by lower() or upper()", found)


def _calls(tree: exp.Query) -> None:
    for found in tree.find_all(exp.Anonymous):
        name = found.name.lower()
        if isinstance(found.parent, exp.Dot) and found.parent.expression is found:
            what = f"{found.parent.sql()}: a function of a schema is a user's own"
            raise CannotPlan("unknown-function", what, "use built-in functions", line_of(found))
        if name == "collate":
            raise _collated(found)
        if name in _SCHEMA_AT:
            _schema(found, _SCHEMA_AT[name])
        if name == "grouping_id" and not found.expressions and _has_several_factors(found):
            raise refused("grouping_id() of several ROLLUP, CUBE or columns", "name its columns", found)
        if name == "arrays_zip" and not all(isinstance(one, exp.Literal) for one in found.expressions):
            fix = "write zip_with(a, b, (x, y) -> struct(x AS a, y AS b))"
            raise refused("arrays_zip(), whose fields have the names of columns", fix, found)


_SCHEMA_AT = {"from_csv": 1, "from_json": 1, "from_xml": 1, "try_variant_get": 2, "variant_get": 2}
"""By function, the place of the argument that names the type of the result."""


def _schema(call: exp.Anonymous, place: int) -> None:
    """Refuse a type with a collation, and one that only Spark knows."""
    given = call.expressions[place : place + 1]
    schema = given[0] if given else exp.Literal.string("")
    if isinstance(schema, exp.Anonymous) and schema.name.lower().startswith("schema_of_"):
        return
    if not schema.is_string or "\\" in schema.name:
        raise refused(f"a computed schema in {call.name}()", "write the schema as a plain string", call)
    if "collat" in schema.name.lower():
        raise _collated(call)


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
    # WITH ROLLUP, WITH CUBE and GROUPING SETS after a list apply to the list.
    return bool(sets and listed and sets[0].expressions and not isinstance(sets[0], exp.GroupingSets))


def _values(tree: exp.Query) -> None:
    """Refuse VALUES with nondeterministic expressions, because its rows are kept as text."""
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
                raise refused(f"{name} in VALUES", "write SELECT ... UNION ALL SELECT ...", found)


# Rewritten constructs


def _intervals(tree: exp.Query) -> None:
    """Merge ``INTERVAL 1 DAY 2 HOURS`` into one value. sqlglot parses it as a sum, and omits parentheses."""
    for interval in tree.find_all(exp.Interval):
        operand = interval.this
        # A string with its units, such as '1 day 2 hours'.
        has_units = isinstance(operand, exp.Literal) and any(map(str.isalpha, operand.name))
        if interval.args.get("unit") is None and not has_units:
            raise refused("interval, the name of a column", "qualify it by its relation", interval)
    for found in list(tree.find_all(exp.Add)):
        if _is_interval(found) and not _is_interval(found.parent) and not isinstance(found.parent, exp.Paren):
            found.replace(exp.Paren(this=found.copy()))


def _is_interval(node: exp.Expr | None) -> bool:
    if isinstance(node, exp.Add):
        return _is_interval(node.this) and _is_interval(node.expression)
    return isinstance(node, exp.Interval)


def _field_names(tree: exp.Query, known: Known) -> None:
    """Name the fields of ``struct(a, b AS c)`` and ``(a, b)`` explicitly, because a plan renames columns."""
    for found in reversed(list(tree.find_all(exp.Anonymous, exp.Tuple))):  # Inner ones first.
        is_struct = isinstance(found, exp.Anonymous) and found.name.lower() == "struct"
        if is_struct or (isinstance(found, exp.Tuple) and not isinstance(found.parent, _OF_TUPLES)):
            named = [
                part for place, one in enumerate(found.expressions, 1) for part in _field(one, place, known)
            ]
            found.replace(exp.Anonymous(this="named_struct", expressions=named))
    for type_ in tree.find_all(exp.DataType):
        if any(isinstance(field, exp.ColumnDef) for field in type_.expressions):
            type_.meta["case_sensitive"] = True  # sqlglot then keeps the case of the names in it.


_OF_TUPLES = (exp.Values, exp.In, exp.GroupingSets, exp.Rollup, exp.Cube, exp.Pivot, exp.Hint)
"""Parents for which parentheses are no value."""


def _field(value: exp.Expr, place: int, known: Known) -> tuple[exp.Expr, exp.Expr]:
    while isinstance(value, exp.Paren):
        value = value.this
    name, of = f"col{place}", value
    if isinstance(value, exp.Alias):
        name, of = value.alias, value.this
    elif isinstance(value, exp.Identifier):  # A parameter of a lambda.
        name = value.name
    elif isinstance(value, exp.Column) and not isinstance(value.this, exp.Star):
        name = value.name
        if not value.table and name.lower() in TIME | SESSION and name.lower() not in known:
            raise refused(f"{name}, a function, as a field of struct()", "name it with AS", value)
    elif isinstance(value, exp.Dot | exp.Bracket | exp.Column):
        raise refused("a field of struct() without a name", "name it with AS", value)
    return exp.Literal.string(name), of.copy()


_OTHER_NAMES = (exp.Column, exp.ColumnDef, exp.Alias, exp.TableAlias)


def _parameters(tree: exp.Query) -> None:
    """Rename the parameters of lambdas, so that they differ from all relations and columns."""
    lambdas = list(tree.find_all(exp.Lambda))
    for number, found in enumerate(reversed(lambdas)):  # Inner ones first.
        names = {parameter.name: f"_p{number}_{place}" for place, parameter in enumerate(found.expressions)}
        same = {name.lower() for name in names}
        for column in found.this.find_all(exp.Column):
            first = column.parts[0].name
            if first.lower() in same:
                what = f"{first}, a lambda parameter that is spelled in another case"
                raise refused(what, "spell it in the same way, or rename the parameter", column)
        for part in list(found.find_all(exp.Identifier)):
            if part.name not in names or isinstance(part.parent, _OTHER_NAMES):
                continue
            if isinstance(part.parent, exp.Dot) and part.parent.expression is part:
                continue  # A field with the parameter's name.
            part.replace(exp.to_identifier(names[part.name]))
