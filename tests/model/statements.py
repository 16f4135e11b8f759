"""The statements that dbt-arctic runs, as changes of a ``Lake``. Any other statement is an error.

The meaning of a statement is derived from its text alone, not from dbt-arctic's intention.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import literal
from tests.model.duck import Duck, QueryFailed, duck_type, unescape
from tests.model.lake import MAIN, MANIFEST_BYTES, Commit, Field, File, Lake, Refused, Table, View

_PART = r"`(?:[^`]|``)+`"
NAME = rf"{_PART}\.{_PART}\.{_PART}"
_TEXT = r"'(?:[^'\\]|\\.)*'"
_QUOTED = re.compile(rf"{_PART}|{_TEXT}")
_PROPERTY = re.compile(rf"({_TEXT})\s*=\s*({_TEXT})")
_OPTION = re.compile(rf"({_PART})\s*=\s*({_TEXT})")
_WHEN = re.compile(
    r"WHEN (?P<not>NOT )?MATCHED(?: AND (?P<condition>.*?))? THEN "
    r"(?P<do>DELETE|UPDATE SET (?P<set>.*)|INSERT \((?P<columns>.*?)\) VALUES \((?P<values>.*)\))"
)
_TEMPORARY = re.compile(
    rf"{_TEXT}|{_PART}\.{_PART}\.{_PART}|\.{_PART}|{_PART}(?=[.(])(?<!`global_temp`)"
    rf"|(?P<global>`global_temp`\.)?(?P<name>{_PART})"
)
KEPT = "kept in memory"
"""In place of a catalog: where the rows of temporary views are."""
_NUMBERS = itertools.count(1)
_SNAPSHOT_PROPERTY = "snapshot-property."
_SESSION_PROPERTY = "spark.sql.iceberg.snapshot-property."

Handler = Callable[["Interpreter", "re.Match[str]"], int]
HANDLERS: list[tuple[re.Pattern[str], Handler]] = []


def statement(pattern: str) -> Callable[[Handler], Handler]:
    """Register what runs statements of a form: the pattern matches the whole text."""

    def register(handler: Handler) -> Handler:
        HANDLERS.append((re.compile(pattern, re.DOTALL), handler))
        return handler

    return register


def unquote(identifier: str) -> str:
    return identifier[1:-1].replace("``", "`")


def parts_of(name: str) -> list[str]:
    return [unquote(part) for part in re.findall(_PART, name)]


def split_list(text: str) -> list[str]:
    """A list of SQL expressions at its top level."""
    found, depth, start, at = [], 0, 0, 0
    while at < len(text):
        character = text[at]
        if character in "`'":
            quoted = _QUOTED.match(text, at)
            assert quoted is not None, text
            at = quoted.end() - 1
        elif character in "(<":
            depth += 1
        elif character in ")>" and text[at - 1] != "=":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
        at += 1
    return [*found, text[start:].strip()]


@dataclass
class TemporaryView:
    """A view of a session, or of all sessions.

    :param keeps: whether its rows are kept, from the first query that reads them.
    :param rows: the DuckDB table with the rows that are kept.
    """

    sql: str
    keeps: bool = False
    rows: str = ""

    def drop(self, duck: Duck) -> None:
        if self.rows:
            duck.drop(self.rows)


@dataclass
class Shared:
    """What the sessions of one lake share: the rows of snapshots as DuckDB tables, made when first read."""

    lake: Lake
    duck: Duck
    made: dict[tuple[int, tuple[Field, ...]], str] = field(default_factory=dict)
    views: dict[str, TemporaryView] = field(default_factory=dict)
    """Global temporary views."""

    def new_name(self) -> str:
        """A name that no lake of this process has had: not every one is closed."""
        return f"snapshot_{next(_NUMBERS)}"

    def physical(self, commit: Commit | None, fields: tuple[Field, ...]) -> str:
        key = (0 if commit is None else commit.snapshot_id, fields)
        if key not in self.made:
            name = self.new_name()
            columns = [(one.name, duck_type(one.type)) for one in fields]
            columns += [("_row_id", "BIGINT"), ("_last_updated_sequence_number", "BIGINT")]
            ids = [one.field_id for one in fields]
            rows = [
                (*(row.values.get(number) for number in ids), row.row_id, row.sequence)
                for row in (() if commit is None else commit.rows())
            ]
            self.duck.table(name, columns, rows)
            self.made[key] = name
        return self.made[key]

    def close(self) -> None:
        for name in self.made.values():
            self.duck.drop(name)
        self.made.clear()
        for view in self.views.values():
            view.drop(self.duck)
        self.views.clear()


@dataclass
class Interpreter:
    """One session: its conf, and its view of the lake.

    :param caches: Iceberg's catalog cache: a table that was read once is read as it was then.
    """

    shared: Shared
    conf: dict[str, str] = field(default_factory=dict)
    caches: bool = False
    views: dict[str, TemporaryView] = field(default_factory=dict)
    """Temporary views of this session."""
    _cached: dict[tuple[str, str], tuple[Commit | None, tuple[Field, ...]]] = field(default_factory=dict)

    @property
    def lake(self) -> Lake:
        return self.shared.lake

    def run(self, sql: str) -> int | None:
        """:returns: rows written; ``None`` where that has no meaning."""
        for pattern, handler in HANDLERS:
            found = pattern.fullmatch(sql.strip())
            if found is not None:
                return handler(self, found)
        raise NotImplementedError(f"the model of Iceberg does not know the statement\n{sql}")

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        if sql.startswith("EXPLAIN COST "):
            return []  # the size of a result is unknown
        return self.shared.duck.query(self._expanded(sql), self._resolve)

    def schema(self, sql: str) -> list[ColumnInfo]:
        return self.shared.duck.schema(self._expanded(sql), self._resolve)

    def _expanded(self, sql: str) -> str:
        """The query with the text of views in their place."""

        def expand(found: re.Match[str]) -> str:
            _, schema, name = parts_of(found.group(1))
            view = self.lake.relations.get((schema, name))
            if not isinstance(view, View):
                return found.group()
            names = ", ".join(f"`{column}`" for column, _, _ in view.columns)
            return f"(SELECT {names} FROM ({self._expanded(view.sql)}))"

        sql = re.sub(rf"({NAME})\.(all_files|manifests)\b", self._metadata, sql)
        return re.sub(rf"({NAME})(?![.(`])", expand, _TEMPORARY.sub(self._temporary, sql))

    def _metadata(self, found: re.Match[str]) -> str:
        """The rows of a metadata table."""
        table = self.lake.table(*parts_of(found[1])[1:])
        if found[2] == "all_files":
            paths = sorted({file.path for commit in table.commits.values() for file, _ in commit.files})
            return _listed("file_path", [f"({literal(path)})" for path in paths])
        columns = "content, partition_spec_id, length, deleted_data_files_count"
        head = table.head
        one = [] if head is None else [f"(0, 0, {MANIFEST_BYTES}, {len(head.removed)})"]
        return _listed(columns, one)

    def _temporary(self, found: re.Match[str]) -> str:
        """The text of a temporary view, or a name like a table's for the rows that are kept of it."""
        if not (name := found["name"]):
            return found.group()
        views, of = (self.shared.views, "global") if found["global"] else (self.views, "session")
        view = views.get(unquote(name))
        if view is None:
            return found.group()
        return f"`{KEPT}`.`{of}`.{name}" if view.keeps else f"({self._expanded(view.sql)})"

    def has_row(self, table: Table, file: File, condition: str) -> bool:
        """Whether a file has a row that meets a condition, also among those that are hidden."""
        columns = [(one.name, duck_type(one.type)) for one in table.fields]
        rows = [tuple(row.values.get(one.field_id) for one in table.fields) for row in file.rows]
        name = self.shared.new_name()
        self.shared.duck.table(name, columns, rows)
        found = self.shared.duck.query(f"SELECT count(*) FROM {name} WHERE {condition}", self._resolve)
        self.shared.duck.drop(name)
        return bool(found[0][0])

    def kept_rows(self, view: TemporaryView) -> str:
        """The DuckDB table with the rows of a view: they are computed once."""
        if not view.rows:
            text = self.shared.duck.translate(self._expanded(view.sql), self._resolve)
            view.rows = self.shared.new_name()
            self.shared.duck.keep(view.rows, text)
        return view.rows

    def _resolve(self, reference: str, hidden: bool) -> str:
        text, _, version = reference.partition(" VERSION AS OF ")
        catalog, schema, name, *rest = parts_of(text)
        if catalog == KEPT:
            return self.kept_rows((self.shared.views if schema == "global" else self.views)[name])
        table = self.lake.table(schema, name)
        if version:
            commit = table.require_commit(int(version))
            fields = commit.fields
        else:
            branch = rest[0].removeprefix("branch_") if rest else MAIN
            commit, fields = table.require_branch(branch), table.fields
            if self.caches and not rest:
                commit, fields = self._cached.setdefault((schema, name), (commit, fields))
        physical = self.shared.physical(commit, fields)
        if hidden:
            return physical
        return f"(SELECT {', '.join(chr(34) + one.name + chr(34) for one in fields)} FROM {physical})"

    def target(self, name: str) -> tuple[Table, str]:
        """A table that is written to, and which branch of it."""
        _, schema, identifier, *rest = parts_of(name)
        branch = rest[0].removeprefix("branch_") if rest else MAIN
        table = self.lake.table(schema, identifier)
        table.require_branch(branch)
        self._cached.pop((schema, identifier), None)  # a session that writes to a table reloads it
        return table, branch

    def session_summary(self) -> dict[str, str]:
        return {
            name.removeprefix(_SESSION_PROPERTY): value
            for name, value in self.conf.items()
            if name.startswith(_SESSION_PROPERTY)
        }


def _listed(columns: str, rows: list[str]) -> str:
    """SQL of a relation with these rows."""
    count = columns.count(",") + 1
    listed = rows or [f"({', '.join(['NULL'] * count)})"]
    nothing = "" if rows else " WHERE false"
    return f"(SELECT {columns} FROM VALUES {', '.join(listed)} AS s({columns}){nothing})"


def properties_of(text: str | None) -> dict[str, str]:
    return {unescape(name): unescape(value) for name, value in _PROPERTY.findall(text or "")}


@statement(
    rf"CREATE (?P<replace>OR REPLACE )?TABLE (?P<name>{NAME}) \(\n(?P<columns>.*)\n\)\nUSING iceberg\n"
    r"(?:PARTITIONED BY \((?P<partitions>.*)\)\n)?TBLPROPERTIES \((?P<properties>.*)\)"
)
def _create_table(session: Interpreter, found: re.Match[str]) -> int | None:
    _, schema, name = parts_of(found["name"])
    columns = []
    for text in split_list(found["columns"]):
        parsed = re.fullmatch(rf"({_PART}) (\S+?)( NOT NULL)?(?: COMMENT ({_TEXT}))?", text)
        assert parsed is not None, text
        comment = unescape(parsed[4]) if parsed[4] else ""
        columns.append((unquote(parsed[1]), parsed[2], comment, not parsed[3]))
    properties = properties_of(found["properties"])
    if found["replace"]:
        session.lake.replace_table(schema, name, columns, properties)
    else:
        session.lake.create_table(schema, name, columns, properties, found["partitions"] or "")
    return None


@statement(
    rf"CREATE (?P<replace>OR REPLACE )?VIEW (?P<name>{NAME})(?: \((?P<columns>.*?)\))?"
    rf"(?:\nCOMMENT (?P<comment>{_TEXT}))?"
    r"(?:\nTBLPROPERTIES \((?P<properties>[^\n]*)\))?\sAS\s(?P<sql>.*)"
)
def _replace_view(session: Interpreter, found: re.Match[str]) -> int | None:
    _, schema, name = parts_of(found["name"])
    if not found["replace"] and (schema, name) in session.lake.relations:
        raise Refused(f"[VIEW_ALREADY_EXISTS] Cannot create view `{schema}`.`{name}`")
    types = session.schema(found["sql"])
    declared = []
    for text in split_list(found["columns"]) if found["columns"] else [f"`{one.name}`" for one in types]:
        parsed = re.fullmatch(rf"({_PART})(?: COMMENT ({_TEXT}))?", text)
        assert parsed is not None, text
        declared.append((unquote(parsed[1]), unescape(parsed[2]) if parsed[2] else ""))
    columns = tuple(
        (column, type_.type, comment) for (column, comment), type_ in zip(declared, types, strict=True)
    )
    comment = unescape(found["comment"]) if found["comment"] else ""
    session.lake.replace_view(
        View(schema, name, properties_of(found["properties"]), columns, found["sql"], comment)
    )
    return None


@statement(rf"ALTER VIEW (?P<name>{NAME}) SET TBLPROPERTIES \((?P<properties>.*)\)")
def _alter_view(session: Interpreter, found: re.Match[str]) -> int | None:
    view = session.lake.view(*parts_of(found["name"])[1:])
    session.lake.replace_view(replace(view, properties=properties_of(found["properties"])))
    return None


@statement(rf"ALTER VIEW (?P<name>{NAME}) UNSET TBLPROPERTIES IF EXISTS \((?P<properties>.*)\)")
def _unset_view_properties(session: Interpreter, found: re.Match[str]) -> int | None:
    view = session.lake.view(*parts_of(found["name"])[1:])
    for text in split_list(found["properties"]):
        view.properties.pop(unescape(text), None)
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) SET TBLPROPERTIES \((?P<properties>.*)\)")
def _set_properties(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    table.properties.update(properties_of(found["properties"]))
    table.changes += 1
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) UNSET TBLPROPERTIES(?: IF EXISTS)? \((?P<properties>.*)\)")
def _unset_property(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    for text in split_list(found["properties"]):
        table.properties.pop(unescape(text), None)
    table.changes += 1
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) WRITE LOCALLY ORDERED BY .*")
def _order(session: Interpreter, found: re.Match[str]) -> int | None:
    session.target(found["name"])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) ADD COLUMNS \((?P<columns>.*)\)")
def _add_columns(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    columns = [text.split(" ", 1) for text in split_list(found["columns"])]
    session.lake.add_columns(table, [(unquote(name), type_) for name, type_ in columns])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) DROP COLUMNS \((?P<columns>.*)\)")
def _drop_columns(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.drop_columns(table, [unquote(name) for name in split_list(found["columns"])])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) ALTER COLUMN (?P<column>{_PART}) TYPE (?P<type>\S+)")
def _widen(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    old = table.field_named(unquote(found["column"]))
    session.lake.replace_field(table, replace(old, type=found["type"]))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) ALTER COLUMN (?P<columns>.* DROP NOT NULL)")
def _drop_not_null(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    for text in split_list(found["columns"]):
        old = table.field_named(unquote(text.removesuffix(" DROP NOT NULL")))
        session.lake.replace_field(table, replace(old, nullable=True))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) ALTER COLUMN (?P<column>{_PART}) COMMENT (?P<comment>{_TEXT})")
def _comment_column(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    old = table.field_named(unquote(found["column"]))
    session.lake.replace_field(table, replace(old, comment=unescape(found["comment"])))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) RENAME TO (?P<to>{_PART}\.{_PART})")
def _rename(session: Interpreter, found: re.Match[str]) -> int | None:
    _, schema, name = parts_of(found["name"])
    session.lake.rename_table(schema, name, parts_of(found["to"])[1])
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) CREATE BRANCH (?P<branch>{_PART})(?: AS OF VERSION (?P<at>\d+))?")
def _create_branch(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.create_branch(table, unquote(found["branch"]), int(found["at"]) if found["at"] else None)
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) CREATE TAG (?P<tag>{_PART}) AS OF VERSION (?P<at>\d+)")
def _create_tag(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.create_tag(table, unquote(found["tag"]), int(found["at"]))
    return None


@statement(rf"ALTER TABLE (?P<name>{NAME}) DROP (?:BRANCH|TAG) IF EXISTS (?P<reference>{_PART})")
def _drop_reference(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    session.lake.drop_reference(table, unquote(found["reference"]))
    return None


@statement(rf"COMMENT ON TABLE (?P<name>{NAME}) IS (?P<comment>{_TEXT})")
def _comment(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    table.properties["comment"] = unescape(found["comment"])
    return None


@statement(rf"DROP (?P<kind>TABLE|VIEW) (?P<lenient>IF EXISTS )?(?P<name>{NAME})(?: PURGE)?")
def _drop(session: Interpreter, found: re.Match[str]) -> int | None:
    _, schema, name = parts_of(found["name"])
    if not found["lenient"]:
        (session.lake.table if found["kind"] == "TABLE" else session.lake.view)(schema, name)
    session.lake.drop(schema, name, Table if found["kind"] == "TABLE" else View)
    return None


@statement(rf"CACHE (?P<lazy>LAZY )?TABLE (?P<name>{_PART}) AS\n(?P<sql>.*)")
def _cache_query(session: Interpreter, found: re.Match[str]) -> int | None:
    name = unquote(found["name"])
    if name in session.views:
        raise Refused(f"[TEMP_TABLE_OR_VIEW_ALREADY_EXISTS] Cannot create the temporary view `{name}`")
    session.schema(found["sql"])  # it is analysed now, whenever it runs
    session.views[name] = TemporaryView(found["sql"], keeps=True)
    if not found["lazy"]:
        session.kept_rows(session.views[name])
    return None


@statement(rf"CREATE OR REPLACE (?P<global>GLOBAL )?TEMPORARY VIEW (?P<name>{_PART}) AS\n(?P<sql>.*)")
def _temporary_view(session: Interpreter, found: re.Match[str]) -> int | None:
    session.schema(found["sql"])
    views = session.shared.views if found["global"] else session.views
    name = unquote(found["name"])
    if name in views:
        views[name].drop(session.shared.duck)
    views[name] = TemporaryView(found["sql"])
    return None


@statement(rf"CACHE TABLE `global_temp`\.(?P<name>{_PART})")
def _cache_view(session: Interpreter, found: re.Match[str]) -> int | None:
    view = session.shared.views.get(unquote(found["name"]))
    if view is None:
        raise Refused(f"[TABLE_OR_VIEW_NOT_FOUND] `global_temp`.{found['name']} cannot be found")
    session.kept_rows(view)
    view.keeps = True
    return None


@statement(rf"DROP VIEW IF EXISTS (?P<global>`global_temp`\.)?(?P<name>{_PART})")
def _drop_temporary(session: Interpreter, found: re.Match[str]) -> int | None:
    views = session.shared.views if found["global"] else session.views
    view = views.pop(unquote(found["name"]), None)
    if view is not None:
        view.drop(session.shared.duck)
    return None


@statement(rf"SET (?P<name>{_PART})=(?P<value>.*)")
def _set(session: Interpreter, found: re.Match[str]) -> int | None:
    value = found["value"]
    session.conf[unquote(found["name"])] = unquote(value) if value.startswith("`") else value
    return None


@statement(rf"RESET (?P<name>{_PART})")
def _reset(session: Interpreter, found: re.Match[str]) -> int | None:
    session.conf.pop(unquote(found["name"]), None)
    return None


@statement(rf"CALL {_PART}\.system\.(?P<procedure>\w+)\((?P<arguments>.*)\)")
def _call(session: Interpreter, found: re.Match[str]) -> int | None:
    arguments = dict(text.split(" => ", 1) for text in split_list(found["arguments"]))
    schema, name = parts_of(unescape(arguments.pop("table")))
    table = session.lake.table(schema, name)
    procedure = found["procedure"]
    if procedure == "fast_forward":
        session.lake.fast_forward(table, unescape(arguments["branch"]), unescape(arguments["to"]))
    elif procedure == "cherrypick_snapshot":
        session.lake.cherry_pick(table, int(arguments["snapshot_id"]))
    elif procedure == "rewrite_data_files":
        takes = _takes(session, table, unescape(arguments.get("where", "''")))
        session.lake.rewrite(table, takes, every="'rewrite-all', 'true'" in arguments.get("options", ""))
    elif procedure == "rewrite_manifests":
        session.lake.rewrite_manifests(table)
    elif procedure == "expire_snapshots":
        older = re.fullmatch(r"timestamp_millis\((\d+)\)", arguments["older_than"])
        assert older is not None, arguments
        session.lake.expire(table, int(older[1]), int(arguments.get("retain_last", "1")))
    else:
        raise NotImplementedError(procedure)
    return None


def _takes(session: Interpreter, table: Table, condition: str) -> Callable[[File], bool]:
    """Which files a rewrite takes: by the bounds of ``_txn`` if that is the condition, else by the rows."""
    if not condition or ".system.bucket(" in condition:
        return lambda file: True  # there is one bucket
    if condition != "`_txn` > 0":
        return lambda file: session.has_row(table, file, condition)
    txn = table.field_named("_txn").field_id

    def takes(file: File) -> bool:
        high = file.bounds(txn)[1]
        return high is None or high > 0

    return takes


@statement(
    rf"INSERT INTO (?P<target>{NAME}(?:\.{_PART})?)(?: WITH \((?P<options>[^\n]*?)\))? "
    r"\((?P<columns>[^\n]*?)\)\n(?P<sql>.*)"
)
def _insert(session: Interpreter, found: re.Match[str]) -> int | None:
    table, branch = session.target(found["target"])
    options = {unquote(name): unescape(value) for name, value in _OPTION.findall(found["options"] or "")}
    summary = session.session_summary()
    for name, value in options.items():
        if name.startswith(_SNAPSHOT_PROPERTY):
            summary[name.removeprefix(_SNAPSHOT_PROPERTY)] = value
    ids = [table.field_named(unquote(name)).field_id for name in split_list(found["columns"])]
    rows = [dict(zip(ids, row, strict=True)) for row in session.query(found["sql"])]
    session.lake.append(table, branch, rows, summary)
    return len(rows)


@statement(
    rf"ALTER TABLE (?P<name>{NAME}) REPLACE PARTITION FIELD bucket\((?P<now>\d+, {_PART})\) "
    rf"WITH bucket\((?P<to>\d+, {_PART})\)"
)
def _partition_anew(session: Interpreter, found: re.Match[str]) -> int | None:
    table, _ = session.target(found["name"])
    if table.partitioned_by != f"bucket({found['now']})":
        raise Refused(f"Cannot find partition field to remove: bucket({found['now']})")
    table.partitioned_by = f"bucket({found['to']})"
    table.changes += 1
    return None


@statement(rf"DELETE FROM (?P<target>{NAME}(?:\.{_PART})?)\nWHERE (?P<condition>.*)")
def _delete(session: Interpreter, found: re.Match[str]) -> int | None:
    table, branch = session.target(found["target"])
    rows = session.query(f"SELECT `_row_id` FROM {found['target']} WHERE {found['condition']}")
    doomed = frozenset(row[0] for row in rows)
    whole = _whole_files(table, table.require_branch(branch), found["condition"])
    if whole is None:
        session.lake.delete_rows(table, branch, doomed, session.session_summary())
        return len(doomed)
    session.lake.delete_files(table, branch, whole)
    return None


def _whole_files(table: Table, head: Commit | None, condition: str) -> frozenset[str] | None:
    """The files to drop, if the bounds of each file show that all of its rows satisfy the condition, or none.

    Known for the two forms that dbt-arctic writes: ``_txn IN (...)``, and with ``_action <> 'D'``.
    """
    form = re.fullmatch(r"`_txn` IN \((?P<list>[\d, ]+)\)(?P<no_deletes> AND `_action` <> 'D')?", condition)
    if form is None or head is None:
        return None
    wanted = {int(text) for text in form["list"].split(",")}
    txn, action = (table.field_named(name).field_id for name in ("_txn", "_action"))
    whole = set()
    for file, _ in head.files:
        low, high = file.bounds(txn)
        if low is None or high is None or not any(low <= one <= high for one in wanted):
            continue
        if low != high or (form["no_deletes"] and "D" in file.bounds(action)):
            return None
        whole.add(file.path)
    return frozenset(whole)


@statement(
    rf"MERGE INTO (?P<target>{NAME}(?:\.{_PART})?) AS (?P<t>\w+)\n"
    r"USING \(\n(?P<source>.*)\n\) AS (?P<s>\w+)\n  ON (?P<on>[^\n]*)\n(?P<whens>WHEN .*)"
)
def _merge(session: Interpreter, found: re.Match[str]) -> int | None:
    table, branch = session.target(found["target"])
    whens = list(_when_clauses(found["whens"]))
    selected = [f"{found['t']}.`_row_id` AS `target_row`"]
    places: list[tuple[int, int]] = []
    for when in whens:
        condition = when["condition"] or "true"
        expressions = _values_of(when)
        places.append((len(selected), len(expressions)))
        selected += [f"({condition})", *expressions]
    # A row of the target is read with all its columns: an update keeps what it does not set.
    sql = (
        f"SELECT {', '.join(f'{text} AS `merge_{at}`' if at else text for at, text in enumerate(selected))}\n"
        f"FROM (\n{found['source']}\n) AS {found['s']}\nLEFT JOIN {found['target']} AS {found['t']}\n"
        f"  ON {found['on']}"
    )
    head = table.require_branch(branch)
    stored = {row.row_id: row for row in (() if head is None else head.rows())}
    hidden: set[int] = set()
    updated: list[tuple[int, dict[int, Any]]] = []
    inserted: list[dict[int, Any]] = []
    for row in session.query(sql):
        matched = row[0] is not None
        for when, (at, width) in zip(whens, places, strict=True):
            if matched == bool(when["not"]) or not row[at]:
                continue
            if matched and row[0] in hidden:
                raise Refused("[MERGE_CARDINALITY_VIOLATION] a row of the target matched more than one")
            ids = [table.field_named(name).field_id for name in _names_of(when)]
            values = dict(zip(ids, row[at + 1 : at + 1 + width], strict=True))
            if not matched:
                inserted.append(values)
            else:
                hidden.add(row[0])
                if when["do"] != "DELETE":
                    updated.append((row[0], {**stored[row[0]].values, **values}))
            break
    session.lake.merge(table, branch, frozenset(hidden), updated, inserted, session.session_summary())
    return len(hidden) + len(inserted)


def _when_clauses(text: str) -> Iterator[re.Match[str]]:
    for line in text.split("\n"):
        found = _WHEN.fullmatch(line)
        assert found is not None, line
        yield found


def _names_of(when: re.Match[str]) -> list[str]:
    if when["columns"]:
        return [unquote(name) for name in split_list(when["columns"])]
    if when["set"]:
        pairs = [text.split(" = ", 1) for text in split_list(when["set"])]
        return [parts_of(target)[-1] for target, _ in pairs]
    return []


def _values_of(when: re.Match[str]) -> list[str]:
    if when["values"]:
        return split_list(when["values"])
    if when["set"]:
        return [text.split(" = ", 1)[1] for text in split_list(when["set"])]
    return []


__all__ = ["Interpreter", "QueryFailed", "Shared"]
