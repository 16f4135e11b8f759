"""The inputs of an automatic model: its SQL, relations, views and the time that its result depends on.

No statement is run to find them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_arctic.auto.session_settings import wraps_on_overflow
from dbt_arctic.auto.upstreams import Upstream, View, inspect_upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.table import METADATA_COLUMNS
from dbt_arctic.keyed.version import EVALUATED_AT, Consumed
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.frontend.computed_times import has_computed_times
from dbt_arctic.planner.frontend.parse import is_unseen, named, named_columns, named_relations, parse, spelled
from dbt_arctic.planner.frontend.point_in_time import KNOWN, Clock, Time, calls, may_depend_on_time
from dbt_arctic.planner.frontend.source_text import with_relations
from dbt_arctic.planner.frontend.struct_fields_of_views import with_fields_by_name
from dbt_arctic.planner.properties.facts import UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan, Line, Reason, line_of, of_view
from dbt_arctic.planner.spark.syntax import alias_columns
from dbt_arctic.store.other_catalogs import is_of_others, is_readable, require_own_names

VERSION_OF_RULES = "14"
"""Part of each fingerprint. A change of the planner's rules increases it, so that every model is recomputed
once."""

Until = Callable[[Name], Consumed | None]
"""The version at which a relation is read; ``None`` for the newest."""

DeclaredKeys = Mapping[str, tuple[str, ...]]
"""The key columns that a project declares for tables, by the table's dotted name in lower case."""


@dataclass(frozen=True)
class ModelInputs:
    """What a model's SQL reads. ``views`` and ``upstreams`` by full dotted name in lower case.

    :param tree: the query with full names; ``None`` if it could not be read, because of ``reason``.
    :param is_missing: whether the reason is a relation that does not exist, or not yet.
    :param calls: the functions of time that it calls.
    :param may_depend_on_time: whether it may depend on the time without calling one of these.
    :param now: the time of this refresh; ``None`` if unknown.
    :param last: the time of the last refresh; ``None`` if unknown.
    :param wrap_on_overflow: whether integers wrap around on overflow, as without ANSI mode.
    """

    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    trees: Mapping[str, exp.Query] = field(default_factory=dict)
    tree: exp.Query | None = None
    reason: Reason | None = None
    is_missing: bool = False
    calls: frozenset[str] = frozenset()
    may_depend_on_time: bool = False
    now: Time | None = None
    last: Time | None = None
    wrap_on_overflow: bool = False

    @property
    def time_changed(self) -> bool:
        """Whether the time values of the query have changed since the last refresh."""
        now, last = self.now, self.last
        if now is None or last is None or not self.calls <= KNOWN:
            return bool(self.calls)
        return any(now.literal(call) != last.literal(call) for call in self.calls)

    @property
    def names(self) -> list[str]:
        """The names of all columns of the relations that are read."""
        read = [one.columns for one in self.upstreams.values()]
        return [
            name for columns in (*read, *(one.columns for one in self.views.values())) for name, _ in columns
        ]


class _Missing(CannotPlan):
    """Raised if a relation does not exist."""


def find_inputs(
    catalog: CatalogReader,
    target: Name,
    sql: str,
    last_consumed: Mapping[str, Consumed],
    until: Until = lambda name: None,
    now: Clock | None = None,
    declared: DeclaredKeys | None = None,
    *,
    settings: str,
) -> ModelInputs:
    """Find the relations that a query reads, with views resolved to their tables, and the time of the run.

    :param declared: the declared keys of tables, by dotted name in lower case.
    :param settings: those with which the query is executed. They have no default value, because all queries
        of a model must be analysed for the same ones.
    """
    upstreams: dict[str, Upstream] = {}
    views: dict[str, View] = {}
    trees: dict[str, exp.Query] = {}

    def resolve(tree: exp.Query, home: Name, view: Name | None = None) -> exp.Query:
        for table in tree.find_all(exp.Table):
            if is_unseen(table):
                raise CannotPlan(
                    "unknown-relation",
                    f"{table.sql(dialect='spark')}, which may read anything, in FROM",
                    "read a table, a view or a common table expression",
                    line_of(table),
                )
        for written, table in named_relations(tree).items():
            name = full_name(written, home, line_of(table))
            key = name.dotted.lower()
            if view is not None:
                require_own_names(catalog, view, name)
            if key in upstreams or key in views:
                known = (upstreams.get(key) or views[key]).name
                if known.dotted != name.dotted and _are_two(catalog, known, name):
                    what = f"{known} and {name}, which differ only in upper and lower case"
                    raise CannotPlan(
                        "unknown-relation",
                        what,
                        "spell one relation in one way, or rename one of two",
                        line_of(table),
                    )
                continue
            if not is_readable(catalog, name, target):
                raise CannotPlan(
                    "unknown-relation",
                    f"{written} is not in the catalog {target.catalog}: its changes cannot be tracked",
                    "copy it into a table of this catalog first, or add its catalog in profiles.yml under "
                    "catalogs",
                    line_of(table),
                )
            found = inspect_upstream(
                catalog, name, last_consumed.get(name.dotted), until(name), (declared or {}).get(key, ())
            )
            if found is None:
                what = f"{written} is neither a table nor a view of {name.catalog}"
                raise _Missing("unknown-relation", what, "read a table, a view or a model", line_of(table))
            if isinstance(found, View):
                views[key] = found
                with of_view(key):
                    trees[key] = resolve(with_fields_by_name(parse(found.sql)), found.home, name)
            else:
                upstreams[key] = found
        return named(tree, lambda written: full_name(written, home).dotted.lower())

    # Spark completes names by its own catalog, which is not that of the target then.
    home = replace(target, catalog="", schema="") if is_of_others(catalog, target) else target
    try:
        tree = resolve(parse(sql), home)
    except CannotPlan as error:
        return ModelInputs(upstreams, views, trees, None, error.reason, isinstance(error, _Missing))
    names = ModelInputs(upstreams, views).names
    texts = [("", tree), *trees.items()]
    metadata = next((one for view, part in texts for one in _of_metadata(part, view, names)), None)
    if metadata is not None:
        return ModelInputs(upstreams, views, trees, None, metadata)
    known = last_consumed.get(EVALUATED_AT)
    last = Clock(known.table_id, known.version) if known is not None else None
    wraps = wraps_on_overflow(settings)
    found = ModelInputs(upstreams, views, trees, tree, now=now, last=last, wrap_on_overflow=wraps)
    called = (
        name for one in (tree, *trees.values()) for _, name in calls(one, named_columns(one, found.names))
    )
    return replace(
        found,
        calls=frozenset(called),
        may_depend_on_time=any(
            may_depend_on_time(one) or has_computed_times(one) for one in (tree, *trees.values())
        ),
    )


def _are_two(catalog: CatalogReader, one: Name, other: Name) -> bool:
    """Whether two names in different case are two relations, in a catalog with case-sensitive names."""
    first, second = (inspect_upstream(catalog, name, None) for name in (one, other))
    if isinstance(first, Upstream) and isinstance(second, Upstream):
        return first.consumed.table_id != second.consumed.table_id
    if isinstance(first, View) and isinstance(second, View):
        return (first.sql, first.columns) != (second.sql, second.columns)
    return True


def _of_metadata(tree: exp.Query, view: str, names: Sequence[str]) -> Iterator[Reason]:
    """Reasons for Iceberg's metadata columns, which the query of a table at a version does not have.

    :param view: the view whose text is checked; empty for the model's SQL.
    """
    hidden = set(METADATA_COLUMNS) - named_columns(tree, names)
    for column in tree.find_all(exp.Column) if hidden else ():
        if column.name.lower() in hidden:
            what = f"{column.name}, a column of Iceberg's metadata"
            fix = "copy it into a column of a table first"
            line = line_of(column)
            yield Reason("unsupported", what, fix, None if line is None else line.number, view)


def analysed_query(inputs: ModelInputs, columns: Sequence[str] | None) -> Query:
    """The operators of the model's query.

    :raises CannotPlan: with the reason.
    """
    assert inputs.tree is not None
    schemas = {name: upstream.columns for name, upstream in inputs.upstreams.items()}
    schemas |= {name: view.columns for name, view in inputs.views.items()}
    return analyse_query(
        inputs.tree,
        schemas,
        columns,
        inputs.trees,
        inputs.now,
        inputs.last,
        wrap_on_overflow=inputs.wrap_on_overflow,
    )


def full_name(written: str, home: Name, line: Line | None = None) -> Name:
    """A dotted name, completed by the catalog and schema of ``home``.

    :param line: its line in the text.

    :raises CannotPlan: the name has too many parts, or ``home`` has no schema.
    """
    parts = written.split(".")
    if len(parts) > 3:
        what = f"{written} has more than three parts"
        raise CannotPlan("unknown-relation", what, "name it as catalog, schema and table", line)
    catalog, schema, identifier = [home.catalog, home.schema][: 3 - len(parts)] + parts
    if not catalog:
        raise CannotPlan(
            "unknown-relation",
            f"{written} has no catalog in its name, and the model is not in the profile's own catalog",
            "write it with source() or ref(), or with the name of its catalog",
            line,
        )
    if not schema:
        raise CannotPlan(
            "unknown-relation",
            f"{home} names {written}, and the catalog does not record its schema",
            "name the schema in the view, too",
            line,
        )
    return Name(catalog, schema, identifier)


def pinned_text(sql: str, target: Name, inputs: ModelInputs) -> str:
    """The model's own SQL over the consumed versions of relations, with literals for functions of time."""
    more: dict[str, list[str]] = {}

    def made(text: str, home: Name) -> str:
        def text_of(written: str) -> str | None:
            key = full_name(written, home).dotted.lower()
            if key in inputs.views:
                view = inputs.views[key]
                if key not in more:
                    more[key] = _more(inputs, key)
                names = quote_all([name for name, _ in view.columns] + more[key])
                with of_view(key):
                    text = made(view.sql, view.home)
                # The columns of a view keep the types that they were created with, whatever its text returns
                # now.
                cast = ", ".join(
                    f"CAST({quote(one)} AS {type_}) AS {quote(one)}" for one, type_ in view.columns
                )
                return f"SELECT {cast} FROM (\n{text}\n) AS _view({names})"
            return inputs.upstreams[key].states["new"]

        return with_relations(text, text_of, inputs.now, inputs.names)

    return made(sql, target)


def _more(inputs: ModelInputs, key: str) -> list[str]:
    """Placeholder names for additional columns of a view's text, which its table got after ``SELECT *``."""
    view, tree = inputs.views[key], inputs.trees[key]
    if not tree.is_star:
        return []
    schemas = {name: upstream.columns for name, upstream in inputs.upstreams.items()}
    schemas |= {name: other.columns for name, other in inputs.views.items()}
    try:
        text = analyse_query(
            tree, schemas, None, inputs.trees, inputs.now, wrap_on_overflow=inputs.wrap_on_overflow
        )
    except CannotPlan:
        return []
    return [f"_more_{place}" for place in range(len(view.columns), len(text.columns))]


def fingerprint_of(
    sql: str, inputs: ModelInputs, unique_key: Sequence[str], settings: str, made_of: str = ""
) -> str:
    """The fingerprint of the inputs that determine the result, apart from the rows.

    White space and comments are ignored.

    :param made_of: the model's own SQL, if ``sql`` was generated from it. Two models may generate the same
        SQL.
    """
    views = [
        f"{name}({', '.join(' '.join(column) for column in view.columns)})={spelled(view.sql)}"
        for name, view in sorted(inputs.views.items())
    ]
    own = [spelled(made_of)] if made_of else []
    declared = [
        f"{name} has the key {' '.join(one.key)}"
        for name, one in sorted(inputs.upstreams.items())
        if one.is_declared
    ]
    parts = [VERSION_OF_RULES, settings, *unique_key, spelled(sql), *own, *views, *_columns_read(inputs)]
    parts += declared
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _columns_read(inputs: ModelInputs) -> list[str]:
    """The columns that a query reads, each with its type and field id.

    These are all columns if the query has ``*``, or renames columns by position. A column that was dropped
    and added again is another column, and with another type it may have other values.
    """
    trees = [tree for tree in (inputs.tree, *inputs.trees.values()) if tree is not None]
    stars = (star.parent for tree in trees for star in tree.find_all(exp.Star))
    renames = any(alias_columns(table) for tree in trees for table in tree.find_all(exp.Table))
    natural = any(join.method == "NATURAL" for tree in trees for join in tree.find_all(exp.Join))
    everything = renames or natural or any(not isinstance(parent, exp.Count) for parent in stars)
    named = {one.name.lower() for tree in trees for one in tree.find_all(exp.Identifier)}
    return [
        f"{source}.{name}:{type_}#{upstream.field_ids.get(name, 0)}"
        for source, upstream in sorted(inputs.upstreams.items())
        for name, type_ in upstream.columns
        if everything or name.lower() in named
    ]


def facts_of(upstream: Upstream) -> UpstreamFacts:
    """The facts about an upstream that the planner uses."""
    return UpstreamFacts(
        upstream.changed,
        upstream.key,
        upstream.rows,
        upstream.changed_rows,
        upstream.ranges,
        logged=upstream.logged,
        has_weights="weighted" in upstream.states,
    )
