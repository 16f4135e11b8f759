"""Plans what a model reads of a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from dbt_arctic.brokers.api import Broker, SchemaRegistry
from dbt_arctic.engine.api import Connection
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.avro_pull import decode_messages, drop_messages
from dbt_arctic.sources.change_pull import TakenChanges, take_changes
from dbt_arctic.sources.change_settings import must_select
from dbt_arctic.sources.change_sql import rows_of_events
from dbt_arctic.sources.kafka_offsets import plan_offsets, topic_key, truncated_at, with_truncation
from dbt_arctic.sources.kafka_settings import KafkaSource, upstream_of
from dbt_arctic.sources.kafka_sql import delivery_of, read_request, rows_of
from dbt_arctic.sources.quarantine import cache_statement
from dbt_arctic.sources.source_planner import Planned, PullPurpose, dropped_on_error, no_rows, refuse_renamed
from dbt_arctic.store.context import Context


@dataclass(frozen=True)
class KafkaPlanner:
    """Plans what a model reads of a topic.

    :param connection: the session in which the SQL of the pull will run.
    :param registry: that of the source's schemas; ``None`` for none.
    """

    context: Context
    connection: Callable[[], Connection]
    broker: Broker
    source: KafkaSource
    registry: SchemaRegistry | None = None

    @property
    def upstream(self) -> Name:
        """``kafka.<source>.<table>``: the same for all models, because each records its own offsets."""
        return upstream_of(self.source)

    def plan(self, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose) -> Planned:
        """Plan a run.

        The ends of all partitions are looked up once, and Spark starts only if there is something to read.

        :raises ConfigError: the model has read the topic as another source.
        :raises VersionUnavailable: see ``plan_offsets``.
        """
        source, name = self.source, self.upstream
        last = last_consumed.get(name.dotted)
        if purpose == "describe":
            return Planned(Pull(name, self._described(), last or Consumed("", ""), last is None), last)
        topic = self.broker.offsets(source.topic, source.isolation == "read_committed")
        if last is None:
            self._refuse_other_source(last_consumed, topic_key(source, topic), model)
        plan = plan_offsets(source, topic, last, model)
        if last is not None and not plan.ranges and not plan.warnings:
            return Planned(Pull(name, self._described(), last, False), last)
        warnings = plan.warnings
        if not plan.ranges:
            if last is None:
                warnings = (*warnings, f"The topic {source.topic} has no messages yet.")
            return Planned(Pull(name, self._described(), plan.consumed, True), last, warnings)
        view = f"{source.name.replace('.', '__')}__pull_{self.context.new_txn()}"
        self.connection().create_source_view(view, read_request(source, plan.ranges))
        release = None
        if source.avro is not None:
            release = partial(drop_messages, self.context, view)
            view = decode_messages(self.context, source.avro, self.registry, view, model, purpose)
        taken = self._rows(view, plan.consumed, last, model, purpose)
        consumed = with_truncation(plan.consumed, taken.truncated_at)
        pull, notes = Pull(name, taken.sql, consumed, True, stage=StagedView(view)), taken.notes
        needed = must_select(source.changes)
        return Planned(pull, last, warnings, release, notes=notes, must_select=needed)

    def _rows(
        self, view: str, planned: Consumed, last: Consumed | None, model: str, purpose: PullPurpose
    ) -> TakenChanges:
        """The rows of the messages.

        :param planned: what the model will have consumed, with the last truncation that it has applied.
        """
        source, known = self.source, truncated_at(planned)
        if source.changes is None:
            if purpose == "consume" and source.on_bad_row != "fail":
                self.context.run("stage", cache_statement(view))
            return TakenChanges(rows_of(source, quote(view)), ())
        messages = delivery_of(source)
        if purpose != "consume":
            return TakenChanges(rows_of_events(source.changes, messages, view, known), (), known)
        with dropped_on_error(self.context, view):
            first = last is None
            return take_changes(self.context, source.changes, messages, view, first, model, known)

    def _refuse_other_source(self, last_consumed: Mapping[str, Consumed], key: str, model: str) -> None:
        read = f"the topic {self.source.topic}"
        refuse_renamed(last_consumed, key, model, self.source.name, read, "all messages of the topic")

    def _described(self) -> str:
        return no_rows(f"no messages of {self.source.name}", {**self.source.columns, **self.source.added})


__all__ = ["KafkaPlanner"]
