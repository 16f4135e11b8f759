"""What the macro ``compact`` logs of a compaction."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jinja2
import pytest

MACRO = Path(__file__).parents[3] / "macros" / "operations" / "compact.sql"
MODEL = {"resource_type": "model", "name": "orders", "alias": "orders", "database": "lake", "schema": "shop"}


class Adapter:
    def __init__(self, rows: int | None) -> None:
        self.rows = rows

    def keyed_tables_of(self, relation: Any) -> list[Any]:
        return [relation]

    def compact_table(self, relation: Any, grace: Any) -> dict[str, Any]:
        counts = {"merged": 2, "merged_rows": self.rows, "trimmed": 1, "pending": 3}
        return {"table": "lake.shop.orders", "outcome": "compacted", **counts}


@pytest.mark.parametrize(("rows", "shown"), [(0, "0 rows; "), (5, "5 rows; "), (None, "")])
def test_a_number_of_rows_is_logged_unless_it_is_unknown(rows: int | None, shown: str) -> None:
    logged: list[str] = []
    environment = jinja2.Environment(extensions=["jinja2.ext.do"], undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        MACRO.read_text(encoding="utf-8"),
        globals={
            "adapter": Adapter(rows),
            "arctic__may_write": lambda: True,
            "api": SimpleNamespace(Relation=SimpleNamespace(create=SimpleNamespace)),
            "graph": {"nodes": {"model.shop.orders": MODEL}},
            "log": lambda text, info: logged.append(text),
        },
    )
    template.module.compact()  # type: ignore[attr-defined] # the macro of the file
    assert logged == [
        f"lake.shop.orders: compacted (2 commits merged, {shown}1 trimmed, 3 still in the change table)"
    ]
