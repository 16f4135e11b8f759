"""``dbt-arctic plan`` for people and for programs: the auxiliary views of a model."""

from __future__ import annotations

from dbt_arctic.adapter.planning import ModelPlan
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.plan import Build, Header, Nothing
from dbt_arctic.auto.state_tree import ShownState
from dbt_arctic.cli.plan import _as_json, reasons
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.reasons import Reason

SALES, MODEL = (Name("lake", "shop", one) for one in ("sales", "top"))
DAYS, WEEKS = (MODEL.sibling(f"top__state{number}") for number in ("", "_2"))


def of(*states: ShownState) -> ModelPlan:
    plan = Build(Header("top", None, "SELECT 1", ModelInputs(), {}, {}))
    return ModelPlan("top", MODEL, plan, False, (), "top.sql", (), states)


def test_states_are_a_tree_with_what_each_reads_below_it() -> None:
    days = ShownState(DAYS, ("day",), (SALES.dotted,), "incremental")
    weeks = ShownState(WEEKS, ("week",), (DAYS.dotted, SALES.dotted), None)
    assert reasons(of(days, weeks))[1:] == [
        "through its auxiliary views:",
        "  state top__state_2: follows; reads top__state, sales",
        "    state top__state: incremental; reads sales",
    ]
    both = reasons(of(days, ShownState(WEEKS, ("week",), (SALES.dotted,), "nothing")))[2:]
    assert both == [
        "  state top__state_2: nothing to do; reads sales",
        "  state top__state: incremental; reads sales",
    ], "neither reads the other"
    assert len(reasons(of())) == 1


def test_a_model_with_nothing_to_do_yet_names_what_the_run_refreshes_first() -> None:
    unchanged = Reason("unchanged", "no upstream has a new commit")
    plan = Nothing(Header("top", unchanged, "SELECT 1", ModelInputs(), {}, {}))
    found = ModelPlan("top", MODEL, plan, False, ("sales",), "top.sql", ())
    assert reasons(found) == [
        "no upstream has a new commit (unchanged)",
        "runs after sales, whose next changes are not known yet",
    ]
    assert reasons(of())[-1] == "the table does not exist yet", "nothing runs before"


def test_json_lists_states_in_the_order_in_which_they_are_refreshed() -> None:
    days = ShownState(DAYS, ("day",), (SALES.dotted,), "incremental")
    weeks = ShownState(WEEKS, ("week",), (DAYS.dotted,), None)
    assert _as_json(of(days, weeks), show_sql=False)["states"] == [
        {"relation": DAYS.dotted, "key": ["day"], "reads": [SALES.dotted], "refresh": "incremental"},
        {"relation": WEEKS.dotted, "key": ["week"], "reads": [DAYS.dotted], "refresh": None},
    ]
