"""The plan of a refresh as a value: the affected keys, and the query restricted to these keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_arctic.keyed.value_range import Ranges
from dbt_arctic.planner.algebra.columns import check_columns, line_of_column, line_within, prune_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Node,
    Project,
    Scan,
    State,
    Subquery,
    own_names,
    walk,
)
from dbt_arctic.planner.algebra.query import Built, OutputColumn, Query, Schemas
from dbt_arctic.planner.algebra.render import Renderer, Sources, quoted
from dbt_arctic.planner.algebra.rewrite import pushed_down
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta import rules
from dbt_arctic.planner.delta.affected_keys import affected_rows, union_of
from dbt_arctic.planner.delta.changed_scalars import changed_scalars, changes_few_rows
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.lookup_keys import with_lookup_keys
from dbt_arctic.planner.delta.restriction import restricted
from dbt_arctic.planner.delta.rows_from_log import Origin, whole_log, with_logged_rows
from dbt_arctic.planner.frontend.build import Builder
from dbt_arctic.planner.frontend.conditional_aggregates import with_conditional_values
from dbt_arctic.planner.frontend.lateral_subqueries import require_same_types
from dbt_arctic.planner.frontend.parse import named_columns, parse, qualified
from dbt_arctic.planner.frontend.point_in_time import Time, with_time_functions
from dbt_arctic.planner.frontend.set_operation_casts import with_common_types
from dbt_arctic.planner.frontend.time_columns import with_time_columns
from dbt_arctic.planner.frontend.union_types import refuse_mixed, with_typed_nulls
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.properties.union_branch_pruning import without_excluded_parts
from dbt_arctic.planner.properties.unique_keys import unique_keys
from dbt_arctic.planner.reasons import CannotPlan, Line, Reason, first_line, mark_view, of_view
from dbt_arctic.planner.typing.coercion import with_exact_equalities

AFFECTED = "affected_keys"
"""The name of the relation of affected keys in the statement of a refresh."""

_KEYS = "\0affected"
_LIST = "list the columns instead of *"

LARGEST = 600
"""The most operators of a statement that Spark still plans in a few seconds."""


@dataclass(frozen=True)
class Guard:
    """A query at both states. If the results differ, every row of the model may change."""

    what: str
    old: Node
    new: Node

    @property
    def line(self) -> Line | None:
        """The line of the guarded query; ``None`` if it is unknown."""
        return line_within(self.new)

    @property
    def fix(self) -> str:
        """What the user can write instead."""
        return "join with a relation that selects the relevant rows; NOT EXISTS in place of NOT IN"


@dataclass(frozen=True)
class Incremental:
    """An incremental refresh of the affected keys.

    :param affected: the keys that may have changed; columns ``key_0``, ``key_1``, ...
    :param rows: the model's current rows of these keys, with the model's columns.
    :param logged: the upstream whose changed keys are exactly the affected keys, and the columns that they
        are from; ``None`` if there is none.
    :param unique: whether the keys of the upstreams prove that the model's key is unique.
    :param with_changed_scalars: the refresh that follows if a guard differs, and only some rows depend on its
        value; ``None`` for a full refresh.

    ``affected`` and ``rows`` are ``None`` if no key can have changed, unless a guard differs.
    """

    key: tuple[str, ...]
    affected: Node | None
    rows: Node | None
    columns: tuple[OutputColumn, ...]
    guards: tuple[Guard, ...]
    logged: Origin | None = None
    unique: bool = False
    with_changed_scalars: Incremental | None = None


def analyse_query(
    tree: exp.Query | str,
    schemas: Schemas,
    names: Sequence[str] | None = None,
    views: Mapping[str, exp.Query] | None = None,
    now: Time | None = None,
    last: Time | None = None,
    *,
    wrap_on_overflow: bool = False,
) -> Query:
    """Turn a parsed query into operators, and check that its result is deterministic.

    :param tree: a query. In a parsed tree, relations have the names that ``schemas`` has.
    :param names: the names of the output columns, if Spark has analysed the query. They are in Spark's order,
        which matters if the text does not name the columns.
    :param views: the queries of views.
    :param now: the time of the run. Without it, functions of time stay calls.
    :param last: the time of the last run.
    :param wrap_on_overflow: whether integers wrap around on overflow, as without ANSI mode.

    :raises CannotPlan: with the reason.
    """
    if isinstance(tree, str):
        tree = parse(tree)

    def timed(part: exp.Query) -> exp.Query:
        if now is None:
            return part
        columns = named_columns(part, (name for columns in schemas.values() for name, _ in columns))
        return with_time_functions(part, columns, now, last)

    inlined = {}
    for name, view in (views or {}).items():
        with of_view(name):
            inlined[name] = qualified(timed(view), schemas)
        mark_view(inlined[name], name)
    builder = Builder(schemas, inlined)
    built: Built = builder.build(qualified(timed(tree), schemas))
    shown = [one.name for one in built.columns] if names is None else list(names)
    if len(shown) != len(built.columns):
        what = "Spark returns a different number of columns than the planner derived from the SQL"
        raise CannotPlan("not-resolved", what, _LIST)
    check_columns(built.node)
    known = {one.name.lower() for one in built.columns}
    by_name = {name.lower(): name for name in shown}
    others = [name for name in shown if name.lower() not in known]
    is_named = len(known) == len(by_name) == len(shown) and len(others) <= 1
    if is_named:
        shown = [by_name.get(name.lower(), *others[:1]) for name, _ in built.columns]
    for mine, (name, identifier) in zip(shown, built.columns, strict=True):
        if mine.lower() != name.lower() and mine.lower() in known:
            what = f"Spark gives the columns in another order: {mine}, not {name}"
            raise CannotPlan("not-resolved", what, _LIST, line_of_column(built.node, identifier))
    columns = tuple(map(OutputColumn, shown, (one.identifier for one in built.columns)))
    timed_node = node = with_time_columns(built.node, builder.identifier)
    try:
        node = with_typed_nulls(node, builder.types)
        refuse_mixed(node, builder.types, wrap_on_overflow=wrap_on_overflow)
    except CannotPlan:
        # Casts are only written if the untyped tree was refused: a lookup needs columns without a cast.
        node = with_typed_nulls(
            with_common_types(timed_node, builder.types, builder.identifier), builder.types
        )
        refuse_mixed(node, builder.types, wrap_on_overflow=wrap_on_overflow)
    node = with_exact_equalities(node, builder.types, wrap_on_overflow=wrap_on_overflow)
    require_same_types(built.node, node)
    node = pushed_down(with_conditional_values(node))
    node = without_excluded_parts(node, builder.types)
    return Query(node, columns, builder.types, is_named)


def plan_incremental(
    query: Query, key: Sequence[str], facts: Facts, accept: frozenset[str] = frozenset()
) -> Incremental:
    """Plan the affected keys of a query, and the query restricted to these keys.

    :param accept: codes of reasons that the user accepts, with underscores.

    :raises CannotPlan: with the reason of a full refresh.
    """
    made = _plan_incremental(query, key, facts, accept)
    if not made.guards or not changes_few_rows(query.node):
        return made
    try:
        changed = _plan_incremental(query, key, replace(facts, scalars_changed=True), accept)
    except CannotPlan:
        return made
    return replace(made, with_changed_scalars=changed) if len(changed.guards) < len(made.guards) else made


def _plan_incremental(query: Query, key: Sequence[str], facts: Facts, accept: frozenset[str]) -> Incremental:
    by_name = {name.lower(): identifier for name, identifier in query.columns}
    missing = [name for name in key if name.lower() not in by_name]
    if missing:
        what = f"the key column {missing[0]} is not a column of the result"
        raise CannotPlan("no-key", what, "select it, or name a column that is selected in unique_key")
    wanted = tuple(by_name[name.lower()] for name in key)
    if "float_sum" not in accept:
        query = with_exact_averages(query, in_any_mode=True)
    require_determinism(query.node, query.types, facts, accept, query.identifiers(key))
    found = affected_rows(query.node, tuple(dict.fromkeys(wanted)), facts).both()
    guards = tuple(guards_of(query.node, facts))
    if not found:
        # Nothing changed, or only what the guards compare.
        return Incremental(tuple(key), None, None, query.columns, guards)
    everything = union_of(found, tuple(dict.fromkeys(wanted)))
    names = tuple(f"key_{place}" for place in range(len(wanted)))
    affected = Aggregate(
        everything, tuple((name, column(identifier)) for name, identifier in zip(names, wanted, strict=True))
    )
    if sum(1 for _ in walk(affected)) > LARGEST:
        raise CannotPlan(
            "too-large",
            "three nested aggregates: the statement for their changed values would be too large",
            "make the inner ones models of their own",
            _line_of_innermost(query.node),
        )
    keys = Scan(_KEYS, AFFECTED, own_names(names))
    pairs = tuple((column(identifier), name) for name, identifier in zip(names, wanted, strict=True))
    rows = prune_columns(with_logged_rows(restricted(query.node, pairs, keys), affected, _KEYS, facts))
    return Incremental(
        key=tuple(key),
        affected=with_lookup_keys(prune_columns(affected), facts),
        rows=with_lookup_keys(rows, facts, {_KEYS: affected}),
        columns=query.columns,
        guards=guards,
        logged=whole_log(affected),
        unique=any(one <= set(wanted) for one in unique_keys(query.node, facts)),
    )


def _line_of_innermost(node: Node) -> Line | None:
    """The line of the innermost aggregate; ``None`` if it is unknown."""
    lines = (line_within(part) for part in walk(node) if isinstance(part, Aggregate))
    return next((line for line in reversed(list(lines)) if line), None)


def guards_of(node: Node, facts: Facts) -> list[Guard]:
    """Subqueries that are compared as a whole, because nothing correlates them with an outer row."""
    found = []
    for part in walk(node):
        changed = (
            changed_scalars(part, facts)
            if facts.scalars_changed and isinstance(part, Filter | Project)
            else ()
        )
        for number, subquery in enumerate(getattr(part, "subqueries", ())):
            if number in changed or not facts.changed(subquery.plan):
                continue
            if subquery.nulls_count:
                found.append(_guard("NULLs and rows of an IN subquery", _negated_flags(subquery), facts))
            elif not subquery.links:
                found.append(_guard("the value of an uncorrelated subquery", _value(subquery), facts))
    return found


def _guard(what: str, node: Node, facts: Facts) -> Guard:
    return Guard(what, prune_columns(facts.before(node)), prune_columns(node))


def _value(subquery: Subquery) -> Node:
    if subquery.kind == "exists":
        count = exp.Count(this=exp.Star())
        return Aggregate(
            subquery.plan, (), (("value", exp.GT(this=count, expression=exp.Literal.number(0))),)
        )
    assert subquery.value is not None
    return Project(subquery.plan, (("value", subquery.value),))


def _negated_flags(subquery: Subquery) -> Node:
    if subquery.correlation:
        raise CannotPlan(
            "not-in",
            "a correlated IN in which unknown and false are not interchangeable",
            "use EXISTS",
            first_line(subquery.operand, subquery.value),
        )
    assert subquery.value is not None
    some = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0))
    nulls = exp.GT(
        this=exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=subquery.value.copy())),
        expression=exp.Literal.number(0),
    )
    return Aggregate(subquery.plan, (), (("has_rows", some), ("has_nulls", nulls)))


@dataclass(frozen=True)
class _WithKeys:
    """Sources with an additional relation: the affected keys."""

    sources: Sources
    keys: str

    def relation(self, source: str, state: State) -> str:
        return self.keys if source == _KEYS else self.sources.relation(source, state)


def affected_sql(plan: Incremental, sources: Sources) -> str:
    """The SQL of the affected keys: ``key_0``, ``key_1``, ..."""
    assert plan.affected is not None
    return Renderer(sources).query(plan.affected)


def logged_keys_sql(plan: Incremental, sources: Sources) -> str:
    """The SQL of the affected keys if they are the keys of a change log, which has each of them once."""
    assert isinstance(plan.affected, Aggregate)
    assert plan.logged is not None
    return Renderer(sources).query(Project(plan.affected.child, plan.affected.groups))


def rows_sql(
    plan: Incremental,
    sources: Sources,
    keys: str,
    ranges: Ranges | None = None,
) -> str:
    """The SQL of the model's rows of the affected keys.

    :param keys: the relation that has the keys.
    :param ranges: MIN and MAX of key columns without NULLs, as literals.
    """
    assert plan.rows is not None
    renderer = Renderer(_WithKeys(sources, keys), ranges or {})
    inner = renderer.query(plan.rows, tuple(dict.fromkeys(identifier for _, identifier in plan.columns)))
    selected = ", ".join(f"{quoted(identifier)} AS {quoted(name)}" for name, identifier in plan.columns)
    return f"SELECT {selected}\nFROM (\n{inner}\n)"


def full_sql(query: Query, sources: Sources) -> str:
    """The SQL of the whole query, rendered from its tree. It can be compared with the user's text."""
    inner = Renderer(sources).query(
        query.node, tuple(dict.fromkeys(identifier for _, identifier in query.columns))
    )
    selected = ", ".join(f"{quoted(identifier)} AS {quoted(name)}" for name, identifier in query.columns)
    return f"SELECT {selected}\nFROM (\n{inner}\n)"


def guard_sql(guard: Guard, sources: Sources) -> str:
    """The SQL of one row with one column: whether the two states of a guard differ."""
    old, new = (Renderer(sources).query(state) for state in (guard.old, guard.new))
    both = [f"(({one})\nEXCEPT ALL\n({other}))" for one, other in ((old, new), (new, old))]
    return f"SELECT count(*) > 0 FROM (\n{both[0]}\nUNION ALL\n{both[1]}\n)"


__all__ = [
    "AFFECTED",
    "Guard",
    "Incremental",
    "Mapping",
    "Reason",
    "affected_sql",
    "analyse_query",
    "full_sql",
    "guard_sql",
    "guards_of",
    "logged_keys_sql",
    "plan_incremental",
    "rows_sql",
    "rules",
]
