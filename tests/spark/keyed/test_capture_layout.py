"""The files of a capture table: a model that reads one table of many skips most of a large capture."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow.parquet

from dbt_arctic.databases.change_log import LoggedChange
from dbt_arctic.keyed.names import Name
from dbt_arctic.sources.capture_table import COLUMNS, append_statement, as_rows, create_statement

TABLES, CHANGES = 20, 1_500


def test_a_table_of_a_large_capture_is_in_few_row_groups(shop: Any, schema: str) -> None:
    name = Name("lake", schema, "crm__capture")
    changes = [
        LoggedChange(
            9, place, f"{place:020}", f"public.t{place % TABLES:02}", "insert", 0, None, {"id": place}
        )
        for place in range(TABLES * CHANGES)
    ]
    session = shop.main
    session.query(create_statement(name, "crm.t"))
    session.connection.create_temp_view("captured", COLUMNS, as_rows(changes))
    plan = session.query("EXPLAIN SELECT * FROM captured")[0][0]
    assert "LocalTableScan" not in plan, "rows in the plan are evaluated and hashed while it is optimized"
    session.query(append_statement(name.sql, "captured", date(2026, 1, 1)))
    ((path,),) = session.query(f"SELECT file_path FROM {name.sql}.files")
    file = pyarrow.parquet.ParquetFile(path.removeprefix("file:"))
    column = file.schema_arrow.names.index("table_name")
    groups = [
        file.metadata.row_group(number).column(column).statistics for number in range(file.num_row_groups)
    ]
    assert len(groups) > 4
    for number in range(TABLES):
        table = f"public.t{number:02}"
        assert sum(one.min <= table <= one.max for one in groups) <= 2
    read = session.query(f"SELECT message FROM {name.sql} WHERE table_name = 'public.t07'")
    assert sorted(json.loads(one)["after"]["id"] for (one,) in read) == [*range(7, TABLES * CHANGES, TABLES)]
