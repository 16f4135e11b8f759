"""``dbt-arctic plan``: explains how the next run would refresh each automatic model. Reads metadata only."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from dbt_arctic.auto.fallbacks import alternatives_of, fallback_conditions
from dbt_arctic.auto.plan import OverState, RefreshPlan, has_other_columns
from dbt_arctic.auto.stages import GOES, stages_of, stages_with_sql
from dbt_arctic.cli.explain import explained, explanation_as_dict
from dbt_arctic.cli.options import json_option, project_options
from dbt_arctic.cli.output import print_json, print_table
from dbt_arctic.human_readable import counted

if TYPE_CHECKING:
    from dbt_arctic.adapter.planning import ModelPlan
    from dbt_arctic.adapter.project import Target

WORDS = {
    "build": "build",
    "full": "full refresh",
    "incremental": "incremental",
    "nothing": "nothing to do",
}

_THEN = "then the query over the auxiliary view, whose text is known after the view has been built"


@click.command(short_help="Explain how the next run refreshes automatic models.")
@click.argument("select", nargs=-1)
@click.option("--sql", "show_sql", is_flag=True, help="Also print the SQL of each refresh.")
@click.option("--explain", "explains", is_flag=True, help="Explain each refresh: cost, fallbacks, advice.")
@json_option
@project_options
def plan(target: Target, select: tuple[str, ...], show_sql: bool, explains: bool, as_json: bool) -> None:
    """Explain how the next run refreshes automatic models (all, or those that SELECT matches).

    SELECT has dbt's syntax: a model, a path, tag:..., +model+.
    """
    from dbt_arctic.adapter.planning import plan_models
    from dbt_arctic.adapter.target_session import target_session

    with target_session(target, "plan") as session:
        plans = plan_models(session, target, select)
    if as_json:
        print_json([_as_json(entry, show_sql) for entry in plans])
        return
    if not plans:
        click.echo("No selected model is automatic (incremental_strategy='auto').")
        return
    if explains:
        for place, entry in enumerate(plans):
            why, views = reasons(entry, with_more=False), _state_lines(entry)
            lines = explained(entry, WORDS[entry.plan.action], why, views, _width())
            click.echo(("\n" if place else "") + "\n".join(lines))
    else:
        print_table(
            {"model": "text", "refresh": "text", "why": "text"},
            ([entry.model, WORDS[entry.plan.action], "\n".join(reasons(entry))] for entry in plans),
        )
    if show_sql:
        for entry in plans:
            for stage, text in stages_with_sql(stages_of(entry.plan)):
                click.echo(f"\n-- {entry.model}: {stage.purpose}; {GOES[stage.result]}\n{text}")
            for one in alternatives_of(entry.plan):
                for stage, text in stages_with_sql(stages_of(one.plan)):
                    click.echo(
                        f"\n-- {entry.model}, if {one.when}: {stage.purpose}; {GOES[stage.result]}\n{text}"
                    )
            if isinstance(entry.plan, OverState) and entry.plan.state.query is None:
                click.echo(f"\n-- {entry.model}: {_THEN}")


def _width() -> int:
    """The width of a line. A pipe has the width of a terminal, unless ``COLUMNS`` is set."""
    return min(shutil.get_terminal_size().columns, 120)


def reasons(entry: ModelPlan, *, with_more: bool = True) -> list[str]:
    """The reasons for a plan, for display.

    :param with_more: whether to list the auxiliary views, and what the user can change.
    """
    found = []
    plan = entry.plan
    advised = {advice.reason.code for advice in entry.advice}
    if plan.action == "build" and not has_other_columns(plan):
        found.append("full_refresh in its config" if entry.is_requested else "the table does not exist yet")
    elif (
        plan.reason is not None and plan.reason.code not in advised and (with_more or not _is_unchanged(plan))
    ):
        found.append(f"{plan.reason.what} ({plan.reason.code})")
        if plan.reason.place:
            found[-1] += f", {plan.reason.place}"
        if plan.reason.fix and plan.action == "full" and with_more:
            found.append(f"to avoid this: {plan.reason.fix}")
    for upstream in plan.changed if plan.action == "incremental" else []:
        changed = upstream.changed_rows
        rows = "new commits" if changed is None else counted(changed, "changed row")
        found.append(f"{upstream.name.identifier}: {rows}")
    lines = _state_lines(entry) if with_more and plan.action != "nothing" else []
    if lines:
        found += ["through its auxiliary views:", *(f"  {line}" for line in lines)]
    if plan.inputs.time_changed and plan.action == "incremental":
        found.append("the query uses the current time, which has moved since the last refresh")
    for advice in entry.advice:
        reason = advice.reason
        at = f", line {reason.line} of {entry.path}" if reason.line else ""
        at = f", {reason.place}" if reason.view else at
        found.append(
            f"{'never' if advice.always else 'not always'} incremental: {reason.what} ({reason.code}{at})"
        )
        if reason.fix and with_more:
            found.append(f"to avoid this: {reason.fix}")
    if entry.before:
        is_unknown = not with_more or plan.action == "nothing"
        later = ", whose next changes are not known yet" if is_unknown else ""
        found.append(f"runs after {', '.join(entry.before)}{later}")
    return found


def _is_unchanged(plan: RefreshPlan) -> bool:
    """Whether nothing runs because no upstream has changed."""
    return plan.action == "nothing" and plan.reason is not None and plan.reason.code == "unchanged"


def _state_lines(entry: ModelPlan) -> list[str]:
    """The auxiliary views as a tree: below each what it reads. A view that is read twice is shown once."""
    below = {state.name.dotted: state for state in entry.states}
    lines: list[str] = []

    def add(names: Iterable[str], depth: int) -> None:
        for name in names:
            state = below.pop(name, None)
            if state is None:
                continue
            what = "follows" if state.action is None else WORDS[state.action]
            others = ", ".join(one.rpartition(".")[2] for one in state.reads)
            lines.append(f"{'  ' * depth}state {state.name.identifier}: {what}; reads {others}")
            add(reversed(state.reads), depth + 1)

    for state in reversed(entry.states):
        add([state.name.dotted], 0)
    return lines


def _as_json(entry: ModelPlan, show_sql: bool) -> dict[str, Any]:
    plan = entry.plan
    # The one that is there next time, too; the advice has it as well.
    reason = plan.reason.lasting if plan.reason else None
    found: dict[str, Any] = {
        "model": entry.model,
        "relation": entry.name.dotted,
        "refresh": plan.action,
        "reason": reason.code if reason else None,
        "reason_this_time": plan.reason.code if plan.reason else None,
        "why": reason.what if reason else None,
        "line": reason.line if reason else None,
        "view": (reason.view or None) if reason else None,
        "fix": (reason.fix or None) if reason else None,
        "advice": [
            {
                "always": advice.always,
                "reason": advice.reason.code,
                "why": advice.reason.what,
                "fix": advice.reason.fix or None,
                "path": entry.path,
                "line": advice.reason.line,
                "view": advice.reason.view or None,
            }
            for advice in entry.advice
        ],
        "upstreams": [
            {
                "relation": upstream.name.dotted,
                "changed": upstream.changed,
                "changed_rows": upstream.changed_rows,
                "rows": upstream.rows,
            }
            for upstream in plan.inputs.upstreams.values()
        ],
    }
    found["states"] = [
        {
            "relation": state.name.dotted,
            "key": list(state.key),
            "reads": list(state.reads),
            "refresh": state.action,
        }
        for state in entry.states
    ]
    found["stages"] = _stages(plan)
    found["alternatives"] = [{"if": one.when, "stages": _stages(one.plan)} for one in alternatives_of(plan)]
    found["falls_back_if"] = fallback_conditions(plan)
    found["explanation"] = explanation_as_dict(entry.explanation)
    if show_sql:
        found["sql"] = _sql(plan)
        for shown, one in zip(found["alternatives"], alternatives_of(plan), strict=True):
            shown["sql"] = _sql(one.plan)
    return found


def _stages(plan: RefreshPlan) -> list[dict[str, Any]]:
    return [
        {
            "name": stage.name,
            "purpose": stage.purpose,
            "result": stage.result,
            "full_refresh_if": stage.decision.when if stage.decision and stage.decision.is_full else None,
        }
        for stage in stages_of(plan)
    ]


def _sql(plan: RefreshPlan) -> dict[str, str]:
    return {stage.purpose: text for stage, text in stages_with_sql(stages_of(plan))}
