"""A warning names automatic models that can never, or not always, be refreshed incrementally."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from tests.dbt.keyed.conftest import Shop

CONFIG = """{{ config(
    materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=2
) }}
"""
NEVER = "\n" + CONFIG + "select id,\n  rand() as dice\nfrom {{ source('raw', 'raw_orders') }}"
AT_TIMES = CONFIG + (
    "select o.id,\n  o.amount - (\n  select max(amount) / 2\n"
    "  from {{ source('raw', 'raw_orders') }}) as above\n"
    "from {{ source('raw', 'raw_orders') }} as o"
)
DICES = (
    "{{ config(materialized='view') }}\nselect id,\n  rand() as dice\nfrom {{ source('raw', 'raw_orders') }}"
)
SHOWN = CONFIG + "select id,\n\n\n  dice\nfrom {{ ref('dices') }}"
FINE = CONFIG + (
    "select id from {{ source('raw', 'raw_orders') }} "
    "where amount > (select max(amount) / 2 from {{ source('raw', 'raw_orders') }})"
)

MODELS = {"diced": NEVER, "large": AT_TIMES, "dices": DICES, "shown": SHOWN, "fine": FINE}

NEVER_TOLD = (
    "diced can never be refreshed incrementally: rand() gives another value in each run "
    "(random, line 6 of models/diced.sql). To avoid this: compute it outside the model."
)
AT_TIMES_TOLD = (
    "large is sometimes refreshed in full: all rows depend on the value of an uncorrelated subquery over "
    "raw_orders: where that changes, everything is computed (guard, line 6 of models/large.sql)."
)
SHOWN_TOLD = (
    "shown can never be refreshed incrementally: rand() gives another value in each run "
    "(random, line 2 of the view lake.{schema}.dices, which models/shown.sql reads)."
)


@pytest.mark.usefixtures("dbt_log")
def test_what_stands_in_the_way_is_told_at_compile_by_the_plan_and_at_a_build(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1L AS id, 10L AS amount UNION ALL SELECT 2L, 20L")
    for name, text in MODELS.items():
        shop.model(name, text)
    log = shop.folder / "logs" / "dbt.log"
    log.parent.mkdir(exist_ok=True)
    shop.dbt("run", "--select", "dices")
    for command in ("compile", "run"):
        log.write_text("")
        shop.dbt(command)
        text = log.read_text()
        assert text.count(NEVER_TOLD) == 1
        assert text.count(AT_TIMES_TOLD) == 1
        assert text.count(SHOWN_TOLD.format(schema=shop.schema)) == 1
        assert "fine can" not in text
        assert "fine is" not in text
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    told = {
        entry["model"]: entry
        for entry in json.loads(CliRunner().invoke(main, ["plan", "--json", *folders]).output)
    }
    advice = {
        name: [(one["always"], one["reason"], one["line"], one["view"]) for one in told[name]["advice"]]
        for name in told
    }
    assert advice == {
        "diced": [(True, "random", 6, None)],
        "large": [(False, "guard", 6, None)],
        "shown": [(True, "random", 2, f"lake.{shop.schema}.dices")],
        "fine": [],
    }
    said = CliRunner().invoke(main, ["plan", "shown", *folders], terminal_width=200).output
    assert f"(random, line 2 of the view lake.{shop.schema}.dices)" in " ".join(said.split())
    (one,) = json.loads(CliRunner().invoke(main, ["plan", "diced", "--json", *folders]).output)
    assert one["model"] == "diced"
    said = CliRunner().invoke(main, ["plan", "diced", *folders], terminal_width=200).output
    assert (
        "never incremental: rand() gives another value in each run (random, line 6 of models/diced.sql)"
        in " ".join(said.split())
    )
    missed = CliRunner().invoke(main, ["plan", "dicde", *folders])
    assert missed.exit_code != 0
    assert "dicde selects no model of the project" in " ".join(missed.output.split())
