"""The settings ``target_lag`` and ``schedule`` in a project, for ``dbt`` and for ``dbt-arctic keep``."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from dbt_arctic.cli.main import main

from .conftest import Shop


def keep(shop: Shop, *arguments: str) -> Any:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    return CliRunner().invoke(main, ["keep", *arguments, *folders])


def test_settings_are_checked_when_dbt_parses_and_ignored_when_it_runs(shop: Shop) -> None:
    shop.model("late", "{{ config(materialized='incremental', target_lag='5 minuts') }} select 1 as id")
    assert "target_lag is '5 minuts'" in shop.fail("parse")
    shop.model("late", "{{ config(materialized='incremental', target_lag='5 minutes') }} select 1 as id")
    nothing = keep(shop, "--for", "1s")
    assert nothing.exit_code == 2
    assert "AR-301 target_lag has no effect on this model" in nothing.output
    shop.dbt("run")
    assert shop.rows("late") == [(1,)]
    shop.model("late", "{{ config(materialized='table', schedule={'every': '1 hour'}) }} select 2 as id")
    shop.dbt("run")
    assert shop.rows("late") == [(2,)]
    shop.model("late", "{{ config(materialized='table') }} select 2 as id")
    assert "AR-301 no model has target_lag or schedule" in keep(shop).output
