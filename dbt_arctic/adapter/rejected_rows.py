"""Rows of sources that do not fit: taken out of a pull, and added again by a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.file_sources import locate_with
from dbt_arctic.adapter.process_modes import REPLAYING
from dbt_arctic.adapter.pulls import ModelPulls
from dbt_arctic.engine.api import Connection
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull
from dbt_arctic.sources.database_rows import TableRows, require_keys
from dbt_arctic.sources.file_settings import ROWS_WITH_TEXT, FileSource
from dbt_arctic.sources.first_bad_row import BadRow, find_bad_row
from dbt_arctic.sources.kafka_settings import KafkaSource
from dbt_arctic.sources.quarantine import (
    Rejection,
    cache_statement,
    reject,
    without_reread,
    without_superseded,
)
from dbt_arctic.sources.retry_rejected import retry_rejected_rows
from dbt_arctic.store.context import Context
from dbt_arctic.store.rejected_table import RejectedVersion, counts, last_rejected, rejected_name

logger = AdapterLogger("Arctic")


@dataclass(frozen=True)
class RejectedRows:
    """Separates the rows that do not fit from those of a pull.

    :param pulls: of the run, to which the rejected rows are added.
    :param connection: to Spark, for finding the first row that does not fit.
    """

    context: Context
    pulls: ModelPulls
    connection: Callable[[], Connection]

    def reject(
        self,
        unique_id: str,
        target: Name,
        source: FileSource | KafkaSource | TableRows,
        planned: Pull,
        last_consumed: Mapping[str, Consumed],
    ) -> Pull:
        """Take the rows that do not fit out of a pull, and add rejected rows that a replay takes again.

        :param planned: the pull, which is recorded for the model's commit already.
        :param last_consumed: what the model has consumed.
        :returns: the pull with the SQL of the rows for the model.
        """
        if isinstance(source, FileSource):
            self._locate(source, planned)
        pulls, context, name = self.pulls, self.context, rejected_name(target)
        # Another source of the model may have rejected rows in the same run.
        done = [RejectedVersion(name, pull.consumed) for pull in pulls.find(unique_id, name)]
        base = done[-1] if done else last_rejected(context.catalog, name, last_consumed)
        if base is not None and planned.stage and isinstance(source, FileSource):
            base = self._without_reread(unique_id, target, source, planned.stage.view, base, last_consumed)
        if planned.stage and isinstance(source, TableRows):
            base = self._without_superseded(
                unique_id, target, source, planned.stage.view, base, last_consumed
            )
        view = planned.stage.view if planned.stage and source.on_bad_row != "fail" else ""
        taken = retry_rejected_rows(context, source, base) if REPLAYING.is_on and base is not None else None
        if not view and taken is None and last_consumed:
            return planned
        rejection = reject(context, source, target, view, base, taken)
        if rejection.pull is not None:
            pulls.add(unique_id, last_consumed, rejection.pull, None if base is None else base.consumed)
        _log(source, rejection, name)
        if taken is None:
            return planned
        logger.info(f"taken again: {counted(taken.fitting, 'rejected row')} of the source {source.name}")
        found = replace(planned, sql=f"{planned.sql}\nUNION ALL\n{taken.rows}")
        pulls.replace(unique_id, found)
        return found

    def _without_reread(
        self,
        unique_id: str,
        target: Name,
        source: FileSource,
        view: str,
        base: RejectedVersion,
        last_consumed: Mapping[str, Consumed],
    ) -> RejectedVersion:
        """The rejected rows without those of files that the model reads again."""
        if source.changed_files != "reread":
            return base
        newer = without_reread(self.context, source, target, view, base)
        if newer is None:
            return base
        self.pulls.add(unique_id, last_consumed, newer, base.consumed)
        return RejectedVersion(rejected_name(target), newer.consumed)

    def _without_superseded(
        self,
        unique_id: str,
        target: Name,
        table: TableRows,
        view: str,
        base: RejectedVersion | None,
        last_consumed: Mapping[str, Consumed],
    ) -> RejectedVersion | None:
        """The rejected rows without those of a table that the model reads again."""
        has_rejected = base is not None and table.name in counts(self.context.catalog, base)
        if table.on_bad_row != "fail" or has_rejected:
            self.context.run("stage", cache_statement(view))
        if base is None or not has_rejected or not table.reads_again:
            return base
        require_keys(table, target.identifier)
        newer = without_superseded(self.context, table, target, view, base)
        if newer is None:
            return base
        self.pulls.add(unique_id, last_consumed, newer, base.consumed)
        return RejectedVersion(rejected_name(target), newer.consumed)

    def _locate(self, source: FileSource, planned: Pull) -> None:
        if source.on_bad_row == "fail" and source.format in ROWS_WITH_TEXT and planned.stage is not None:
            locate_with(lambda path: self._find_bad_row(source, path))

    def _find_bad_row(self, source: FileSource, path: str) -> BadRow | None:
        connection, view = self.connection(), f"arctic_bad_row_{self.context.new_txn()}"

        def query(sql: str) -> list[tuple[Any, ...]]:
            with closing(connection.cursor()) as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []

        try:
            return find_bad_row(source, path, view, connection, query)
        finally:
            query(f"DROP VIEW IF EXISTS {quote(view)}")


def _log(source: FileSource | KafkaSource | TableRows, rejection: Rejection, name: Name) -> None:
    if rejection.by_place:
        rows, places = sum(rejection.by_place.values()), len(rejection.by_place)
        done = "Dropped" if source.on_bad_row == "drop" else "Quarantined"
        where = ""
        if not isinstance(source, TableRows):
            where = f"of {counted(places, 'partition' if isinstance(source, KafkaSource) else 'file')} "
        row = "message" if isinstance(source, KafkaSource) else "row"
        logger.warning(
            f"{done} {counted(rows, row)} {where}of the source {source.name}, which did not fit: see {name}"
        )


__all__ = ["RejectedRows"]
