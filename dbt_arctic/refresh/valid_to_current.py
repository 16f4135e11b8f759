"""The end of a snapshot's current records, ``dbt_valid_to_current``.

dbt takes a record for the current one of its key if its end is NULL or the configured one. With another
setting than before, it would find no current records, and add a second one of every key.
"""

from __future__ import annotations

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.store.context import Context

PROPERTY_CURRENT_END = "arctic.current-end"
"""The SQL of the end with which the current records of a snapshot were written; absent for NULL."""


def end_property(end: str | None) -> dict[str, str]:
    """The property of a new snapshot; empty if its current records end with NULL.

    >>> end_property(" date'9999-12-31' "), end_property(None)
    ({'arctic.current-end': "date'9999-12-31'"}, {})
    """
    text = (end or "").strip()
    return {PROPERTY_CURRENT_END: text} if text else {}


def keep_current_end(context: Context, name: Name, valid_to: str, end: str | None, model: str) -> None:
    """Record the end of a snapshot's current records, if it is another one.

    :param valid_to: the column of the end.
    :param end: SQL of the configured end; ``None`` for NULL.
    :raises ConfigError: there are records with the old end.
    """
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    wanted = end_property(end)
    before = state.properties.get(PROPERTY_CURRENT_END) if state is not None else None
    now = wanted.get(PROPERTY_CURRENT_END)
    if state is None or before == now:
        return
    if before is not None:
        column = quote(valid_to.strip("`"))
        is_other = f"\n  AND NOT ({column} <=> (\n{now}\n))" if now else ""
        old = f"SELECT 1 FROM {name.sql}\nWHERE {column} = (\n{before}\n){is_other}\nLIMIT 1"
        if context.query(old):
            update = f"update {{{{ this }}}} set {valid_to} = {now or 'null'} where {valid_to} = {before}"
            raise ConfigError(
                f"dbt_valid_to_current changed from {before} to {now or 'nothing'}",
                where=model,
                why="its current records have the old end, so each key would get a second one",
                fix=f'set it back, or change the records in the same run: pre_hook="{update}"',
            )
    if wanted:
        listed = f"{literal(PROPERTY_CURRENT_END)} = {literal(wanted[PROPERTY_CURRENT_END])}"
        context.run("set_properties", f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({listed})")
    else:
        context.run(
            "unset_properties",
            f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({literal(PROPERTY_CURRENT_END)})",
        )
