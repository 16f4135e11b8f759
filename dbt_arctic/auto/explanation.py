"""Explains the plan of a model in plain words: what runs, why, what it costs, and what would make it cheaper.

All values come from the plan and from the commits of the model. No statement is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dbt_arctic.auto.advice import Advice
from dbt_arctic.auto.fallbacks import fallback_conditions
from dbt_arctic.auto.inputs import analysed_query
from dbt_arctic.auto.plan import Build, ByKeys, BySummaryDelta, IncrementalPlan, OverState, RefreshPlan
from dbt_arctic.auto.reason_advice import ADVICE
from dbt_arctic.auto.stages import stages_of
from dbt_arctic.auto.timings import RefreshTiming, Strategy
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.planner.algebra.operators import OF_CHANGES, Node, scans, walk
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.store.state import total

_RECENT = 5
"""The number of earlier refreshes of each kind that count."""


@dataclass(frozen=True)
class Cost:
    """What a refresh reads, as far as metadata determine it. These are upper bounds: files are skipped.

    :param changed_rows: the changed rows of upstreams that it reads; ``None`` if unknown.
    :param other_rows: the other rows of upstreams; ``None`` if unknown.
    :param bytes: the size of all these rows in their files; ``None`` if unknown.
    :param operators: the operators of the queries of its statements; ``None`` if unknown.
    """

    changed_rows: int | None
    other_rows: int | None
    bytes: int | None
    operators: int | None

    @property
    def rows(self) -> int | None:
        """All rows that it reads; ``None`` if unknown."""
        return total([self.changed_rows, self.other_rows])


@dataclass(frozen=True)
class Explanation:
    """The explanation of one model's next refresh.

    :param does: what the refresh does, as a sentence.
    :param cost: what it reads; ``None`` if it reads nothing, or if that depends on an earlier step.
    :param full_cost: what a full refresh reads.
    :param seconds: the fastest of the last refreshes of the same kind; ``None`` if there was none.
    :param full_seconds: the fastest of the last full refreshes, builds included.
    :param otherwise: when it becomes another kind of refresh.
    :param advice: what would make it incremental or cheaper.
    """

    does: str
    cost: Cost | None
    full_cost: Cost | None
    seconds: float | None
    full_seconds: float | None
    otherwise: tuple[str, ...]
    advice: tuple[str, ...]


def explain(
    plan: RefreshPlan, earlier: Sequence[RefreshTiming], lasting: Iterable[Advice] = ()
) -> Explanation:
    """Explain a plan.

    :param earlier: earlier refreshes of the model's table, newest first.
    :param lasting: what in the query prevents incremental refreshes.
    """
    first = plan.first if isinstance(plan, OverState) else plan
    ends = (stage.decision for stage in stages_of(plan) if stage.decision is not None)
    decisions = [one.when for one in ends if one.is_full]
    strategy: Strategy = "incremental" if plan.action == "incremental" else "full"
    whole = _whole(plan)
    costs = {"nothing": None, "incremental": _cost(first)}
    return Explanation(
        does=_does(plan),
        cost=costs.get(plan.action, whole),
        full_cost=whole,
        seconds=None if plan.action == "nothing" else _fastest(earlier, strategy),
        full_seconds=_fastest(earlier, "full"),
        otherwise=tuple(dict.fromkeys([*decisions, *fallback_conditions(plan)])),
        advice=tuple(dict.fromkeys(_advice(plan, lasting))),
    )


def _does(plan: RefreshPlan) -> str:
    match plan:
        case OverState() if plan.action == "build":
            return "Builds the auxiliary views, and the table from the last one."
        case OverState() if plan.action != "nothing":
            return "Refreshes the auxiliary views one after the other, and the table from what changed there."
        case Build():
            return "Runs the whole query and creates the table."
        case ByKeys() if plan.incremental.affected is None:
            return "Compares the values that all rows depend on. If they are equal, no row changes."
        case ByKeys():
            return "Finds the keys that the changes can affect, and computes the query for these keys only."
        case BySummaryDelta():
            return "Adds the changes to the stored sums, counts, minima and maxima. It reads no other groups."
    if plan.action == "nothing":
        return "Does nothing: no upstream has a new commit."
    return "Runs the whole query, compares it with all stored rows, and writes those that differ."


def _cost(plan: RefreshPlan) -> Cost:
    if not isinstance(plan, IncrementalPlan):
        return _whole(plan)
    tables = plan.inputs.upstreams
    every = [one for node in plan.nodes for one in scans(node) if one.source in tables]
    changed = {one.source for one in every if one.state in OF_CHANGES}
    other = {one.source for one in every if one.state not in OF_CHANGES}
    sizes = [
        *(_size(tables[source], tables[source].changed_rows) for source in changed),
        *(_size(tables[source], _stored(tables[source])) for source in other),
    ]
    return Cost(
        total(tables[source].changed_rows for source in changed),
        total(_stored(tables[source]) for source in other),
        total(sizes),
        _operators(plan.nodes),
    )


def _whole(plan: RefreshPlan) -> Cost:
    """What the whole query reads. For a model over auxiliary views, these are the tables below them."""
    inputs = plan.state.inputs if isinstance(plan, OverState) else plan.inputs
    tables = inputs.upstreams.values()
    operators = None
    # If the query is not understood, the number of its operators is unknown.
    with suppress(CannotPlan):
        operators = None if inputs.tree is None else _operators([analysed_query(inputs, None).node])
    sizes = (_size(one, _stored(one)) for one in tables)
    return Cost(0, total(map(_stored, tables)), total(sizes), operators)


def _stored(upstream: Upstream) -> int | None:
    """The rows that a read of an upstream goes through, with its pending changes; ``None`` if unknown."""
    return None if upstream.rows is None else max(upstream.rows, upstream.stored_rows or 0)


def _size(upstream: Upstream, rows: int | None) -> int | None:
    return None if rows is None or upstream.row_bytes is None else round(rows * upstream.row_bytes)


def _operators(nodes: Sequence[Node]) -> int:
    return sum(1 for node in nodes for _ in walk(node))


def _fastest(earlier: Sequence[RefreshTiming], strategy: Strategy) -> float | None:
    return min([one.seconds for one in earlier if one.strategy == strategy][:_RECENT], default=None)


def _advice(plan: RefreshPlan, lasting: Iterable[Advice]) -> list[str]:
    found = [_of(one.reason) for one in lasting]
    if plan.reason is not None and plan.action == "full":
        found.append(_of(plan.reason))
    found += [
        f"{one.name.identifier} is a plain table: finding what changed compares two versions of it. A keyed "
        "table records its changes."
        for one in (plan.changed if plan.action == "incremental" else [])
        if not one.logged
    ]
    return found


def _of(reason: Reason) -> str:
    fix = reason.fix or ADVICE[reason.code]
    return f"{fix[0].upper()}{fix[1:]}".rstrip(".") + "."


__all__ = ["Cost", "Explanation", "explain"]
