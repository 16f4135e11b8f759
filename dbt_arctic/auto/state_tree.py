"""The auxiliary views of a model for display: what each reads, and what the next run does with it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.auto.nested_view import consumed_by
from dbt_arctic.auto.plan import Action, OverState, RefreshPlan
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import of_relations


@dataclass(frozen=True)
class ShownState:
    """One auxiliary view.

    :param reads: the names of its upstreams, which may be views before it.
    :param action: what the next run does; ``None`` if this follows from the refresh of the views before it.
    """

    name: Name
    key: tuple[str, ...]
    reads: tuple[str, ...]
    action: Action | None


def shown_states(catalog: CatalogReader, name: Name, plan: RefreshPlan) -> list[ShownState]:
    """The auxiliary views of a model, in the order in which they are refreshed.

    :param plan: of the model. How a view is refreshed is known if the views before it have nothing to do.
    """
    shown: list[ShownState] = []
    while isinstance(plan, OverState):
        state = plan.state
        reads = tuple(one.name.dotted for one in state.plan.inputs.upstreams.values())
        shown.append(ShownState(state.name, state.view.key, reads, state.plan.action))
        plan = plan.first
    # A build may make others, which depend on the columns of the first one.
    for table in find_states(catalog, name)[len(shown) :] if shown and shown[0].action != "build" else ():
        reads = tuple(of_relations(consumed_by(catalog, table)))
        shown.append(ShownState(table.name, table.key, reads, None))
    return shown


__all__ = ["ShownState", "shown_states"]
