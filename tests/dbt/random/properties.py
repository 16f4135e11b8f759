"""Table properties of random models, which change from run to run."""

from __future__ import annotations

import random
from typing import Any

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import load_keyed
from tests.dbt.random.project import Model

NAMES = ("shop.owner", "shop.note")


def draw_properties(chance: random.Random, now: dict[str, str]) -> dict[str, str]:
    """The properties of a model in the next run: most often those that it has.

    No value has a backslash: dbt reads the settings of a simple model without Jinja, and then doubles it.
    """
    if chance.random() < 0.7:
        return now
    return {name: chance.choice(("anna", "it's new; -- so")) for name in NAMES if chance.random() < 0.5}


def wrong_properties(catalog: EmbeddedCatalog, schema: str, model: Model) -> str:
    """What is wrong with the properties of a table whose run has succeeded; empty if nothing is."""
    expected: dict[str, Any] = model.config.get("tblproperties", {})
    identifier = model.name
    if model.is_keyed:
        identifier = load_keyed(catalog, Name("lake", schema, model.name)).base.identifier
    state = catalog.load_table(schema, identifier)
    found = {} if state is None else {name: state.properties.get(name) for name in NAMES}
    wanted = {name: expected.get(name) for name in NAMES}
    return "" if found == wanted else f"its properties are {found}, expected {wanted}"
