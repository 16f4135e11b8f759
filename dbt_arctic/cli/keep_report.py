"""How ``dbt-arctic keep`` shows what it does: one line for each action, or one JSON object."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from dbt_arctic.adapter.keep_actions import ActionOutcome, Observation
from dbt_arctic.adapter.kept_models import KeptProject
from dbt_arctic.cli.lag import shown_upstream
from dbt_arctic.cli.output import shown_time, terminal_width
from dbt_arctic.cli.tables import wrap
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import FAILED, OperationResult
from dbt_arctic.errors import ArcticError
from dbt_arctic.human_readable import counted, shown_seconds
from dbt_arctic.scheduling.model_lag import LagCause, problems_of
from dbt_arctic.scheduling.settings import KeepSettings

_NARROW = 24


class KeepReport:
    """Prints actions. Times are in UTC.

    :param as_json: whether to print JSON objects, one a line.
    """

    def __init__(self, project: KeptProject, as_json: bool) -> None:
        self._every = {one.model: one.settings.every_s for one in project.models}
        self._as_json = as_json
        self._wide = max(len(one.model) for one in project.models)
        self._day = ""

    def refreshed(self, outcome: ActionOutcome, observed: Observation, retry_s: float | None) -> None:
        """Show the outcome of one model."""
        why = self._why(outcome.model, observed)
        if retry_s is not None:
            why = "; ".join(filter(None, [why, f"again in {shown_seconds(round(retry_s))}"]))
        rows = "" if outcome.rows is None else counted(outcome.rows, "row")
        seconds = outcome.seconds if outcome.status != "skipped" else None
        self._show(outcome.status, outcome.model, rows, seconds, why, outcome.message, outcome.rows)

    def compacted(self, done: OperationResult) -> None:
        """Show a compaction."""
        operation = done.operation
        what = "failed" if done.outcome == FAILED else "compacted"
        detail = f"; {done.detail}" if done.detail and what == "compacted" else ""
        message = done.detail if what == "failed" else ""
        why = f"{operation.kind}: {operation.why}{detail}"
        self._show(what, operation.name.identifier, "", done.seconds, why, message)

    def shed(self, operation: Operation) -> None:
        """Show that compaction is due and gets no time."""
        why = (
            f"{operation.kind} compaction, about {shown_seconds(operation.cost_s)}, does not fit between "
            "refreshes; it runs after an hour at the latest, or with dbt-arctic compact"
        )
        self._show("shed", operation.name.identifier, "", None, why)

    def problem(self, error: ArcticError, retry_s: float) -> None:
        """Show that something other than a model failed."""
        self._show("failed", "", "", None, f"again in {shown_seconds(round(retry_s))}", str(error))

    def _why(self, model: str, observed: Observation) -> str:
        if model not in observed.lags:
            return ""  # a hook of the project
        every_s = self._every[model]
        if every_s is not None:
            return f"every {shown_seconds(every_s)}"
        late = observed.late.get(model)
        return shown_cause(late) if late is not None else "; ".join(problems_of(observed.lags[model]))

    def _show(
        self,
        what: str,
        model: str,
        rows: str,
        seconds: float | None,
        why: str,
        message: str = "",
        row_count: int | None = None,
    ) -> None:
        now = dt.datetime.now(dt.timezone.utc)
        if self._as_json:
            entry: dict[str, Any] = {"at": shown_time(round(now.timestamp() * 1000)), "action": what}
            entry |= {"model": model, "rows": row_count, "why": why, "message": message or None}
            entry["seconds"] = None if seconds is None else round(seconds, 2)
            click.echo(json.dumps(entry))
            return
        if f"{now:%Y-%m-%d}" != self._day:
            self._day = f"{now:%Y-%m-%d}"
            click.echo(f"{self._day} UTC")
        took = "" if seconds is None else f"{seconds:.1f} s"
        first = f"{now:%H:%M:%S}  {what:<9}  {model:<{self._wide}}  {rows:>11}  {took:>7}"
        for line in action_lines(first, why, terminal_width()):
            click.echo(line)
        for line in message.splitlines():
            click.echo(f"          {line}")


def action_lines(first: str, why: str, width: int | None) -> list[str]:
    """An action with its reason at the end, or below if the terminal is narrow.

    >>> action_lines("10:00:00  refreshed  a", "x: 1 file", None)
    ['10:00:00  refreshed  a  x: 1 file']
    """
    if width is None or len(first) + 2 + len(why) <= width:
        return [f"{first}  {why}".rstrip()]
    left = width - len(first) - 2
    if left >= _NARROW:
        start, *rest = wrap(why, left)
        return [f"{first}  {start}", *(" " * (len(first) + 2) + line for line in rest)]
    return [first.rstrip(), *(" " * 10 + line for line in wrap(why, max(width - 10, _NARROW)))]


def shown_cause(late: LagCause) -> str:
    """What makes a model late, for display."""
    through = f", through {', '.join(late.through)}" if late.through else ""
    return f"{late.because_of.upstream}{through}: {shown_upstream(late.because_of)}"


def shown_settings(settings: KeepSettings) -> str:
    """When a model is refreshed, for display.

    >>> shown_settings(KeepSettings(target_lag_s=300)), shown_settings(KeepSettings(every_s=3600))
    ('5 min', 'every 1 h')
    """
    if settings.every_s is not None:
        return f"every {shown_seconds(settings.every_s)}"
    return "downstream" if settings.target_lag_s is None else shown_seconds(settings.target_lag_s)


def shown_models(models: Mapping[str, KeepSettings]) -> str:
    """All models, for display."""
    return ", ".join(f"{name} ({shown_settings(settings)})" for name, settings in models.items())


def shown_end(
    stopped_by: str, refreshes: int, compactions: int, failures: int, failing: Sequence[str]
) -> str:
    """The last line."""
    counts = [
        counted(refreshes, "refresh"),
        counted(compactions, "compaction"),
    ]
    counts += [counted(failures, "failure")] if failures else []
    text = f"Ended{f' by {stopped_by}' if stopped_by else ''}: {', '.join(counts)}."
    return f"{text} Failing: {', '.join(failing)}." if failing else text


__all__ = ["KeepReport", "action_lines", "shown_cause", "shown_end", "shown_models", "shown_settings"]
