"""What Spark lacks and a model may write: the same text reaches everything that runs the model's SQL."""

from __future__ import annotations

import yaml

from tests.dbt.keyed.conftest import Shop

FIRST = "qualify row_number() over (partition by g order by id) = 1 -- the first of its group"
PROPERTIES = {
    "models": [
        {
            "name": "firsts",
            "config": {"contract": {"enforced": True}},
            "columns": [
                {"name": name, "data_type": type_} for name, type_ in (("g", "string"), ("id", "int"))
            ],
        }
    ],
    "unit_tests": [
        {
            "name": "one_row_of_a_group",
            "model": "firsts",
            "given": [{"input": "ref('orders')", "rows": [{"id": 1, "g": "a"}, {"id": 2, "g": "a"}]}],
            "expect": {"rows": [{"id": 1, "g": "a"}]},
        }
    ],
}


def test_qualify_reaches_all_that_runs_a_models_sql(shop: Shop) -> None:
    shop.model(
        "orders",
        "{{ config(materialized='incremental', unique_key='id') }} select * from "
        "{{ source('raw', 'lines') }}{% if is_incremental() %} where id > 3{% endif %}",
    )
    shop.file(
        "models/sources.yml",
        yaml.safe_dump({"sources": [{"name": "raw", "schema": shop.schema, "tables": [{"name": "lines"}]}]}),
    )
    shop.file("models/properties.yml", yaml.safe_dump(PROPERTIES))
    asks = "sql_extensions=['qualify']"
    select = f"select id, g from {{{{ ref('orders') }}}} {FIRST}"
    automatic = (
        "materialized='incremental', incremental_strategy='auto', unique_key='g', auto='strict', "
        "on_schema_change='fail'"
    )
    shop.model("firsts", f"{{{{ config({automatic}) }}}}\n{select}\n")
    shop.model("firsts_table", f"{{{{ config(materialized='table', {asks}) }}}} {select}")
    shop.model("firsts_view", f"{{{{ config({asks}) }}}} {select}")
    shop.model("firsts_between", f"{{{{ config(materialized='ephemeral', {asks}) }}}} {select}")
    shop.model(
        "counted", "{{ config(materialized='table') }} select count(*) as n from {{ ref('firsts_between') }}"
    )
    shop.model("plain", select)
    shop.source("lines", "SELECT * FROM VALUES (1, 'a'), (2, 'a'), (3, 'b') AS t(id, g)")
    outcome = shop.try_dbt("build")
    told = {result.node.name: str(result.status) for result in outcome.result.results}
    assert {name for name, status in told.items() if status not in ("success", "pass")} == {"plain"}
    assert "PARSE_SYNTAX_ERROR" in shop.messages(outcome), "Spark has it refused where no one asks"
    names = ("firsts", "firsts_table", "firsts_view")
    assert all(shop.rows(name, "id, g") == [(1, "a"), (3, "b")] for name in names)
    assert shop.rows("counted") == [(2,)]

    (shown,) = shop.dbt("show", "--select", "firsts", "--limit", "5").results
    assert sorted(row["g"] for row in shown.agate_table.rows) == ["a", "b"]
    compiled = next(shop.folder.glob("target/compiled/**/firsts.sql")).read_text()
    assert "SELECT * EXCEPT (`_qualify`) FROM (\nselect id, g , (\nrow_number() over" in compiled
