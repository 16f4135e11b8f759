"""What happens to a statement on its way to the catalog, one place later each time; see ``troubled``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.extent import in_turn

ROWS = [{"id": number, "amount": number} for number in range(4)]
IN_TURN = ("run_twice", "delay", "lose_the_answer")
WAYS = in_turn(*IN_TURN)
MOST = 20


def amounts(orders: Any) -> dict[int, int]:
    found = orders.rows()
    made = {row["id"]: row["amount"] for row in found}
    assert len(found) == len(made), "a key twice"
    return made


class Attempt:
    """One operation, in trouble at one statement."""

    def __init__(self, shop: Any, cut_off: Any, way: str, at: int) -> None:
        self.session = shop.session()
        self._cut_off = cut_off
        getattr(self.session.statements, way)(at)

    def __call__(self, run: Callable[[Any], Any]) -> bool:
        try:
            run(self.session)
        except self._cut_off:
            return False
        return True

    def land(self) -> None:
        if self.session.statements.late:
            self.session.statements.land()
