"""Every analysis of the planner has an entry for every operator, and each analysis is listed here.

What a function does with operators is read from the source, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbt_arctic.planner
from dbt_arctic.planner.algebra.analysis import OPERATORS

ANALYSES = {
    "affected_keys:affected_keys_rule": "the rows that a change can affect",
    "canonical_form:_Renaming.node": "the same operator with other identifiers",
    "columns:computed": "the columns that it computes",
    "columns:expressions": "its expressions",
    "columns:named_columns": "columns that it names outside expressions",
    "column_lineage:_lineage": "the columns of relations from which its columns are computed",
    "constant_columns:fixed_columns": "columns that have one value in all rows",
    "column_equivalences:equal_columns": "columns that are equal in every row",
    "union_branch_pruning:_Excluding.kept": "the parts of unions that conditions do not exclude",
    "disjoint_unions:_origins": "the tables of which each of its rows has one row",
    "functional_dependencies:dependencies": "functional dependencies",
    "functional_dependencies:numbered": "the partition and order of a row_number()",
    "inference:Types._made": "the types of the columns that it adds",
    "interchangeable_rows:_follow": "the columns of its inputs that a query uses",
    "join_order:changed_rows": "how many rows have changed",
    "lookup_keys:_Marking._origins": "the changed keys that a column's values are",
    "lookup_keys:_Marking._looked_up": "the scan that a condition on keys reaches",
    "nondeterministic_columns:_Following.of": "the columns that may differ between two runs",
    "null_groups:_without": "the rows whose columns are not NULL, as far as it can drop others",
    "old_or_new:old_or_new": "rows of the old or the new state",
    "not_null_columns:not_null_columns": "the columns that are never NULL",
    "range_pruning:range_of": "the range of a column of changed rows",
    "render:Renderer._select": "its SQL",
    "restriction:restricted_rule": "its rows that match some keys",
    "rows_from_log:origins": "the changed rows that contain a column's values",
    "stored_types:_short_of": "its columns that a table stores in a wider type",
    "string_literals:labels": "strings that are only displayed",
    "union_types:_shapes": "how the type of a column is determined",
    "unique_keys:has_one_row": "whether it has one row in every state",
    "unique_keys:unique_keys": "the columns that identify a row",
    "view_types:_InParts.may": "whether a cast can move into the parts of a union",
    "view_types:_InParts.of": "the union with casts in its parts",
    "window_keys:windows_of_written_rows": "the windows whose rows are all in the result",
    "weighted_delta:_limiting": "the columns whose values limit a change",
    "weighted_delta:delta_rule": "the rows that it gains and loses",
}
"""Module and function of each analysis, and what it determines for an operator."""

SHAPES = {
    "auxiliary_view:_aggregate": "an aggregate that find_auxiliary_view has found",
    "auxiliary_view:_filled": "the projections above a state",
    "auxiliary_view:_items": "an aggregate below a projection; anything else is stored by its key",
    "auxiliary_view:_unlimited": "the projections and the limit above a state",
    "auxiliary_view:find_auxiliary_view": "an aggregate below projections, filters and a limit; else none",
    "coercion:with_exact_equalities.change": "changes conditions and subqueries, by who has such fields",
    "columns:all_expressions": "the operators with subqueries; checked below",
    "set_operation_casts:with_common_types.change": "the parts of a set operation; nothing else mixes types",
    "exact_averages:with_exact_averages.change": "aggregates and values of subqueries; no other computes one",
    "determinism:_causes": "what only Filter, Limit and Window are asked",
    "constant_columns:constant_of": "a constant through projections; else the column may have any value",
    "determinism:_advice": "a union below projections and filters; else the advice is about the key",
    "determinism:_limited_by": "a limit below projections and filters; else there is no state of all rows",
    "determinism:_changing_some_rows": "conditions and select lists; elsewhere, the time is not tracked",
    "facts:Facts.before": "only a scan has a state, and only filters and projections a time that moves",
    "join_order:_is_filtered": "a filter below projections; a guess about costs",
    "join_order:_rows_of_one": "a table below filters and projections; else its size counts as unknown",
    "key_restriction:_is_of_table": "a condition above any other operator is not known to reach a table",
    "lookup_keys:_Marking.marked": "the two operators that look up keys",
    "measures:roles": "an aggregate below projections; anything else is no sum",
    "changed_scalars:changes_few_rows": "what makes one row of several; anything else keeps rows apart",
    "nested_view:_Swap.node": "the aggregate that is stored, and what may have a subquery with it",
    "nested_view:_is_worth": "scans, unions and inner joins with conditions; anything else is not stored",
    "own_key:own_key": "what find_auxiliary_view has found above an aggregate",
    "plan:guards_of": "the operators with subqueries; checked below",
    "range_pruning:_filtered": "an inner join or a filter that a condition moves below; else it stays above",
    "reduced_view:_Swap._subquery": "a filtered scan; anything else is left as it is",
    "reduced_view:_Swap.node": "what may have a subquery",
    "reduced_view:_is_choice": "scans and inner joins with conditions; anything else is not stored",
    "reduced_view:_origin": "a column through projections; else its table is not known",
    "reduced_view:_places": "an inner join with a table; anything else is no place for a state",
    "regrouping:_stored": "what regrouped:_table has let pass",
    "regrouping:_table": "a table below filters and projections; anything else is not regrouped",
    "rows_from_log:whole_log": "groups and projections of a scan; else the keys are looked up",
    "rows_from_log:with_logged_rows.change": "a restricted scan; anything else is read as it is",
    "semi_join_reduction:_parts": "a filtered inner join; anything else is one relation",
    "shared_lookups:_looked_up": "a restricted scan; anything else is read as it is",
    "view_selection:_possible": "aggregates and windows; anything else is not stored",
    "single_rows:_row_of": "relations of one row; anything else may have another number of rows",
    "ties_by_key:_of_limit": "a limit below projections; else the text ends in none",
    "unique_keys:_of_both_sides": "a full join below filters, windows and limits; else there is no such key",
    "totals_of_groups:_replaced": "the aggregate that ends_in has found, below other operators",
    "totals_of_groups:ends_in": "what is below projections, filters and limits; any other operator ends it",
    "time_columns:with_time_columns": "the operators whose time becomes a column or a condition below",
    "union_types:_refuse_incompatible": "the two set operations",
    "union_types:refuse_mixed": "the two set operations",
    "union_types:with_typed_nulls.typed": "the parts of a union; anything else has no untyped NULL to type",
}
"""Functions that look for one shape of a tree, and what another shape means to them."""

NAMES = frozenset(operator.__name__ for operator in OPERATORS)
MODULES = {
    module.name.rpartition(".")[2]: importlib.import_module(module.name)
    for module in pkgutil.walk_packages(dbt_arctic.planner.__path__, "dbt_arctic.planner.")
}


def functions(tree: ast.AST, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(tree):
        inside = (*path, child.name) if isinstance(child, ast.FunctionDef | ast.ClassDef) else path
        if isinstance(child, ast.FunctionDef):
            yield ".".join(inside), child
        yield from functions(child, inside)


def own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What a function is made of, without the functions inside it."""
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        node = nodes.pop()
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
            nodes.extend(ast.iter_child_nodes(node))


def named(pattern: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(pattern) if isinstance(node, ast.Name)} & NAMES


def entries(match: ast.Match) -> set[str]:
    """The operators that always have a case of their own."""
    patterns = [case.pattern for case in match.cases if case.guard is None]
    listed = [
        part
        for pattern in patterns
        for part in (pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern])
    ]
    return {name for part in listed if isinstance(part, ast.MatchClass) for name in named(part.cls)}


def handled_operators() -> tuple[dict[str, list[set[str]]], set[str]]:
    """The entries of each match over operators; and the functions that ask for several by ``isinstance``."""
    matches: dict[str, list[set[str]]] = {}
    shapes: set[str] = set()
    for module, loaded in MODULES.items():
        for name, function in functions(ast.parse(Path(str(loaded.__file__)).read_text())):
            asked: set[str] = set()
            for node in own(function):
                if isinstance(node, ast.Match) and any(named(case.pattern) for case in node.cases):
                    matches.setdefault(f"{module}:{name}", []).append(entries(node))
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                    asked |= named(node.args[1])
            if len(asked) > 1:
                shapes.add(f"{module}:{name}")
    return matches, shapes


MATCHES, ASKING = handled_operators()


def dispatchers() -> dict[str, Any]:
    """The functions that operators register with, from the module that defines each."""
    return {
        f"{name}:{attribute}": value
        for name, module in MODULES.items()
        for attribute, value in vars(module).items()
        if hasattr(value, "registry") and value.__module__ == module.__name__
    }


def missing(analysis: str) -> list[str]:
    """The operators without an entry."""
    dispatcher = dispatchers().get(analysis)
    if dispatcher is not None:
        return sorted(one.__name__ for one in OPERATORS if one not in dispatcher.registry)
    return sorted({name for one in MATCHES[analysis] for name in NAMES - one})


def test_each_analysis_is_listed_and_what_is_listed_is_there() -> None:
    assert sorted({*MATCHES, *dispatchers()}) == sorted(ANALYSES)


@pytest.mark.parametrize("analysis", ANALYSES)
def test_an_analysis_has_an_entry_for_each_operator(analysis: str) -> None:
    assert missing(analysis) == []


def test_no_analysis_has_a_case_for_whatever_is_left() -> None:
    wild = [
        name
        for module, loaded in MODULES.items()
        for name, function in functions(ast.parse(Path(str(loaded.__file__)).read_text()))
        if f"{module}:{name}" in MATCHES
        for node in own(function)
        if isinstance(node, ast.Match) and any(named(case.pattern) for case in node.cases)
        if any(isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None for case in node.cases)
    ]
    assert wild == []


def test_a_function_that_checks_for_several_operators_lists_the_meaning_of_others() -> None:
    assert sorted(ASKING - MATCHES.keys()) == sorted(SHAPES)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: str(operator.__name__))
def test_inputs_of_an_operator_are_found_by_their_names(operator: type) -> None:
    """``algebra.children`` and ``map_children`` know an input by the name of its field."""
    holding = {
        field.name
        for field in dataclasses.fields(operator)
        if "Node" in str(field.type) or "Subquery" in str(field.type)
    }
    assert holding <= {"child", "left", "right", "keys", "children", "subqueries"}


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: str(operator.__name__))
def test_only_filters_and_projections_have_subqueries(operator: type) -> None:
    """``columns.all_expressions`` and the patterns above ask these two for subqueries."""
    has = "subqueries" in {field.name for field in dataclasses.fields(operator)}
    assert has == (operator.__name__ in ("Filter", "Project"))
