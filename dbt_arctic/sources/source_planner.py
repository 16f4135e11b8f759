"""What the planner of each kind of source returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dbt_arctic.errors import ArcticError, ConfigError
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.table import ACTION
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull
from dbt_arctic.sources.database_rows import TableRows
from dbt_arctic.store.context import Context

PullPurpose = Literal["consume", "read", "describe"]
"""Why a source is pulled: for a commit that consumes it; to show rows; or for the text of the SQL only."""


@dataclass(frozen=True)
class Planned:
    """The rows of a source that a model reads in one run.

    :param since: what the model had consumed of the source; ``None`` if it had read nothing of it.
    :param warnings: what a run that consumes the rows shows to the user.
    :param release: what to call once the rows are not needed any more; ``None`` for nothing.
    :param notes: what it writes to the log.
    :param must_select: columns without which a keyed model would store wrong values, each with the reason.
    :param table: what a run that consumes the rows reads of a database's table; ``None`` for other sources.
    """

    pull: Pull
    since: Consumed | None
    warnings: tuple[str, ...] = ()
    release: Callable[[], None] | None = None
    notes: tuple[str, ...] = ()
    must_select: Mapping[str, str] = field(default_factory=dict)
    table: TableRows | None = None


DELETES = {ACTION: "a deleted row has _action D, and would be written as a row of NULL values"}
"""What a keyed model must select of a source with deletes, unless its config has ``delete_when``."""


def refuse_renamed(
    last_consumed: Mapping[str, Consumed], key: str, model: str, source: str, read: str, everything: str
) -> None:
    """Refuse to read a topic or table again that the model has read as another source.

    :param last_consumed: what the model has consumed.
    :param key: the id of the topic or table.
    :param read: what it is, for the error.
    :param everything: what a run would read again.
    :raises ConfigError: the model has read it as another source.
    """
    other = next((name for name, one in last_consumed.items() if one.table_id == key), None)
    if other is None:
        return
    raise ConfigError(
        f"{model} has read {read} as the source {other.partition('.')[2]}, and not as {source}",
        where=model,
        why=f"a run would read {everything} again",
        fix=f"keep the source's name; or build the table again: dbt run --full-refresh --select {model}",
    )


class SourcePlanner(Protocol):
    """Plans what one model reads of one source."""

    @property
    def upstream(self) -> Name:
        """The name under which the model's commit records what it has consumed."""
        ...

    def plan(self, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose) -> Planned:
        """Plan a run.

        :param last_consumed: what the model has consumed, by dotted name of the upstream.
        """
        ...


@contextmanager
def dropped_on_error(context: Context, view: str) -> Iterator[None]:
    """Drop a temporary view over what a source has, with its cached rows, if the pull cannot be planned."""
    try:
        yield
    except BaseException:
        with suppress(ArcticError):  # the user must see the original error
            context.run("drop_staging", f"DROP VIEW IF EXISTS {quote(view)}")
        raise


def no_rows(what: str, types: Mapping[str, str]) -> str:
    """SQL without rows, for a pull that reads nothing, or whose rows are not needed.

    :param what: a comment. It may contain names that users have given.
    :param types: the columns of the pull.
    """
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items())
    return f"/* {what.replace('*/', '* /')} */\nSELECT {columns}\nWHERE false"


__all__ = ["Planned", "PullPurpose", "SourcePlanner", "dropped_on_error", "no_rows"]
