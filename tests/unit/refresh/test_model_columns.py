"""A setting that names a column which the model does not return suggests the one that was meant."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ArcticError
from dbt_arctic.refresh.batch import model_columns
from dbt_arctic.refresh.config import parse_config

SCHEMA = [ColumnInfo("order_id", "bigint"), ColumnInfo("Changed_At", "timestamp")]


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ({"unique_key": "order_id", "sequence_by": "changedat"}, "did you mean Changed_At?"),
        ({"unique_key": "ordr_id"}, "did you mean order_id?"),
        ({"unique_key": "order_id", "sequence_by": "x"}, "select the column under that name"),
        ({"unique_key": ["order_id", "line"]}, "select the key columns under these names"),
    ],
)
def test_the_column_that_was_meant_is_suggested(config: dict[str, object], fix: str) -> None:
    parsed = parse_config("orders", {"materialized": "incremental", **config})
    with pytest.raises(ArcticError) as caught:
        model_columns(parsed, SCHEMA)
    assert str(caught.value.fix).startswith(fix)
