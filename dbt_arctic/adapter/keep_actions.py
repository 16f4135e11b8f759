"""What ``dbt-arctic keep`` observes and does: lags, refreshes by dbt in this process, compaction."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from dbt_arctic.adapter.dbt_invocation import invoke
from dbt_arctic.adapter.kept_models import KeptProject
from dbt_arctic.adapter.model_lags import LagReader, unreadable
from dbt_arctic.adapter.process_modes import KEEPING
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.catalog.once import Once
from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation, most_valuable_first
from dbt_arctic.compaction.run import OperationResult, run_operations
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.overview import overview_of_tables
from dbt_arctic.maintenance.upkeep import durations_of, record_and_keep
from dbt_arctic.refresh.freshness import last_modified_ms
from dbt_arctic.scheduling.model_lag import NOT_BUILT, LagCause, ModelLag, late_models, problems_of
from dbt_arctic.scheduling.scheduler import ModelState

Status = Literal["refreshed", "failed", "skipped", "overtaken"]

_OVERTAKEN = "AR-404"
_NOT_RUN = "dbt did not run it; see its log"


@dataclass(frozen=True)
class ActionOutcome:
    """The result of one model in one refresh.

    :param rows: the rows written; ``None`` if unknown.
    :param message: why it failed; else empty.
    """

    model: str
    status: Status
    seconds: float = 0.0
    rows: int | None = None
    message: str = ""


@dataclass(frozen=True)
class Observation:
    """What was known of all models at one time.

    :param late: the late models, and why, as far as a refresh of the kept models can change that.
    """

    seen: Mapping[str, ModelState]
    lags: Mapping[str, ModelLag]
    late: Mapping[str, LagCause]


class Keeper:
    """Keeps the models of a project current."""

    def __init__(self, project: KeptProject, session: TargetSession, warn: Callable[[str], None]) -> None:
        self._project = project
        self._session = session
        self._warn = warn
        self._experience: MeasuredDurations | None = None
        self._seen_first: dict[tuple[str, str, int], float] = {}

    def observe(self, ran_at: Mapping[str, float]) -> Observation:
        """Read the lags of all models, from metadata, listings and offsets.

        The refresh of a model whose table cannot be read fails by itself, and the others go on.

        :param ran_at: when this process has run a model, in seconds since the epoch.
        :raises ArcticError: the catalog cannot be read.
        """
        project = self._project
        catalog = Once(self._session.catalog)
        reader = LagReader(catalog, project.target, project.manifest)
        now = now_s()
        lags: dict[str, ModelLag] = {}
        changed: dict[str, float] = {}
        seen = {}
        for one in project.models:
            try:
                lag = lags[one.model] = reader.lag_of(project.nodes[one.model])
                if lag.problem != NOT_BUILT and one.settings.every_s is not None:
                    changed_ms = last_modified_ms(catalog, project.table_of(one.model))
                    changed[one.model] = (changed_ms or 0) / 1000
            except ArcticError as error:
                self._require_catalog(project.table_of(one.model))
                lags[one.model] = ModelLag(one.model, problem=unreadable(error))
        waits = self._waiting_since(lags, now)
        for one in project.models:
            lag = lags[one.model]
            waiting = waits[one.model]
            is_built, is_scheduled = lag.problem != NOT_BUILT, one.settings.every_s is not None
            is_unknown = bool(problems_of(lag))
            times = [ran_at[one.model]] if one.model in ran_at else []
            # A time in the future is that of another clock. Until then, the model would not run.
            times += [changed[one.model]] if 0 < changed.get(one.model, 0) <= now else []
            must_run = not is_built or (is_unknown and not is_scheduled)
            seen[one.model] = ModelState(waiting, must_run, max(times, default=None))
        scheduled = {one.model for one in project.models if one.settings.every_s is not None}
        reads = {name: [one for one in ones if one not in scheduled] for name, ones in project.reads.items()}
        return Observation(seen, lags, late_models(list(lags.values()), reads))

    def _require_catalog(self, table: Name) -> None:
        """Raise if it is not only one table that cannot be read.

        :raises ArcticError: the catalog cannot be read.
        """
        self._session.catalog.of(table).list_names(table.schema)

    def _waiting_since(self, lags: Mapping[str, ModelLag], now: float) -> dict[str, dict[str, float]]:
        """By model and upstream, since when a change has been waiting, in seconds since the epoch.

        A change whose time is in the future has been waiting since this process has seen it first.
        """
        found: dict[str, dict[str, float]] = {}
        ahead: dict[tuple[str, str, int], float] = {}
        for model, lag in lags.items():
            found[model] = {}
            for one in lag.waiting:
                if one.since_ms is None:
                    continue
                since, key = one.since_ms / 1000, (model, one.upstream, one.since_ms)
                if since > now:
                    since = ahead[key] = self._seen_first.get(key, now)
                found[model][one.upstream] = since
        self._seen_first = ahead
        return found

    def refresh(self, models: Sequence[str]) -> list[ActionOutcome] | None:
        """Run models with dbt; ``None`` if that was interrupted."""
        project = self._project
        # dbt stores compiled SQL in the manifest, so each invocation needs its own.
        manifest = project.manifest.deepcopy()
        selection = [_selector(project.nodes[model]) for model in models]
        with KEEPING.on(), redirect_stdout(io.StringIO()):
            outcome = invoke(
                project.target,
                manifest,
                *("run", "--log-level", "none", "--select", *selection),
                artifacts=project.target.artifacts,
            )
        if isinstance(outcome.exception, KeyboardInterrupt | SystemExit):
            return None
        results = getattr(outcome.result, "results", None)
        if results is None:
            why = str(outcome.exception or "dbt has returned no results; see its log")
            return [ActionOutcome(model, "failed", message=why) for model in models]
        names = {node.unique_id: name for name, node in project.nodes.items()}
        outcomes = [_outcome(one, names.get(one.node.unique_id, one.node.name)) for one in results]
        return completed(models, outcomes)

    def due_compactions(self) -> list[Operation]:
        """The compactions of the models' tables that are due, the most valuable first.

        :raises ArcticError: the catalog cannot be read.
        """
        session = self._session
        catalog = Once(session.catalog)
        tables = self._project.tables
        for name in self._project.tables:
            with suppress(ArcticError):  # `status` shows which one cannot be read, and why
                tables |= {state.name for state in find_states(catalog, name)}
        found = overview_of_tables(
            catalog, tables, session.context.now_ms(), session.compaction_of, with_lags=False
        )
        due = [one for seen in found for one in seen.due]
        if not due:
            return []
        self._experience = durations_of(catalog, session.own_schema, self._warn)
        return most_valuable_first(self._experience.applied(due))

    def compact(
        self,
        operations: Sequence[Operation],
        budget_s: float | None,
        report: Callable[[OperationResult], None],
    ) -> None:
        """Run compactions within a budget; without one, the first of them."""
        session = self._session
        chosen = operations if budget_s is not None else operations[:1]
        # The estimates of the operations are those of the last look.
        assert self._experience is not None
        experience = self._experience
        session.read("SELECT 1")  # keeps Spark's start out of the first operation's time
        done = run_operations(session.context, chosen, budget_s, report=report)
        own, kept_s = session.own_schema, session.operations_kept_s
        record_and_keep(session.context, own, done, experience, kept_s, self._warn)


def completed(models: Sequence[str], outcomes: Sequence[ActionOutcome]) -> list[ActionOutcome]:
    """The outcomes of a run, with one for each of its models.

    A model that dbt skipped because a hook failed has failed. It would otherwise be due again at once.

    :param outcomes: of models and of hooks.
    """
    found = [*outcomes]
    known = {one.model for one in outcomes}
    found += [ActionOutcome(one, "failed", message=_NOT_RUN) for one in models if one not in known]
    if any(one.status == "failed" and one.model not in models for one in outcomes):
        found = [replace(one, status="failed") if one.status == "skipped" else one for one in found]
    return found


def _selector(node: Any) -> str:
    """dbt's selector of exactly one model. A folder may have the name of a model."""
    return f"fqn:{'.'.join(node.fqn)},file:{Path(node.original_file_path).name}"


def _outcome(result: Any, name: str) -> ActionOutcome:
    status = str(result.status.value)
    message = str(result.message or "")
    if status in ("success", "no-op", "pass", "warn"):
        rows = (result.adapter_response or {}).get("rows_affected")
        known = rows if isinstance(rows, int) else None
        return ActionOutcome(name, "refreshed", result.execution_time, known)
    if status == "skipped":
        return ActionOutcome(name, "skipped")
    found: Status = "overtaken" if _OVERTAKEN in message else "failed"
    return ActionOutcome(name, found, result.execution_time, message=message)


def now_s() -> float:
    """The time in seconds since the epoch."""
    return time.time()


__all__ = ["ActionOutcome", "ArcticError", "Keeper", "Observation", "completed", "now_s"]
