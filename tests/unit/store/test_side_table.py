"""A base or change table is refused where a whole table is expected."""

from __future__ import annotations

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.side_table import refuse_side_table


@pytest.mark.parametrize("side", ["orders__base_1", "orders__change_12"])
def test_the_error_names_the_keyed_table(side: str) -> None:
    with pytest.raises(ConfigError, match="side table of the keyed table orders") as told:
        refuse_side_table(Name("lake", "shop", side), {"arctic.of": "lake.shop.orders"})
    assert told.value.fix == "use the keyed table: shop.orders"


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("orders__base_1", {}),
        ("orders", {"arctic.of": "lake.shop.orders"}),
        ("orders__base_1", {"arctic.of": "lake.shop.orders__base_1"}),
    ],
)
def test_other_tables_are_taken(name: str, properties: dict[str, str]) -> None:
    """Among them one that is being adopted, whatever its name."""
    refuse_side_table(Name("lake", "shop", name), properties)
