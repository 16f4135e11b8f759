"""Replaces the view of a keyed table, always as a compare-and-swap.

``CREATE OR REPLACE VIEW`` replaces any view. So the view is read right before and again after the statement.
A replacement keeps the properties that the new view does not name, and each switch sets a property with a
unique name. A view that another run published between the two reads is therefore detected and restored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

from dbt_arctic.catalog.api import ViewState
from dbt_arctic.errors import CommitStateUnknown, ConcurrentRun, DamagedKeyedTable, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.adoption import is_adopted, view_properties
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.table import PROPERTY_PROJECTED, Column, Generation, KeyedTable, is_keyed, side_name
from dbt_arctic.store.context import Context
from dbt_arctic.store.generations import generation_numbers, load_generation
from dbt_arctic.store.leftovers import txn_ms
from dbt_arctic.store.overtaken_build import require_not_overtaken
from dbt_arctic.store.replay import (
    PROPERTY_RETIRED,
    PROPERTY_SWITCH,
    RetiredGeneration,
    as_generation,
    carry_over,
)
from dbt_arctic.store.state import head, load_change, to_columns

_SHOWN = "arctic.shown-"
"""Prefix of the property that a switch sets. The suffix is its number, and the value is the generation."""
_KEEP_SHOWN = 20
_ALTERED = "arctic.altered-"
"""Prefix of the property that a view with changed columns or comments sets. The suffix is its number, and the
value is JSON of the columns.
"""
_KEEP_ALTERED = 4


class PublishedColumns(NamedTuple):
    """The columns of a generation that a run has published.

    :param columns: names and types.
    :param required: the columns that are NOT NULL.
    """

    columns: tuple[tuple[str, str], ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class ViewObservation:
    """The state of a view at one read.

    :param generation: the generation that it shows; ``None`` if it shows none, or does not record it.
    :param shown: the generations that switches have published, by their number.
    :param altered: the published columns of the generation, by the number of the publication.
    :param columns: names and types.
    :param projected: the run that is changing nested fields, see ``KeyedTable.projected``.
    """

    generation: Generation | None
    shown: Mapping[str, Generation]
    comment: str = ""
    previous: Generation | None = None
    altered: Mapping[str, PublishedColumns] = field(default_factory=dict)
    columns: tuple[tuple[str, str], ...] = ()
    projected: str = ""


def observe_view(context: Context, name: Name) -> ViewObservation:
    """Read the current state of a view."""
    return _seen(context.catalog.of(name).load_view(name.schema, name.identifier))


class Switch(NamedTuple):
    """A switch of a view to a generation, and its time."""

    at_ms: int
    generation: Generation


def switches_of(view: ViewState) -> list[Switch]:
    """The latest switches of a view, oldest first."""
    shown = sorted((int(number), generation) for number, generation in _seen(view).shown.items())
    return [Switch(txn_ms(number), generation) for number, generation in shown]


def publish_generation(
    context: Context,
    table: KeyedTable,
    comment: str,
    before: ViewObservation,
    retired: RetiredGeneration | None,
    *,
    where: str,
) -> RetiredGeneration | None:
    """Replace the view by one of another generation.

    :param before: the view to replace, as it was read at the start of the operation.
    :param retired: what this retires. It is returned with what a later replay needs to know.
    :raises ConcurrentRun: the view shows something else now, and still does afterwards.
    """
    switch = str(context.new_txn())
    try:
        change = load_change(context.catalog, table)
    except DamagedKeyedTable:
        # A faster run has dropped the tables that were to be published, because they were out of date.
        require_unmoved(context, table, before, where)
        raise
    last = require_unmoved(context, table, before, where)
    mine, is_new = head(change), table.generation not in last.shown.values()
    if is_new:
        require_not_overtaken(change, table, where)
    retired = None if retired is None else replace(retired, target_head=mine)
    named = {_SHOWN + switch: json.dumps(table.generation.to_list())}
    if last.generation != table.generation:
        # Within one generation, the rows that may have to be replayed from the previous one are unchanged.
        named[PROPERTY_SWITCH] = switch
        named[PROPERTY_RETIRED] = "" if retired is None else retired.to_property()
    try:
        _publish(context, table, comment, named, _SHOWN + switch)
    except StatementError:
        if switch not in observe_view(context, table.name).shown:
            # A faster run may have dropped the tables that were to be published, because they were out of
            # date.
            require_unmoved(context, table, before, where)
            raise
    after = observe_view(context, table.name)
    if after.generation != table.generation:
        # The other run read the view before this switch and restores it once it detects that, or it correctly
        # followed this switch.
        raise ConcurrentRun(
            f"another run replaced {table.name} at the same time",
            where=where,
            why="another generation was published right after this one",
            fix="the table shows one of the two generations, whole; run again if this one is still needed",
        )
    others = {
        number: generation
        for number, generation in after.shown.items()
        if number not in last.shown and number != switch and generation != table.generation
    }
    if others:
        _give_way(context, table, comment, last, others[max(others)], RetiredGeneration(table, mine), where)
    if is_new and last.generation is not None:
        try:
            require_not_overtaken(load_change(context.catalog, table), table, where)
        except ConcurrentRun:
            again = RetiredGeneration(table, mine)
            _show_again(context, table, last.comment, last.generation, last.previous, again, where)
            raise
    _forget(context, table, [_SHOWN + number for number in sorted(after.shown)[:-_KEEP_SHOWN]])
    return retired


def replace_view(
    context: Context,
    table: KeyedTable,
    *,
    before: KeyedTable,
    where: str,
    comment: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Replace the view by one of the same generation with other columns or comments.

    :param before: the table from which ``table`` was derived.
    :param comment: ``None`` keeps the comment of the view.
    :raises ConcurrentRun: the view shows another generation, or other columns than before, and still does
        afterwards. A column that is no longer shown would be taken for one to be dropped.
    """
    last = require_unmoved(context, table, ViewObservation(table.generation, {}), where)
    if (last.columns, last.projected) != (_names_and_types(before.visible.columns), before.projected):
        raise _altered(table, where)
    # The previous generation may have been cleaned up since the table was read.
    table = replace(table, previous=last.previous)
    text = last.comment if comment is None else comment
    mine = str(context.new_txn())
    mark = {_ALTERED + mine: json.dumps([_names_and_types(table.columns), table.required])}
    try:
        _publish(context, table, text, {**(properties or {}), **mark}, _ALTERED + mine)
    except StatementError as error:
        now = observe_view(context, table.name)
        if (now.columns, now.projected) == (last.columns, last.projected):
            raise
        # Fields that this view names have been dropped.
        raise _altered(table, where) from error
    if table.previous is not None:
        found = as_generation(context.catalog, table, table.previous)
        if context.catalog.of(found.base).load_table(found.base.schema, found.base.identifier) is None:
            forget_previous(context, table)
    after = observe_view(context, table.name)
    others = {
        number: generation
        for number, generation in after.shown.items()
        if number not in last.shown and generation != table.generation
    }
    if others:
        _give_way(context, table, text, last, others[max(others)], None, where)
    if (after.columns, after.projected) != (_names_and_types(table.visible.columns), table.projected):
        # The other run detects the mark of this one and shows its columns again.
        raise _altered(table, where)
    theirs = [number for number in after.altered if number not in last.altered and number != mine]
    if theirs:
        columns, required = after.altered[max(theirs, key=int)]
        if columns != _names_and_types(table.columns):
            comments = {column.name: column.comment for column in table.columns}
            shown = tuple(Column(name, type_, comments.get(name, "")) for name, type_ in columns)
            # The side tables may be in transition to either definition. Reading fields by name is correct for
            # both.
            by_name = table.projected or before.projected
            theirs_again = replace(table, columns=shown, required=required, projected=by_name)
            _publish(context, theirs_again, last.comment, {}, "")
            raise _altered(table, where)
    if len(after.altered) > 2 * _KEEP_ALTERED:
        _forget(context, table, [_ALTERED + n for n in sorted(after.altered, key=int)[:-_KEEP_ALTERED]])


def forget_previous(context: Context, table: KeyedTable) -> None:
    """Remove the previous generation from the view, if it is still the one that ``table`` names.

    The statement changes any view of this name. If a full refresh was published right before it, the
    generation that it retired is restored in the view.
    """
    seen = observe_view(context, table.name)
    if (seen.generation, seen.previous) != (table.generation, table.previous):
        return
    context.run("forget_previous", create.forget_previous(table), table)
    after = observe_view(context, table.name)
    if after.generation not in (None, table.generation) and after.previous is None:
        context.run("name_previous", create.name_previous(table), table)


def require_unmoved(
    context: Context, table: KeyedTable, before: ViewObservation, where: str
) -> ViewObservation:
    """Check that the view still shows the same generation.

    :raises ConcurrentRun: the view shows something else.
    """
    found = observe_view(context, table.name)
    if found.generation != before.generation:
        shown = f"generation {found.generation.number}" if found.generation else "nothing"
        raise _overtaken(
            table, where, f"{table.name} now uses {shown}, which was published after this run started"
        )
    return found


def _publish(
    context: Context, table: KeyedTable, comment: str, properties: Mapping[str, str], unique: str
) -> None:
    if context.catalog.of(table.name).load_view(table.name.schema, table.name.identifier) is None:
        properties = {**properties, **_folder(context, table)}
    try:
        context.run("publish_view", create.publish_view(table, comment, properties), table)
    except CommitStateUnknown:
        view = context.catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
        if not unique or view is None or unique not in view.properties:
            raise


def _folder(context: Context, table: KeyedTable) -> dict[str, str]:
    """The location of the view's metadata, if the files of an adopted table occupy its default location."""
    for number in generation_numbers(context.catalog, table.storage_name):
        base = side_name(table.storage_name, "base", number)
        state = context.catalog.of(base).load_table(base.schema, base.identifier)
        if state is not None and is_adopted(state.properties):
            return view_properties(state.location)
    return {}


def _give_way(
    context: Context,
    table: KeyedTable,
    comment: str,
    last: ViewObservation,
    other: Generation,
    mine: RetiredGeneration | None,
    where: str,
) -> NoReturn:
    """Restore the view that was published first, with the rows written to this generation in the meantime."""
    _show_again(context, table, comment, other, last.generation, mine, where)
    raise _overtaken(
        table, where, f"generation {other.number} was published just before and is current again"
    )


def _show_again(
    context: Context,
    table: KeyedTable,
    comment: str,
    other: Generation,
    previous: Generation | None,
    mine: RetiredGeneration | None,
    where: str,
) -> None:
    """Restore the view of another generation, with the rows written to this one in the meantime."""
    theirs = load_generation(context.catalog, table.name, table.storage_name.identifier, other.number)
    if theirs.generation == other:
        theirs = replace(theirs, previous=previous)
        named = {PROPERTY_SWITCH: str(context.new_txn())}
        if mine is not None:
            named[PROPERTY_RETIRED] = ""
        _publish(context, theirs, comment, named, "")
        if mine is not None:
            carry_over(context, mine, theirs, where)


def _seen(view: ViewState | None) -> ViewObservation:
    if view is None:
        return ViewObservation(None, {})
    shown = {
        name.removeprefix(_SHOWN): _generation(*json.loads(text))
        for name, text in view.properties.items()
        if name.startswith(_SHOWN)
    }
    previous = view.properties.get("arctic.previous")
    before = _generation(*json.loads(previous)) if previous else None
    altered = {
        name.removeprefix(_ALTERED): PublishedColumns(
            tuple((column, type_) for column, type_ in json.loads(text)[0]),
            tuple(json.loads(text)[1]),
        )
        for name, text in view.properties.items()
        if name.startswith(_ALTERED)
    }
    columns = _names_and_types(to_columns(view.columns))
    projected = view.properties.get(PROPERTY_PROJECTED, "")
    return ViewObservation(_named(view.properties), shown, view.comment, before, altered, columns, projected)


def _names_and_types(columns: Sequence[Column]) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, column.type) for column in columns)


def _named(properties: Mapping[str, str]) -> Generation | None:
    """The generation that a view names, even if the rest of its description is damaged."""
    number = properties.get("arctic.generation", "")
    if not is_keyed(properties) or not number.isdigit():
        return None
    ids = [properties.get(f"arctic.{side}-id", "") for side in ("base", "change")]
    return _generation(int(number), *ids, *filter(None, [properties.get("arctic.sequence-by")]))


def _generation(number: int, base_id: str, change_id: str, sequence_by: str | None = None) -> Generation:
    return Generation(number, base_id, change_id, sequence_by)


def _forget(context: Context, table: KeyedTable, properties: Sequence[str]) -> None:
    if properties:
        listed = ", ".join(map(literal, properties))
        statement = f"{create.alter_description(table)} UNSET TBLPROPERTIES IF EXISTS ({listed})"
        context.run("forget_switches", statement, table)


def _altered(table: KeyedTable, where: str) -> ConcurrentRun:
    return ConcurrentRun(
        f"another run changed the columns of {table.name}",
        where=where,
        why="it ran at the same time",
        fix="the view has that run's columns and not this run's; run again",
    )


def _overtaken(table: KeyedTable, where: str, why: str) -> ConcurrentRun:
    return ConcurrentRun(
        f"another run was faster and replaced {table.name}",
        where=where,
        why=why,
        fix="this run replaced nothing; run again if it is still needed",
    )
