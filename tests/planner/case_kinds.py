"""The kinds of random cases: how one is drawn from a seed, how it is judged, and what it is to have met."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from tests.planner import (
    chained_views,
    common_queries,
    compared_values,
    computed_keys,
    equivalent_wordings,
    extended_queries,
    inner_state,
    limit_queries,
    random_queries,
    rewritings,
    sums_of_queries,
    time_queries,
    totals,
)
from tests.planner.chained_queries import draw_chained
from tests.planner.oracle import Database, Verdict, judge
from tests.planner.random_queries import Case, draw
from tests.planner.state_queries import draw_kept


@dataclass(frozen=True)
class Kind:
    """:param share: of a hundred seeds so many have it.
    :param operators: what cases of no other kind are there for.
    :param typed: over tables with columns of several types.
    """

    share: int
    draw: Callable[[int], Case]
    judge: Callable[[Database, Case], Verdict]
    operators: tuple[str, ...] = ()
    typed: bool = False


_RARE = {
    **dict.fromkeys(("exists", "in", "union", "distinct", "explode outer", "not exists", "one group"), 2),
    **dict.fromkeys(("subquery in a select list", "uncorrelated", "except", "posexplode", "rollup"), 2),
    **dict.fromkeys(("shared cte", "window over groups", "nested aggregates", "subquery in HAVING"), 3),
    **dict.fromkeys(("not in", "not in what may be NULL", "cube", "grouping sets", "numbered window"), 4),
    "intersect": 6,
}
"""What few queries have, or have with a change of the result that is no reason for a full refresh, and how
often each is drawn, compared with the others."""
_OTHER = 1_000_003
"""How far the seed is from which another query is drawn."""


def draw_rare(seed: int) -> Case:
    """A query that has an operator which few have."""
    wanted = random.Random(f"rare/{seed}").choices(list(_RARE), list(_RARE.values()))[0]
    place = seed
    while wanted not in (made := draw(place)).operators:
        place += _OTHER
    return replace(made, seed=seed)


KINDS = {
    "plain": Kind(11, draw, judge, random_queries.OPERATORS),
    "rare": Kind(10, draw_rare, judge),
    "typed": Kind(2, partial(draw, typed=True), judge, typed=True),
    "summed": Kind(6, sums_of_queries.draw_summed, sums_of_queries.judge_summed, sums_of_queries.OPERATORS),
    "computed keys": Kind(
        8, computed_keys.draw_computed, computed_keys.judge_computed, computed_keys.OPERATORS
    ),
    "compared values": Kind(3, compared_values.draw_compared, judge, compared_values.OPERATORS),
    "timed": Kind(5, time_queries.draw_timed, time_queries.judge_timed, time_queries.OPERATORS),
    "limited": Kind(6, limit_queries.draw_limited, limit_queries.judge_limited, limit_queries.OPERATORS),
    "kept inside": Kind(3, draw_kept, inner_state.judge_with_state, inner_state.OPERATORS),
    "totals": Kind(3, totals.draw_totals, totals.judge_totals, totals.OPERATORS),
    "chained": Kind(4, draw_chained, chained_views.judge_chain, chained_views.OPERATORS),
    "shaped": Kind(25, common_queries.draw_shaped, judge, common_queries.OPERATORS),
    "rewritten": Kind(4, rewritings.draw_rewritten, rewritings.judge_rewritten, rewritings.OPERATORS),
    "in other words": Kind(
        3, equivalent_wordings.draw_worded, equivalent_wordings.judge_worded, equivalent_wordings.OPERATORS
    ),
    "extended": Kind(7, extended_queries.draw_extended, judge, extended_queries.OPERATORS),
}
OPERATORS = tuple(name for kind in KINDS.values() for name in kind.operators)
"""Each must be met often, with a change that is not empty."""


def kind_of(seed: int) -> str:
    shares = [kind.share for kind in KINDS.values()]
    return random.Random(f"kind/{seed}").choices(list(KINDS), shares)[0]
