"""``clean``: removes what ``leftovers`` says may go. Each thing is looked at again before it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dbt_arctic.keyed import create, write
from dbt_arctic.keyed.names import literal
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.inventory import Inventory, take_inventory
from dbt_arctic.maintenance.leftovers import Removal, Retention, find_leftovers
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.refresh.edge import Edge


def clean(
    edge: Edge,
    catalog_name: str,
    removals: Sequence[Removal],
    retention: Retention,
    told: Callable[[Removal, bool], None] = lambda removal, done: None,
) -> int:
    """Remove what was agreed to, as far as it still may go. Returns how much went.

    Between the question and the answer a run may have taken something up: a branch that was published, a
    generation that is shown again. So a schema is read once more, and only what would be offered again goes.

    :param told: called with each removal, and whether it was made.
    """
    gone = 0
    for schema in sorted({removal.target.schema for removal in removals}):
        inventory = take_inventory(edge.catalog, catalog_name, schema)
        still = {
            _identity(removal) for removal in find_leftovers(inventory, edge.now_ms(), retention).removals
        }
        forgotten: set[str] = set()
        for removal in removals:
            if removal.target.schema != schema:
                continue
            done = _identity(removal) in still
            if done:
                for step, sql in _steps(edge, inventory, removal, forgotten):
                    edge.run(step, sql, removal.table)
                gone += 1
            told(removal, done)
    return gone


def forget_previous(table: KeyedTable) -> str:
    """Let the view no longer name the generation before: first, so that it never names what is gone."""
    return f"ALTER VIEW {table.name.sql} SET TBLPROPERTIES ({literal('arctic.previous')} = '')"


def _steps(
    edge: Edge, inventory: Inventory, removal: Removal, forgotten: set[str]
) -> Iterator[tuple[str, str]]:
    if removal.branch:
        yield "drop_branch", write.drop_branch(removal.target, removal.branch)
    elif removal.is_view and removal.target.identifier in inventory.keyed:
        drop_keyed(edge, inventory.keyed[removal.target.identifier])
    elif removal.is_view:
        yield "drop_aside", create.drop_view(removal.target)
    elif removal.kind == "previous" and removal.table is not None:
        if removal.table.name.identifier not in forgotten:
            yield "forget_previous", forget_previous(removal.table)
            forgotten.add(removal.table.name.identifier)
        yield "drop_side_table", create.drop_table(removal.target)
    else:
        steps = {"generation": "drop_side_table", "staging": "drop_staging", "set-aside": "drop_aside"}
        yield steps[removal.kind], create.drop_table(removal.target)


def _identity(removal: Removal) -> tuple[str, str, str]:
    return removal.kind, removal.target.dotted, removal.branch
