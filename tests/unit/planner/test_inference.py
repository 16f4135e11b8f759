"""The planner infers the type that Spark gives an expression, in one module.

``tests/spark/keyed/test_functions.py`` compares the types of the table with Spark's own.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Join, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import equalities
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.typing.inference import Types, type_of
from dbt_arctic.planner.typing.inferred_type import (
    BIGINT,
    DATE,
    INT,
    STRING,
    VOID,
    Inferred,
    Kind,
    Mixed,
    category_of,
    exact,
    family_of,
    of_parts,
    read_type,
    type_text,
)
from tests.unit.planner.typed_expressions import BY_KIND, COLUMNS, EXACTLY, agrees

SCHEMAS = {"typed": list(COLUMNS.items())}
PLANNER = Path(__file__).parents[3] / "dbt_arctic" / "planner"


def inferred(sql: str) -> Inferred | None:
    query = analyse_query(f"SELECT {sql} AS v FROM typed", SCHEMAS)
    return Types(query.node, query.types).column(query.columns[0][1])


@pytest.mark.parametrize("sql", EXACTLY)
def test_a_type_that_is_known(sql: str) -> None:
    assert type_text(exact(inferred(sql)) or VOID) == EXACTLY[sql]


@pytest.mark.parametrize("sql", BY_KIND)
def test_a_type_of_which_the_kind_is_known(sql: str) -> None:
    found = inferred(sql)
    assert isinstance(found, Kind)
    assert agrees(found, BY_KIND[sql])


@pytest.mark.parametrize(
    "sql", ["length2(s)", "s + 1", "upper(s COLLATE UTF8_LCASE)", "date_add(MONTH, 1, d)", "p.gone"]
)
def test_of_anything_else_nothing_is_known(sql: str) -> None:
    assert type_of(exp.maybe_parse(sql, dialect="spark")) is None


def test_an_untyped_null_is_no_type_that_a_column_could_be_cast_to() -> None:
    assert inferred("NULL") == VOID
    assert exact(VOID) is None


DOUBLE = read_type("double")


@pytest.mark.parametrize(
    ("types", "column", "family", "sort"),
    [
        ([INT, INT], INT, "number", "int"),
        ([INT, BIGINT], Mixed("x", BIGINT, True), "number", "bigint"),
        ([INT, VOID], Mixed("x", INT, True), "number", "int"),
        ([DATE, VOID], Mixed("x", DATE, True), "date", "other"),
        ([None, VOID], Mixed("x", None, True), "of x", "float"),
        ([VOID, VOID], VOID, "void", "other"),
        # Spark casts the numbers to DOUBLE, in which two of them may be equal.
        ([INT, DOUBLE], Mixed("x", Kind.FLOATING, False), None, "float"),
        ([INT, STRING], None, None, "float"),
        ([None, INT], None, None, "float"),
        ([None, None], None, None, "float"),
    ],
)
def test_a_column_of_a_union(
    types: list[Inferred | None], column: Inferred | None, family: str | None, sort: str
) -> None:
    for order in (types, types[::-1]):
        found = of_parts("x", order)
        assert found == column
        assert family_of(found) == family
        assert category_of(found) == sort
    # An expression over a column whose parts differ is computed in the type of one part.
    assert exact(of_parts("x", types)) == (INT if types == [INT, INT] else None)


def query_of(sql: str) -> Query:
    return analyse_query(sql, SCHEMAS)


def test_a_string_with_a_sign_is_a_number() -> None:
    """Spark compares it with a string as a DOUBLE, in which two strings may be equal."""
    sql = "SELECT u.i FROM (SELECT i, {} AS x FROM typed) AS u JOIN typed AS v ON u.x = v.s"
    for value, is_plain in (("upper(s)", True), ("-s", False)):
        (join,) = (one for one in walk(query_of(sql.format(value)).node) if isinstance(one, Join))
        assert bool(list(equalities(join.conditions))) == is_plain


@pytest.mark.parametrize(
    ("value", "is_rewritten"),
    [("l", True), ("ceil(r)", True), ("ceil(p.net)", False), ("ceil(gone(s))", False)],
)
def test_only_the_average_of_a_bigint_is_computed_as_a_double(value: str, is_rewritten: bool) -> None:
    query = query_of(f"SELECT s, avg({value}) AS v FROM typed GROUP BY s")
    assert (with_exact_averages(query) != query) == is_rewritten


def test_the_average_of_a_bigint_in_one_part_of_a_union_is_one_of_bigints() -> None:
    parts = "SELECT s, i AS x FROM typed UNION ALL SELECT s, l FROM typed"
    query = query_of(f"SELECT s, avg(x) AS v FROM ({parts}) AS u GROUP BY s")
    assert with_exact_averages(query) != query


@pytest.mark.parametrize(
    ("value", "is_exact"),
    [("p.net", True), ("a[0]", True), ("m['x']", True), ("r", False), ("array_max(a)", False)],
)
def test_a_sum_is_exact_where_the_type_of_what_it_adds_is(value: str, is_exact: bool) -> None:
    query = query_of(f"SELECT s, sum({value}) AS v FROM typed GROUP BY s")
    facts = Facts({"typed": UpstreamFacts(changed=True)})
    if is_exact:
        require_determinism(query.node, query.types, facts)
        return
    with pytest.raises(CannotPlan, match="of floats"):
        require_determinism(query.node, query.types, facts)


OF_TYPES = {"Inferred", "DataType", "Kind", "TypeCategory", "Types"}
"""Names in the annotation of a result that stand for a type of values."""
EXPRESSIONS = {name for name, one in vars(exp).items() if isinstance(one, type) and issubclass(one, exp.Expr)}
INFERENCE = "typing/inference.py"


def types_by_expression(tree: ast.AST) -> list[str]:
    """The functions that return a type, and ask for the class or the function of an expression."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.returns is None:
            continue
        names = {node.id for node in ast.walk(function.returns) if isinstance(node, ast.Name)}
        asked = {
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "exp"
        } & EXPRESSIONS
        called = {getattr(node.func, "id", "") for node in ast.walk(function) if isinstance(node, ast.Call)}
        tests = {"isinstance", "function_name"} & called or any(
            isinstance(node, ast.Match) for node in ast.walk(function)
        )
        own = asked - {"Expr", "Expression"} or "function_name" in called
        if names & OF_TYPES and own and tests:
            found.append(function.name)
    return found


def test_no_other_module_derives_a_type_from_an_expression() -> None:
    found = {
        str(path.relative_to(PLANNER)): names
        for path in sorted(PLANNER.rglob("*.py"))
        if (names := types_by_expression(ast.parse(path.read_text())))
    }
    assert set(found) == {INFERENCE}
    assert {"of", "_operation", "_component"} <= set(found[INFERENCE])


def test_the_rule_finds_a_second_walk() -> None:
    for body in (
        "return INT if isinstance(value, exp.Add) else None",
        "match value:\n        case exp.Literal():\n            return INT",
        "return INT if function_name(value) == 'length' else None",
    ):
        assert types_by_expression(ast.parse(f"def f(value) -> Inferred | None:\n    {body}")) == ["f"]


TEXT_TESTS = ('split("(', 'split("<', 'startswith("decimal', 'startswith("timestamp', 'startswith("array<')
"""Ways to take the text of a type apart."""


def test_no_module_takes_the_text_of_a_type_apart() -> None:
    found = [
        f"{path.name}: {one}"
        for path in sorted(PLANNER.rglob("*.py"))
        for one in TEXT_TESTS
        if one in path.read_text()
    ]
    assert found == []
