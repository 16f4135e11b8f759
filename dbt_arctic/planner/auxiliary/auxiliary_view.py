"""Splits a query into an auxiliary view that is cheap to maintain, and a query over it (Quass et al. 1996).

If a query ends in sums, counts, averages, MIN and MAX over many rows, the auxiliary view stores the sums,
counts and extremes of each group. The operators above (an average, a share, HAVING, the first rows of an
order) are computed from these few rows. If a query ends in the first rows of an order, the auxiliary view
stores all rows, because all of them determine which are the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_arctic.data_type import decimal_digits
from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Limit,
    Node,
    Project,
    Scan,
    State,
    map_children,
    own_names,
    scans,
)
from dbt_arctic.planner.algebra.query import OutputColumn, Query
from dbt_arctic.planner.algebra.render import Renderer, quoted
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.auxiliary.own_key import own_key
from dbt_arctic.planner.auxiliary.single_rows import as_one_aggregate
from dbt_arctic.planner.auxiliary.state_columns import Part, StateColumns
from dbt_arctic.planner.properties.unique_keys import has_small_groups
from dbt_arctic.planner.spark.dialect import SameType, expression, to_sql
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.stored_types import may_change_types, short_columns

ONE = "_one"
"""The key of an auxiliary view with one row."""

STATE = "\0state"
"""The relation that stands for the auxiliary view in the query over it."""

_NOTHING: Mapping[str, str] = {}
_ROWS_OF_AN_AVERAGE = 9
"""The digits of the largest row count for which an average is computed from its sum without a rounding error.
"""


@dataclass(frozen=True)
class RowsOfState:
    """The size of an auxiliary view, which metadata does not contain, compared to an upstream.

    :param rows: a query of one row, the number of rows; NULL if the view could not store all of its rows.
    :param share: the share of the upstream's rows up to which the view is worthwhile.
    """

    rows: Node
    source: str
    share: float


@dataclass(frozen=True)
class AuxiliaryView:
    """A query as an auxiliary view and a query over it.

    :param state: the query of the auxiliary view; its columns are named as its output.
    :param key: the columns that identify a row of the auxiliary view.
    :param above: the operators over it, the outermost first.
    :param parts: for a view of aggregates: the columns from which each aggregate is computed.
    :param spare: for a view of aggregates: columns that no operator above reads: the opposite of an extreme,
        and the number of values.
    :param has_few_rows: whether its groups show that it has few rows.
    :param around: for a nested view, instead of ``above``: the query with scans of ``STATE``, whose columns
        are those of the view, and aggregates by the names in ``parts``.
    :param size: what is queried before the view is built.
    :param is_named: whether the text of the query names each of its columns.
    """

    state: Node
    key: tuple[str, ...]
    above: tuple[Project | Filter | Limit, ...]
    columns: tuple[OutputColumn, ...]
    parts: Mapping[str, Part] = field(default_factory=dict)
    spare: frozenset[str] = frozenset()
    has_few_rows: bool = False
    around: Node | None = None
    size: RowsOfState | None = None
    is_named: bool = True


class NoState(Exception):
    """Raised if a query over an auxiliary view would not return the same as the query itself."""


def find_auxiliary_view(
    query: Query, key: Sequence[str], keys_of: Mapping[str, Sequence[str]]
) -> AuxiliaryView | None:
    """Split a query into an auxiliary view and a query over it.

    :param key: the model's key.
    :param keys_of: the keys of upstreams, by stored names.

    :returns: ``None`` if an auxiliary view is of no use.
    """
    query = as_one_aggregate(query)
    above: list[Project | Filter | Limit] = []
    node = query.node
    while isinstance(node, Project | Filter | Limit) and not getattr(node, "subqueries", ()):
        above.append(node)
        node = node.child
    limited = any(isinstance(part, Limit) for part in above)
    if isinstance(node, Aggregate):
        fine = has_small_groups(node, keys_of)
        made = state_of_sums(query, node, above) if limited or not fine else None
        if made is not None:
            if not all(isinstance(part, Project) for part in above):
                made = by_own_key(made, query, key, keys_of)
            return replace(made, has_few_rows=not fine, is_named=query.is_named)
    return _unlimited(query, key, above) if limited else None


def by_own_key(
    made: AuxiliaryView, query: Query, key: Sequence[str], keys_of: Mapping[str, Sequence[str]]
) -> AuxiliaryView:
    """The view of what a query ends in, by the model's key if this is computed from the groups."""
    own, node = own_key(query, key, keys_of), _aggregate(made)
    if own is None:
        return made
    items = (*own.computed, *((name, column(name)) for name in node.output))
    return replace(made, state=Project(node, items), key=own.names)


def without_spare(made: AuxiliaryView) -> AuxiliaryView:
    """The same view without columns that nothing reads."""
    if not made.spare:
        return made
    node = _aggregate(made)
    kept = replace(node, aggregates=tuple(one for one in node.aggregates if one[0] not in made.spare))
    state: Node = kept
    if isinstance(made.state, Project):
        items = tuple(item for item in made.state.items if item[0] not in made.spare)
        state = replace(made.state, child=kept, items=items)
    return replace(made, state=state, spare=frozenset())


def state_sql(made: AuxiliaryView, names: Mapping[str, str]) -> str:
    """The SQL of the auxiliary view.

    :param names: the quoted name of each upstream.
    """
    return Renderer(_Named(names)).query(made.state)


def rows_of_state_sql(size: RowsOfState, names: Mapping[str, str]) -> str:
    """The SQL of the number of rows of the auxiliary view.

    :param names: the quoted name of each upstream.
    """
    return Renderer(_Named(names)).query(prune_columns(size.rows))


def outer_sql(
    made: AuxiliaryView, name: str, types: Mapping[str, str], names: Mapping[str, str] = _NOTHING
) -> str:
    """The SQL of the query over the auxiliary view.

    :param name: the quoted name of the auxiliary view.
    :param types: the types of its columns.
    :param names: the quoted names of the upstreams that it reads in addition.
    :raises NoState: it would not return the same.
    """
    node: Node = Scan(STATE, "state", own_names(made.state.output))
    if made.around is not None:
        stored = {name: column(name) for name in made.state.output}
        sums = {name: types.get(part.total or "", "") for name, part in made.parts.items()}
        node = prune_columns(_filled(made.around, node, {**stored, **dict(_items(made, types))}, sums))
    elif made.parts:
        node = Project(node, _items(made, types))
    elif short := short_columns(made.state):
        values = ((name, _as_tiny(name) if name in short else column(name)) for name in made.state.output)
        node = Project(node, tuple(values))
    for part in reversed(made.above):
        node = replace(part, child=node)
    shown = tuple(dict.fromkeys(one for _, one in made.columns))
    inner = Renderer(_Named({**names, STATE: name})).query(node, shown)
    selected = ", ".join(f"{quoted(identifier)} AS {quoted(shown)}" for shown, identifier in made.columns)
    return f"SELECT {selected}\nFROM (\n{inner}\n)"


def _filled(node: Node, state: Node, values: Mapping[str, exp.Expression], types: Mapping[str, str]) -> Node:
    """A query with the columns of the auxiliary view in place of what is computed from them.

    :param types: the types of its sums, by the names of their aggregates.
    """
    if isinstance(node, Scan) and node.source == STATE:
        return Project(state, tuple((shown, values[name]) for shown, name in node.columns))
    node = map_children(node, lambda child: _filled(child, state, values, types))
    if isinstance(node, Project):
        node = replace(node, items=tuple((name, _cast(value, types)) for name, value in node.items))
    return node


def _cast(value: exp.Expression, types: Mapping[str, str]) -> exp.Expression:
    """Cast sums of sums, which have a higher precision than Spark's sum of all values."""

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, SameType):
            return part
        return expression(f"CAST({to_sql(part.this)} AS {types[part.args['named']]})")

    if value.find(SameType) is None:
        return value
    made = value.copy().transform(swap, copy=False)
    assert isinstance(made, exp.Expression)
    return made


def _as_tiny(name: str) -> exp.Expression:
    """A column that the query has as ``TINYINT``, and the table of its state as ``INT``."""
    return exp.cast(column(name), "TINYINT", dialect="spark")


def changes_types(made: AuxiliaryView) -> bool:
    """Whether a state has columns in another type than the query does, and none that it is cast back to."""
    if made.parts or made.around is not None:
        return may_change_types(made.state)
    return short_columns(made.state) is None


def sql_of(node: Node) -> str:
    """The SQL of a query with the names of its scans, to compare it with another query."""
    return Renderer(_Named({scan.source: scan.source for scan in scans(node)})).query(node)


def columns_in_model_table(made: AuxiliaryView) -> dict[str, str] | None:
    """The columns of an auxiliary view that can be stored in the model's own table.

    For each non-key column of the view: the model's column with its value, or its own name if it must be
    stored as a hidden column. ``None`` if the rows do not correspond one to one.
    """
    if not made.parts or made.around is not None or not all(isinstance(part, Project) for part in made.above):
        return None
    stored = {name: name for name, _ in _aggregate(made).aggregates}
    stored |= {name: name for name in _hidden_groups(made)}
    for name, identifier in made.columns:
        below = _below(made, identifier)
        if below is not None and below in made.parts:
            kept = made.parts[below].kept
            if kept is not None and stored[kept] == kept:
                stored[kept] = name
    hidden = {name.lower() for name, shown in stored.items() if name == shown}
    named = {name.lower() for name, _ in made.columns}
    named |= {name.lower() for part in made.above for name in part.output}
    return None if hidden & named else stored


def with_state_sql(
    made: AuxiliaryView, names: Mapping[str, str], stored: Mapping[str, str], types: Mapping[str, str]
) -> str:
    """The SQL of the query with additional columns of its auxiliary view that it does not select.

    :param names: the quoted name of each upstream.
    :param stored: see ``columns_in_model_table``.
    :param types: the types of the columns of the auxiliary view.

    :raises NoState: it would not return the same.
    """
    aggregate = _aggregate(made)
    hidden = [name for name, shown in stored.items() if name == shown]
    groups = _hidden_groups(made)
    more = tuple((name, column(groups.get(name, name))) for name in hidden)
    state = f"(\n{Renderer(_Named(names)).query(aggregate)}\n)"
    node: Node = Scan(STATE, "state", own_names(aggregate.output))
    node = Project(node, (*_items(made, types), *more))
    more = tuple((name, column(name)) for name in hidden)
    for part in reversed(made.above):
        assert isinstance(part, Project)
        node = replace(part, child=node, items=(*part.items, *more))
    shown = (*dict.fromkeys(identifier for _, identifier in made.columns), *hidden)
    inner = Renderer(_Named({STATE: state})).query(node, shown)
    columns = (*made.columns, *((name, name) for name in hidden))
    selected = ", ".join(f"{quoted(identifier)} AS {quoted(name)}" for name, identifier in columns)
    return f"SELECT {selected}\nFROM (\n{inner}\n)"


def _hidden_groups(made: AuxiliaryView) -> dict[str, str]:
    """The hidden columns for groups that the query does not select: a key may be computed from them."""
    shown = {_below(made, identifier) for _, identifier in made.columns}
    groups = ((f"_group_{place}", name) for place, (name, _) in enumerate(_aggregate(made).groups, 1))
    return {hidden: name for hidden, name in groups if name not in shown}


def _below(made: AuxiliaryView, identifier: str) -> str | None:
    """The column of the auxiliary view that a column of the query is; ``None`` if it is computed."""
    name: str | None = identifier
    for part in made.above:
        assert isinstance(part, Project)
        name = None if name is None else plain(dict(part.items)[name])
    return name


def _aggregate(made: AuxiliaryView) -> Aggregate:
    """The aggregate of an auxiliary view, without the constant key of a view with one row."""
    node = made.state.child if isinstance(made.state, Project) else made.state
    assert isinstance(node, Aggregate)
    return node


def _items(made: AuxiliaryView, types: Mapping[str, str]) -> tuple[tuple[str, exp.Expression], ...]:
    """The groups and aggregates of the query, computed from the columns of its auxiliary view."""
    rows = made.state.child if isinstance(made.state, Project) else made.state
    names = [name for name, _ in rows.groups] if isinstance(rows, Aggregate) else made.key
    groups = [(name, column(name)) for name in names]
    values = [(name, _value(part, types)) for name, part in made.parts.items()]
    return (*groups, *values)


@dataclass(frozen=True)
class _Named:
    names: Mapping[str, str]

    def relation(self, source: str, state: State) -> str:
        return self.names[source]


def state_of_sums(
    query: Query, node: Aggregate, above: Sequence[Project | Filter | Limit] = ()
) -> AuxiliaryView | None:
    """Split an aggregate into sums, counts and extremes that can be maintained from a delta.

    :param above: the operators over it.

    :returns: ``None`` if it has other aggregates, or if they would not be exact.
    """
    if node.grouping_sets is not None or not node.aggregates:
        return None
    columns = StateColumns(Types(query.node, query.types))
    parts: dict[str, Part] = {}
    for name, call in node.aggregates:
        part = columns.part(call)
        if part is None:
            return None
        parts[name] = part
    state: Node = replace(node, aggregates=tuple(columns.aggregates))
    if not (key := tuple(name for name, _ in node.groups)):
        items = ((ONE, exp.Literal.number(0)), *((name, column(name)) for name in state.output))
        state, key = Project(state, items), (ONE,)
    read = {name for part in parts.values() for name in (part.total, part.count)}
    spare = frozenset(name for name in columns.inferred if name not in read)
    return AuxiliaryView(state, key, tuple(above), query.columns, parts, spare)


def _unlimited(
    query: Query, key: Sequence[str], above: list[Project | Filter | Limit]
) -> AuxiliaryView | None:
    """Store all rows below the outermost LIMIT, by the model's key."""
    place = next(place for place, part in enumerate(above) if isinstance(part, Limit))
    shown = {name.lower(): identifier for name, identifier in query.columns}
    names = [shown.get(name.lower()) for name in key]
    for part in above[:place]:
        if isinstance(part, Project):
            items = dict(part.items)
            names = [None if name is None else plain(items[name]) for name in names]
    state = above[place].child
    if any(name is None or name not in state.output for name in names):
        return None
    return AuxiliaryView(state, tuple(str(name) for name in names), tuple(above[: place + 1]), query.columns)


def _value(part: Part, types: Mapping[str, str]) -> exp.Expression:
    """An aggregate computed from its sum and its count, as Spark does."""
    if part.total is None:
        assert part.count is not None
        return column(part.count)
    if part.count is None or part.call == "sum":
        return column(part.total)
    total, count = part.total, part.count
    digits = decimal_digits(types[total])
    if digits is None:
        return expression(f"try_divide(CAST({quoted(total)} AS DOUBLE), CAST({quoted(count)} AS DOUBLE))")
    precision, scale = digits
    # Spark sums a decimal(p, s) as decimal(p + 10, s), and its average is a decimal(p + 4, s + 4).
    if precision == 38 or scale + 4 > 38:
        raise NoState(f"the type of {total} does not determine that of the average")
    # The quotient has a scale of s + 21. Spark reduces it to what 38 digits leave, but to no less than 6.
    kept = min(max(38 - (precision - scale), 6), scale + 21)
    if kept - (scale + 4) < _ROWS_OF_AN_AVERAGE:
        raise NoState(f"an average of {types[total]} could be rounded twice")
    average = f"decimal({min(38, precision - 6)},{scale + 4})"
    divided = f"CAST({quoted(total)} / CAST({quoted(count)} AS decimal(20,0)) AS {average})"
    many = 10**_ROWS_OF_AN_AVERAGE
    message = "'an average of so many rows is not computed from their sum'"
    return expression(
        f"CASE WHEN {quoted(count)} >= {many} THEN raise_error({message}) "
        f"WHEN {quoted(count)} > 0 THEN {divided} END"
    )
