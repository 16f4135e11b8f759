"""``restore``: makes an existing generation current, to restore a lost view or to undo a full refresh."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader, ViewState
from dbt_arctic.errors import (
    ArcticError,
    CatalogUnavailable,
    ConfigError,
    DamagedKeyedTable,
    VersionUnavailable,
)
from dbt_arctic.keyed import create
from dbt_arctic.keyed.create import PROPERTY_DROPPED_BY
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_ID, Generation, KeyedTable, is_keyed, side_name
from dbt_arctic.keyed.without_views import record_of
from dbt_arctic.maintenance.finding import rebuild_command, restore_command
from dbt_arctic.maintenance.generations import generation_of, load_sides
from dbt_arctic.maintenance.view_checks import check_body
from dbt_arctic.store.context import Context
from dbt_arctic.store.generations import generation_numbers, load_generation
from dbt_arctic.store.lease import build_in_progress_error, find_build
from dbt_arctic.store.other_catalogs import require_same_name
from dbt_arctic.store.publish_view import ViewObservation, observe_view, publish_generation
from dbt_arctic.store.replay import RetiredGeneration, carry_over, pin_retired
from dbt_arctic.store.state import keyed_from_view, load_change


def undo_full_refresh(context: Context, name: Name) -> KeyedTable:
    """Make the previous generation current. The current one becomes the previous one; undo again to redo.

    :raises ConfigError: there is no previous generation.
    """
    return restore_table(context, name, previous_generation(context.catalog, name))


def previous_generation(catalog: CatalogReader, name: Name) -> int:
    """The number of the generation before the last full refresh.

    :raises ConfigError: there is none.
    """
    shown, _ = _shown(catalog, name)
    if shown is None or shown.previous is None:
        table = f"{name.schema}.{name.identifier}"
        raise ConfigError(
            f"{name} has no previous generation",
            where=name.dotted,
            why="it was never fully refreshed, or dbt-arctic clean removed the previous generation",
            fix=f"return to a version that dbt-arctic history {table} lists: "
            f"dbt-arctic rollback {table} VERSION",
        )
    return shown.previous.number


def restore_table(context: Context, name: Name, number: int | None = None) -> KeyedTable:
    """Rewrite the view of a generation from the properties of its side tables.

    :param number: the generation; by default the one that the view refers to, or the newest complete one.
    :raises ConfigError: another relation has the name and would be lost, or other clients could not read the
        view.
    :raises VersionUnavailable: the generation no longer exists.
    :raises ConcurrentRun: a build is active, or another run was faster. Nothing was replaced.
    """
    require_same_name(context.catalog, name, name.dotted)
    shown, comment = _shown(context.catalog, name)
    try:
        return _restore(context, name, number, shown, comment)
    except DamagedKeyedTable as error:
        if shown is None or number in (None, shown.generation.number):
            raise
        raise VersionUnavailable(
            f"generation {number} of {name} cannot be restored",
            where=name.dotted,
            why=error.what,
            fix=f"generation {shown.generation.number} is still the current one; nothing was changed",
        ) from error


def _restore(
    context: Context, name: Name, number: int | None, shown: KeyedTable | None, comment: str
) -> KeyedTable:
    build = find_build(context, name, shown)
    if build is not None:
        raise build_in_progress_error(
            f"{name} is being rebuilt and cannot be restored now", build, name.dotted
        )
    root = name.identifier if shown is None else shown.storage_name.identifier
    table = _generation(context.catalog, name, root, shown, number)
    _require_staying(context.catalog, table)  # the view must never refer to unreadable tables
    previous = _previous(context.catalog, table, shown)
    restored = replace(table, name=name, root=root, previous=previous)
    moved = shown is not None and shown.generation != table.generation
    retired = pin_retired(context.catalog, shown) if moved else None
    landing = pin_retired(context.catalog, restored) if moved else None
    _make_way(context, name)
    before = observe_view(context, name) if shown is None else ViewObservation(shown.generation, {})
    retired = publish_generation(context, restored, comment, before, retired, where=name.dotted)
    if moved or shown is None:
        try:
            _require_staying(context.catalog, restored)
        except (DamagedKeyedTable, VersionUnavailable):
            _take_back(context, restored, shown, comment, landing)
            raise
    if retired is not None:
        carry_over(context, retired, restored, name.dotted)
    return restored


def _require_staying(catalog: CatalogReader, table: KeyedTable) -> None:
    """Reject a table whose side tables are missing or about to be dropped.

    :raises DamagedKeyedTable: a side table is missing.
    :raises VersionUnavailable: another process is about to drop one.
    """
    for side, state in zip((table.base, table.change), load_sides(catalog, table), strict=True):
        if PROPERTY_DROPPED_BY in state.properties:
            raise VersionUnavailable(
                f"generation {table.generation.number} of {table.name} is being removed",
                where=side.dotted,
                why="dbt-arctic clean has started to drop it",
                fix=f"if no clean is running: {create.withdraw_drop(side)}; then "
                f"{restore_command(table.name)} --generation {table.generation.number}",
            )


def _take_back(
    context: Context,
    restored: KeyedTable,
    shown: KeyedTable | None,
    comment: str,
    landing: RetiredGeneration | None,
) -> None:
    """Make the previous generation current, with the commits that were made to it in the meantime."""
    if shown is None:
        context.run("drop_view", create.drop_description(restored), restored)
        return
    alone = replace(shown, previous=None)
    publish_generation(
        context, alone, comment, ViewObservation(restored.generation, {}), None, where=restored.name.dotted
    )
    if landing is not None:
        carry_over(context, landing, alone, restored.name.dotted)


def _shown(catalog: CatalogReader, name: Name) -> tuple[KeyedTable | None, str]:
    """The keyed table that the view refers to, if it can be read, and the view's comment.

    :raises ConfigError: the name belongs to a relation that is not a keyed table.
    """
    try:
        in_the_way = "table" if catalog.of(name).load_table(name.schema, name.identifier) is not None else ""
        view = catalog.of(name).load_view(name.schema, name.identifier)
    except CatalogUnavailable:
        return None, ""  # an unreadable view refers to nothing: see _make_way
    if view is not None and not is_keyed(view.properties):
        in_the_way = "view that is not a keyed table"
    if in_the_way:
        raise ConfigError(
            f"{name} is a {in_the_way}",
            where=name.dotted,
            why="restoring a keyed table under this name would replace it",
            fix=f"rename or drop {name} first",
        )
    return (None, "") if view is None else (_understood(catalog, name, view), view.comment)


def _understood(catalog: CatalogReader, name: Name, view: ViewState) -> KeyedTable | None:
    """The keyed table of a view.

    If the view was replaced manually, its columns are not those of the table.
    """
    try:
        table = keyed_from_view(name, view)
    except DamagedKeyedTable:
        return None
    if table is None or not any(check_body(table, view)):
        return table
    stored = load_generation(catalog, name, table.storage_name.identifier, table.generation.number)
    return replace(table, columns=stored.columns)


def _generation(
    catalog: CatalogReader, name: Name, root: str, shown: KeyedTable | None, number: int | None
) -> KeyedTable:
    if shown is not None:
        return generation_of(catalog, shown, shown.generation.number if number is None else number)
    if number is not None:
        return load_generation(catalog, name, root, number)
    failures: list[ArcticError] = []
    for candidate in generation_numbers(catalog, name.sibling(root)):
        # If a build was interrupted, the previous generation is the one that was current.
        try:
            found = load_generation(catalog, name, root, candidate)
            if create.is_finished(load_change(catalog, found).properties):
                return found
        except ArcticError as error:
            failures.append(error)
    raise DamagedKeyedTable(
        f"no generation of {name} can be restored",
        where=name.dotted,
        why=failures[0].why if failures else f"there are no side tables of a completed build of {root}",
        fix=f"build it: {rebuild_command(name)}",
    )


def _previous(catalog: CatalogReader, table: KeyedTable, shown: KeyedTable | None) -> Generation | None:
    """The view's previous generation: the one that was current last, if it still exists."""
    if shown is None:
        return None
    wanted = shown.previous if shown.generation == table.generation else shown.generation
    if wanted is None:
        return None
    for role, side_id in (("base", wanted.base_id), ("change", wanted.change_id)):
        side = side_name(table.storage_name, role, wanted.number)
        state = catalog.of(side).load_table(side.schema, side.identifier)
        if state is None or state.properties.get(PROPERTY_ID) != side_id:
            return None
    return wanted


def _make_way(context: Context, name: Name) -> None:
    """Drop a view whose metadata file is missing, because Spark cannot replace it.

    If the file is damaged, or if it is that of a record, Spark can do neither.

    :raises CatalogUnavailable: the user must move the damaged file away first, or remove the record.
    """
    try:
        context.catalog.of(name).load_view(name.schema, name.identifier)
    except CatalogUnavailable as error:
        has_views = context.catalog.of(name).has_views()
        if not has_views or not isinstance(error.__cause__, FileNotFoundError):
            record = name.sibling(record_of(name.identifier))
            first = (
                f"move that file away (mv {error.where} ...)"
                if has_views
                else f"remove {record}, which has no rows, from the catalog by the catalog's own means"
            )
            raise CatalogUnavailable(
                error.what,
                where=error.where,
                why=error.why,
                fix=f"{first}, then run {restore_command(name)} again",
            ) from error
        context.run("drop_view", create.drop_view(name), None)
