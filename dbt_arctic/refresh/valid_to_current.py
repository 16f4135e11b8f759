"""The end of a snapshot's current records, ``dbt_valid_to_current``.

dbt takes a record for the current one of its key if its end is NULL or the configured one. With another
setting than before, it would find no current records, and add a second one of every key.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.store.context import Context

PROPERTY_CURRENT_END = "arctic.current-end"
"""The SQL of the end with which the current records of a snapshot were written; absent for NULL."""
PROPERTY_END_INSTANT = "arctic.current-end-micros"
"""Which instant that was, in microseconds since the epoch. The SQL may mean another one in another zone."""


def end_properties(context: Context, end: str | None) -> dict[str, str]:
    """The properties of a new snapshot; empty if its current records end with NULL."""
    text = (end or "").strip()
    if not text:
        return {}
    ((micros,),) = context.query(f"SELECT unix_micros(TRY_CAST((\n{text}\n) AS TIMESTAMP))")
    instant = {} if micros is None else {PROPERTY_END_INSTANT: str(micros)}
    return {PROPERTY_CURRENT_END: text, **instant}


def keep_current_end(context: Context, name: Name, valid_to: str, end: str | None, model: str) -> None:
    """Record the end of a snapshot's current records, if it is another one.

    :param valid_to: the column of the end.
    :param end: SQL of the configured end; ``None`` for NULL.
    :raises ConfigError: there are records with the old end, or the column cannot store the new one.
    """
    state = context.catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        return
    names = (PROPERTY_CURRENT_END, PROPERTY_END_INSTANT)
    wanted = end_properties(context, end)
    stored = {one: state.properties[one] for one in names if one in state.properties}
    if stored == wanted:
        return
    if PROPERTY_CURRENT_END in stored:
        _require_no_old_ends(context, name, valid_to, stored, wanted, model)
    if wanted:
        types = {column.name.lower(): column.type for column in state.columns}
        _require_exact(context, types.get(valid_to.strip("`").lower(), "timestamp"), wanted, model)
        listed = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in wanted.items())
        context.run("set_properties", f"ALTER TABLE {name.sql} SET TBLPROPERTIES ({listed})")
    else:
        listed = ", ".join(map(literal, stored))
        context.run("unset_properties", f"ALTER TABLE {name.sql} UNSET TBLPROPERTIES ({listed})")


def _require_exact(context: Context, type_: str, wanted: Mapping[str, str], model: str) -> None:
    """Refuse an end that the column would change, because dbt would not find the records that have it."""
    end = wanted[PROPERTY_CURRENT_END]
    ((stored, is_same),) = context.query(
        "SELECT CAST(stored AS STRING), TRY_CAST(stored AS TIMESTAMP) = TRY_CAST(wanted AS TIMESTAMP)\n"
        f"FROM (SELECT TRY_CAST((\n{end}\n) AS {type_}) AS stored, (\n{end}\n) AS wanted)"
    )
    if not is_same:
        raise ConfigError(
            f"dbt_valid_to_current is {end}, and the snapshot would store {stored or 'NULL'}",
            where=model,
            why=f"the type of its column is {type_.upper()}, from updated_at at the first run, so each key "
            "would get a second current record",
            fix=f"set it to a value of that type, for example {type_}'9999-12-31'",
        )


def _require_no_old_ends(
    context: Context,
    name: Name,
    valid_to: str,
    stored: Mapping[str, str],
    wanted: Mapping[str, str],
    model: str,
) -> None:
    before, now = stored[PROPERTY_CURRENT_END], wanted.get(PROPERTY_CURRENT_END)
    micros = stored.get(PROPERTY_END_INSTANT)
    if micros is None and before == now:
        return  # written by an earlier version, which did not record the instant
    column = quote(valid_to.strip("`"))
    was = before if micros is None or before != now else f"timestamp_micros({micros})"
    is_old = f"{column} = (\n{before}\n)" + (f" OR {column} = timestamp_micros({micros})" if micros else "")
    is_other = f"\n  AND NOT ({column} <=> (\n{now}\n))" if now else ""
    if not context.query(f"SELECT 1 FROM {name.sql}\nWHERE ({is_old}){is_other}\nLIMIT 1"):
        return
    update = f"update {{{{ this }}}} set {valid_to} = {now or 'null'} where {valid_to} = {was}"
    why = "its current records have the old end, so each key would get a second one"
    if before == now:
        what = f"dbt_valid_to_current, {now}, is another time than in the last run"
        why = f"the session has another time zone: {why}"
        back = "set spark.sql.session.timeZone back"
    else:
        what = f"dbt_valid_to_current changed from {before} to {now or 'nothing'}"
        back = "set it back"
    fix = f'{back}, or change the records in the same run: pre_hook="{update}"'
    raise ConfigError(what, where=model, why=why, fix=fix)
