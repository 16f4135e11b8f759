"""The pulls of the current model of a thread, from its compilation until its commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from dbt_arctic.errors import ConcurrentRun, ConfigError
from dbt_arctic.keyed.create import drop_table
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.table import ACTION
from dbt_arctic.keyed.version import PART, Consumed, of_relations
from dbt_arctic.refresh.pull import Pull


@contextmanager
def cleanup_on_error(forget: Callable[[], None]) -> Iterator[None]:
    """Discard what a model has staged if one of its pulls fails.

    dbt calls its hook only for models that compile.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception):  # the error of the pull must be raised, and `clean` finds leftovers
            forget()
        raise


@dataclass
class ModelPulls:
    """Pulls by model. ``last_consumed`` is what the model's target had consumed when it was compiled."""

    _pulls: dict[str, list[Pull]] = field(default_factory=dict)
    _since: dict[str, list[Consumed | None]] = field(default_factory=dict)
    _last_consumed: dict[str, Mapping[str, Consumed]] = field(default_factory=dict)
    _staged: list[Name] = field(default_factory=list)
    _held: list[Callable[[], None]] = field(default_factory=list)
    _needed: dict[str, dict[str, str]] = field(default_factory=dict)
    _relations: dict[str, list[str]] = field(default_factory=dict)
    _sources: dict[str, list[str]] = field(default_factory=dict)
    _parts: dict[str, bool] = field(default_factory=dict)

    def hold(self, release: Callable[[], None]) -> None:
        """Register what to call after the model is done."""
        self._held.append(release)

    def stage(self, name: Name) -> None:
        """Register a table that is not needed after the model is done."""
        self._staged.append(name)

    def add(
        self,
        model: str,
        last_consumed: Mapping[str, Consumed],
        pull: Pull,
        since: Consumed | None = None,
        *,
        is_relation: bool = False,
        source: str = "",
    ) -> None:
        """Record that a model pulls from an upstream.

        :param last_consumed: the result of ``begun_from``, if there is one.
        :param since: what the model has consumed of that upstream; ``None`` if it has not read it.
        :param is_relation: whether the upstream is a relation of the catalog that the model names. A file
            list and a table of rejected rows belong to the model itself.
        :param source: the name of the source outside the catalog; empty for none.
        """
        if is_relation:
            self._relations.setdefault(model, []).append(str(pull.upstream))
        if source:
            self._sources.setdefault(model, []).append(f"the source {source}")
        self._pulls.setdefault(model, []).append(pull)
        self._since.setdefault(model, []).append(since)
        self._last_consumed.setdefault(model, last_consumed)

    def must_select(self, model: str, columns: Mapping[str, str]) -> None:
        """Record columns without which the model would store wrong values, each with the reason."""
        self._needed.setdefault(model, {}).update(columns)

    def read_part(self, model: str, *, outside: bool = False) -> None:
        """Record that a model reads a part of what it would pull (``--empty``, ``--sample``).

        :param outside: whether the upstream is outside the catalog.
        """
        self._parts[model] = self._parts.get(model, False) or outside

    def reads_part(self, model: str) -> bool:
        """Whether a model reads a part of what it would pull."""
        return model in self._parts

    def reads_outside(self, model: str) -> bool:
        """Whether a model reads a part of a source outside the catalog."""
        return self._parts.get(model, False)

    def replace(self, model: str, pull: Pull) -> None:
        """Replace the recorded pull of the same upstream."""
        pulls = self._pulls[model]
        pulls[:] = [pull if one.upstream == pull.upstream else one for one in pulls]

    def begun_from(self, model: str) -> Mapping[str, Consumed] | None:
        """What the model's target had consumed at its first pull; ``None`` before that.

        All its pulls start from there. Another run may have committed in the meantime, which the commit must
        detect.
        """
        return self._last_consumed.get(model)

    def find(self, model: str, upstream: Name) -> list[Pull]:
        """The earlier pulls of that upstream in the same run, because a run reads one state of it."""
        return [pull for pull in self._pulls.get(model, []) if pull.upstream == upstream]

    def upstreams(self, model: str) -> set[Name]:
        """The upstreams that a model pulls."""
        return {pull.upstream for pull in self._pulls.get(model, [])}

    def read_few_rows(self, model: str, dependencies: Collection[str]) -> bool:
        """Whether a model reads few rows of each upstream, and nothing else.

        :param dependencies: the ids of the nodes that the model refers to.
        """
        pulls = self._pulls.get(model, [])
        reads_only_pulls = len(set(dependencies)) == len(self.upstreams(model))
        return bool(pulls) and reads_only_pulls and all(pull.few_rows for pull in pulls)

    def read_first(self, model: str) -> set[Name]:
        """The upstreams that a model pulls, and of which its target has consumed nothing."""
        pulls, since = self._pulls.get(model, []), self._since.get(model, [])
        return {pull.upstream for pull, one in zip(pulls, since, strict=True) if one is None}

    def consumed(self, model: str) -> dict[str, Consumed]:
        """What the model's commit records: versions by upstream, or that it wrote a part of the rows."""
        if model in self._parts:
            return {PART: Consumed("", "")}
        return {pull.upstream.dotted: pull.consumed for pull in self._pulls.get(model, [])}

    def was_part(self, model: str) -> bool:
        """Whether a model that pulls has a table to which a part of the rows was written."""
        return PART in self.last_consumed(model)

    def last_consumed(self, model: str) -> Mapping[str, Consumed]:
        """What the target of a model had consumed at its first pull."""
        return self._last_consumed.get(model, {})

    def require_everything(self, model: str, where: str) -> None:
        """Refuse to build a table from SQL that selects only changes.

        :raises ConcurrentRun: the table must be rebuilt, but the model was compiled to read changes.
        """
        if self.last_consumed(model):
            raise ConcurrentRun(
                "the table for which the model was compiled no longer exists",
                where=where,
                why="it was dropped or renamed meanwhile; a table built from changes would be incomplete",
                fix=f"nothing was written; run the model again: dbt run --select {where}",
            )

    def require_same_upstreams(self, model: str, where: str) -> None:
        """Refuse a model that pulls from a different table than its own table has consumed.

        :raises ConfigError: the model pulls from one table in place of another. The rows of the old one would
            remain, and only changes of the new one would be added. A table replaces another if the model has
            read none of its current upstreams, or has read a table of the same name in another schema:
            ``--defer`` chooses between these without a change of the SQL.
        """
        pulls, since = self._pulls.get(model, []), self._since.get(model, [])
        first = [pull.upstream for pull, one in zip(pulls, since, strict=True) if one is None]
        names = {upstream.dotted for upstream in self.upstreams(model)}
        ids = {pull.consumed.table_id for pull in pulls}
        replaced = [
            name
            for name, one in of_relations(self.last_consumed(model)).items()
            if name not in names and one.table_id not in ids
        ]
        pairs = [
            (upstream, name)
            for upstream in first
            for name in replaced
            if len(first) == len(pulls) or name.endswith(f".{upstream.identifier}")
        ]
        if pairs:
            upstream = pairs[0][0]
            old = ", ".join(name for one, name in pairs if one == upstream)
            raise ConfigError(
                f"the model pulls from {upstream} for the first time, and no longer from {old}",
                where=where,
                why=f"rows from there that are not in {upstream} would stay in the table",
                fix=f"build it from all rows: dbt run --full-refresh --select {where}; "
                "or pull from both in one run if the model needs both",
            )

    def require_known_rows(
        self,
        model: str,
        where: str,
        count_rows: Callable[[], int | None],
        was_replaced: Callable[[], bool],
    ) -> None:
        """Refuse to add all rows of an upstream to a table that may contain them.

        :param count_rows: returns the number of rows of the model's table; ``None`` if it is unknown.
        :param was_replaced: returns whether another program has replaced the table after a commit that
            recorded what its rows were computed from.
        :raises ConfigError: the model pulls from a relation for the first time, and its table has rows.
            These were computed without a pull, perhaps from the same relation. The rows of a source outside
            the catalog may all be new, unless another program has replaced the table.
        """
        relations, sources = self._relations.get(model, []), self._sources.get(model, [])
        if not (relations or sources) or self.last_consumed(model) or count_rows() == 0:
            return
        if not relations and not was_replaced():
            return
        first = (relations or sources)[0]
        raise ConfigError(
            f"the model pulls from {first} for the first time, and its table has rows already"
            if relations
            else f"the table of the model has rows, and it is not known what was read of {first}",
            where=where,
            why=f"the table records no version that these rows were computed from, so every row of {first} "
            "would be added to them" + ("" if relations else "; another program has replaced the table"),
            fix=f"build it from all rows: dbt run --full-refresh --select {where}",
        )

    def needed_columns(self, model: str, *, deletes_by_condition: bool) -> dict[str, str]:
        """The columns that the model must return, each with the reason.

        :param deletes_by_condition: whether the model has ``delete_when``, and so needs no ``_action``.
        """
        needed = self._needed.get(model, {})
        return {name: why for name, why in needed.items() if not (deletes_by_condition and name == ACTION)}

    def nothing_new(self, model: str) -> bool:
        """Whether a model pulls and none of its upstreams has changed."""
        pulls = self._pulls.get(model, [])
        return bool(pulls) and not any(pull.changed for pull in pulls)

    def clear(self) -> list[str]:
        """Discard all pulls. Returns the statements that drop what is no longer needed."""
        for release in self._held:
            release()
        self._held.clear()
        stages = [pull.stage for pulls in self._pulls.values() for pull in pulls if pull.stage is not None]
        drops = [f"DROP VIEW IF EXISTS {quote(stage.view)}" for stage in stages]
        drops += map(drop_table, self._staged)
        self._staged.clear()
        self._pulls.clear()
        self._since.clear()
        self._last_consumed.clear()
        self._needed.clear()
        self._relations.clear()
        self._sources.clear()
        self._parts.clear()
        return drops


def require_selected(model: str, needed: Mapping[str, str], columns: Collection[str]) -> None:
    """Refuse a model that leaves out a column without which it would store wrong values.

    :param needed: the columns, each with the reason.
    :param columns: those of the model's SQL.
    :raises ConfigError: it leaves one out.
    """
    there = {column.lower() for column in columns}
    missing = {name: why for name, why in needed.items() if name not in there}
    if missing:
        raise ConfigError(
            f"the model does not return {', '.join(sorted(missing))}",
            where=model,
            why="; ".join(missing.values()),
            fix="add it to the columns of the model's query, or use select *",
        )
