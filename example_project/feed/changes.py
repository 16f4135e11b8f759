"""One round of changes in the shop, in the manner of TPC-H's refresh functions.

RF1 adds orders with their lines, and RF2 deletes old ones. In addition, orders change their status, day,
customer and lines, and prices, stocks and addresses change. Each round contains the difficult cases of a
change feed: keys that change twice, keys that appear and disappear within the round, and keys that return
after a delete. The same seed gives the same changes. Nothing here reads or writes files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice

from feed.shop import Row, Shop

CENT = Decimal("0.01")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")


@dataclass
class Round:
    """What one round changed: for each table its changes, in the order in which they happened."""

    changes: dict[str, list[tuple[str, Row]]] = field(default_factory=dict)

    def add(self, table: str, op: str, row: Row) -> None:
        self.changes.setdefault(table, []).append((op, dict(row)))


def make_round(shop: Shop, number: int, *, seed: int, fraction: float) -> Round:
    """Change the shop once more.

    :param fraction: the size of each kind of order change, as a part of all orders.
    """
    return _RoundMaker(shop, random.Random(f"{seed}/{number}"), fraction).run()


class _RoundMaker:
    def __init__(self, shop: Shop, rng: random.Random, fraction: float) -> None:
        self.shop = shop
        self.rng = rng
        self.round = Round()
        self.size = max(4, round(len(shop.live) * fraction))
        self.few = max(1, self.size // 4)

    def run(self) -> Round:
        returning = list(self.shop.cancelled)[: self.few]
        oldest = list(self.shop.live)[: self.size]
        rest = list(self.shop.live)[self.size :]
        keys = iter(self.rng.sample(rest, min(len(rest), 8 * self.size)))

        self._cancel(oldest)
        self._come_back(returning)
        self._ship(_take(keys, self.size))
        self._change_lines(_take(keys, self.size))
        self._drop_a_line(_take(keys, self.few))
        self._take_goods_back(_take(keys, self.few))
        self._move_to_another_day(_take(keys, self.few))
        self._move_to_another_customer(_take(keys, self.few))
        self._cancel_and_take_again(_take(keys, self.few))
        self._new_orders(_take(keys, self.size))

        self._change_customers()
        self._change_suppliers()
        self._change_parts()
        return self.round

    # orders and their lines

    def _new_orders(self, templates: list[int]) -> None:
        """RF1. Some are changed, and some cancelled, before the round is over."""
        new: list[int] = []
        for order, lines in self._orders(templates):
            key = self._next_order_key()
            days = timedelta(days=self.rng.randint(-45, 45))
            order = {**order, "o_orderkey": key, "o_orderdate": order["o_orderdate"] + days}
            order |= {"o_orderstatus": "O", "o_comment": "new"}
            lines = [
                {**line, "l_orderkey": key, "l_returnflag": "N", "l_linestatus": "O"}
                | {name: line[name] + days for name in ("l_shipdate", "l_commitdate", "l_receiptdate")}
                for line in lines
            ]
            self._insert(order, lines)
            new.append(key)
        self._ship(new[: self.few])
        self._cancel(new[-self.few :])

    def _cancel(self, keys: list[int]) -> None:
        """RF2: an order goes with all its lines."""
        for order, lines in self._orders(keys):
            key = order["o_orderkey"]
            for line in lines:
                self._delete_line(line)
            self.round.add("orders", "D", {"o_orderkey": key})
            self.shop.cancelled[key] = (order, lines)
            self.shop.orders.write(key, [])
            self.shop.lines.write(key, [])
            del self.shop.live[key]

    def _come_back(self, keys: list[int]) -> None:
        for key in keys:
            order, lines = self.shop.cancelled.pop(key)
            self._insert({**order, "o_comment": "taken again"}, lines)

    def _cancel_and_take_again(self, keys: list[int]) -> None:
        self._cancel(keys)
        self._come_back(keys)

    def _ship(self, keys: list[int]) -> None:
        """Open orders are fulfilled with their lines; others only change their priority."""
        for order, lines in self._orders(keys):
            order["o_orderpriority"] = self.rng.choice(PRIORITIES)
            if order["o_orderstatus"] != "F":
                order["o_orderstatus"] = "F"
                for line in lines:
                    if line["l_linestatus"] == "O":
                        line["l_linestatus"] = "F"
                        self.round.add("lineitem", "U", line)
            self._update(order, lines)

    def _change_lines(self, keys: list[int]) -> None:
        """Another quantity or discount; every second order learns its new total in the same round."""
        for place, (order, lines) in enumerate(self._orders(keys)):
            line = self.rng.choice(lines)
            unit_price = line["l_extendedprice"] / line["l_quantity"]
            line["l_quantity"] = Decimal(self.rng.randint(1, 50)).quantize(CENT)
            line["l_extendedprice"] = _cents(unit_price * line["l_quantity"])
            line["l_discount"] = Decimal(self.rng.randint(0, 10)) / 100
            self.round.add("lineitem", "U", line)
            if place % 2 == 0:
                self._update(order, lines)
            else:
                self.shop.lines.write(order["o_orderkey"], lines)

    def _drop_a_line(self, keys: list[int]) -> None:
        for order, lines in self._orders(keys):
            if len(lines) > 1:
                self._delete_line(lines.pop(self.rng.randrange(len(lines))))
                self._update(order, lines)

    def _take_goods_back(self, keys: list[int]) -> None:
        """Lines change, their order does not."""
        for order, lines in self._orders(keys):
            for line in lines:
                line["l_returnflag"] = "R"
                self.round.add("lineitem", "U", line)
            self.shop.lines.write(order["o_orderkey"], lines)

    def _move_to_another_day(self, keys: list[int]) -> None:
        """The order changes, its lines do not."""
        for order, lines in self._orders(keys):
            order["o_orderdate"] += timedelta(days=self.rng.randint(1, 60))
            self._update(order, lines)

    def _move_to_another_customer(self, keys: list[int]) -> None:
        customers = self.shop.customers.groups()
        for order, lines in self._orders(keys):
            order["o_custkey"] = self.rng.choice(customers)
            self._update(order, lines)

    # the other tables

    def _change_customers(self) -> None:
        keys = self.shop.customers.groups()
        for place, key in enumerate(self.rng.sample(keys, max(2, len(keys) // 200))):
            (customer,) = self.shop.customers.read([key])[key]
            customer["c_acctbal"] = _cents(Decimal(self.rng.randint(-99999, 999999)) / 100)
            if place % 2 == 0:
                customer["c_mktsegment"] = self.rng.choice(SEGMENTS)
            if place % 4 == 0:
                customer["c_nationkey"] = self.rng.randrange(25)
            self.round.add("customer", "U", customer)
            self.shop.customers.write(key, [customer])

    def _change_suppliers(self) -> None:
        keys = self.shop.suppliers.groups()
        for place, key in enumerate(self.rng.sample(keys, max(2, len(keys) // 50))):
            (supplier,) = self.shop.suppliers.read([key])[key]
            supplier["s_acctbal"] = _cents(Decimal(self.rng.randint(-99999, 999999)) / 100)
            if place % 2 == 0:
                supplier["s_nationkey"] = self.rng.randrange(25)
            self.round.add("supplier", "U", supplier)
            self.shop.suppliers.write(key, [supplier])

    def _change_parts(self) -> None:
        """New prices; what suppliers ask changes for some of the same parts and for others; offers end."""
        keys = self.rng.sample(self.shop.parts.groups(), max(4, len(self.shop.parts.groups()) // 100))
        half = len(keys) // 2
        for key, parts in self.shop.parts.read(keys[: half + half // 2]).items():
            part = parts[0]
            part["p_retailprice"] = _cents(part["p_retailprice"] * self.rng.randint(90, 115) / 100)
            self.round.add("part", "U", part)
            self.shop.parts.write(key, [part])
        for key, offers in self.shop.part_supplies.read(keys[half:]).items():
            if not offers:
                continue
            offer = self.rng.choice(offers)
            offer["ps_supplycost"] = _cents(offer["ps_supplycost"] * self.rng.randint(80, 125) / 100)
            offer["ps_availqty"] = self.rng.randint(0, 9999)
            self.round.add("partsupp", "U", offer)
            ended = offers.pop(self.rng.randrange(len(offers))) if self.rng.random() < 0.3 else None
            if ended is not None:
                ended_key = {name: ended[name] for name in ("ps_partkey", "ps_suppkey")}
                self.round.add("partsupp", "D", ended_key)
            self.shop.part_supplies.write(key, offers)

    # one order

    def _orders(self, keys: list[int]) -> Iterator[tuple[Row, list[Row]]]:
        orders, lines = self.shop.orders.read(keys), self.shop.lines.read(keys)
        for key in keys:
            yield orders[key][0], lines[key]

    def _insert(self, order: Row, lines: list[Row]) -> None:
        key = order["o_orderkey"]
        self.round.add("orders", "I", order)
        for line in lines:
            self.round.add("lineitem", "I", line)
        self.shop.orders.write(key, [order])
        self.shop.lines.write(key, lines)
        self.shop.live[key] = None

    def _update(self, order: Row, lines: list[Row]) -> None:
        order["o_totalprice"] = _total(lines)
        self.round.add("orders", "U", order)
        self.shop.orders.write(order["o_orderkey"], [order])
        self.shop.lines.write(order["o_orderkey"], lines)

    def _delete_line(self, line: Row) -> None:
        self.round.add("lineitem", "D", {name: line[name] for name in ("l_orderkey", "l_linenumber")})

    def _next_order_key(self) -> int:
        """TPC-H uses the first 8 of every 32 keys; its refresh functions, like we, the next 8."""
        made = self.shop.orders_made
        self.shop.orders_made += 1
        return made // 8 * 32 + 8 + made % 8


def _take(keys: Iterator[int], count: int) -> list[int]:
    return list(islice(keys, count))


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_UP)


def _total(lines: list[Row]) -> Decimal:
    amounts = (row["l_extendedprice"] * (1 - row["l_discount"]) * (1 + row["l_tax"]) for row in lines)
    return _cents(sum(amounts, Decimal(0)))
