"""Decodes the messages of a pull that are Avro: looks up their schemas, and makes a view of JSON."""

from __future__ import annotations

from contextlib import suppress

from dbt_arctic.brokers.api import SchemaRegistry
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import quote
from dbt_arctic.sources.avro_settings import AvroMessages
from dbt_arctic.sources.avro_sql import AvroSchema, decode_statement, ids_statement, parse_schema
from dbt_arctic.sources.quarantine import cache_statement
from dbt_arctic.sources.source_planner import PullPurpose, dropped_on_error
from dbt_arctic.store.context import Context


def decode_messages(
    context: Context,
    avro: AvroMessages,
    registry: SchemaRegistry | None,
    view: str,
    where: str,
    purpose: PullPurpose,
) -> str:
    """Make a view of messages whose Avro is JSON. A run that consumes messages reads them once.

    :param registry: that of the source; ``None`` if its messages have one schema.
    :param view: over the messages. It is needed until the rows were written.
    :returns: the name of the view.
    :raises ServerUnreachable: the registry does not answer.
    """
    with dropped_on_error(context, view):
        schemas: dict[int, AvroSchema] | AvroSchema
        if registry is None:
            schemas = avro.schema(where)
        else:
            if purpose == "consume":
                context.run("stage", cache_statement(view))
            ids = sorted(int(row[0]) for row in context.query(ids_statement(view, tuple(avro.parts))))
            found = {number: registry.schema(number) for number in ids}
            # A message with an id that the registry does not have does not fit.
            schemas = {
                number: parse_schema(text, f"the schema {number} of {avro.registry}", where)
                for number, text in found.items()
                if text is not None
            }
        name = f"{view}__decoded"
        context.run("stage", decode_statement(name, view, avro.parts, schemas))
        return name


def drop_messages(context: Context, view: str) -> None:
    """Drop the view over the messages, once the rows were written."""
    with suppress(ArcticError):  # an error of the run must be raised, and the session ends with the process
        context.run("drop_staging", f"DROP VIEW IF EXISTS {quote(view)}")


__all__ = ["decode_messages", "drop_messages"]
