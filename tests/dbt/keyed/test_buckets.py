"""The number of buckets of a model: said, changed and left open."""

from __future__ import annotations

from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.test_operator_commands import ORDERS, Terminal


def test_another_number_is_what_the_next_compaction_makes(shop: Shop) -> None:
    type_in = Terminal(shop)
    shop.source("raw_orders", "select id, 10 amount, false gone from range(20)")
    shop.model("orders", ORDERS)
    shop.dbt("run")
    shop.model("orders", ORDERS.replace("buckets=2", "buckets=4"))
    shop.dbt("run")
    (planned,) = type_in.json("compact", "orders", "--kind", "full", "--plan")
    assert (planned["kind"], planned["scope"]) == ("full", "all, into 4 buckets")
    reason = "grow from 2 to 4 buckets: set by the model; joins shuffle while changes are moved"
    assert planned["why"] == reason
    assert reason in [due["why"] for due in type_in.json("status", "orders")[0]["due"]]
    assert "2 buckets into 4, joins in place again after" in type_in("compact", "orders")
    assert type_in.json("compact") == []
    assert type_in.json("verify")["findings"] == []
    assert shop.state("orders", "base").partitioning == ("bucket(4, id)",)
    assert shop.state("orders", "change").partitioning == ("bucket(4, id)",)
    # Without a setting it stays, whether rows are added or the table is rebuilt.
    shop.model("orders", ORDERS.replace("buckets=2", "buckets='auto'"))
    shop.dbt("run", "--full-refresh")
    shop.dbt("run")
    assert shop.state("orders", "base").partitioning == ("bucket(4, id)",)
    assert shop.rows("orders", "count(*), sum(amount)") == [(20, 200)]
    shop.model("orders", ORDERS.replace("buckets=2", "buckets=3"))
    assert "set buckets=4" in str(shop.try_dbt("run"))
