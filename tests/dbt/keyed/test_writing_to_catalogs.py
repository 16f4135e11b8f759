"""A project that builds models in two catalogs.

Both have tables of the same schema and name with other rows. So a table that is read from, or written to, the
wrong catalog is noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import OtherCatalog
from dbt_arctic.keyed.table import side_root
from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.test_other_catalogs import use

Orders = dict[int, tuple[int, int]]
"""The customer and the amount of each order."""

KEYED = "materialized='incremental', unique_key='id', buckets=2"
AUTO = (
    "materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2, "
    "full_refresh_above=1.0"
)
MERGE = "materialized='incremental', incremental_strategy='merge', unique_key='id'"
APPEND = "materialized='incremental', incremental_strategy='append'"
THERE = "database='archive'"

MODELS = {
    # Of the same name as the one in the archive, with other rows.
    "ours": f"{{{{ config({KEYED}, alias='orders', delete_when='amount < 0') }}}} "
    "select id, customer, amount from {{ source('raw', 'raw_orders') }}",
    "orders": f"{{{{ config({KEYED}, {THERE}) }}}} "
    "select id, customer, amount * 10 as amount, _action from {{ incremental_pull(ref('ours')) }}",
    "back": f"{{{{ config({KEYED}) }}}} "
    "select id, customer, amount + 1 as amount, _action from {{ incremental_pull(ref('orders')) }}",
    "whole": f"{{{{ config(materialized='table', {THERE}) }}}} select * from {{{{ ref('orders') }}}}",
    "large": f"{{{{ config(materialized='view', {THERE}) }}}} "
    "select id from {{ ref('orders') }} where amount > 100",
    "merged": f"{{{{ config({MERGE}, {THERE}) }}}} select id, amount from {{{{ ref('ours') }}}}",
    "appended": f"{{{{ config({APPEND}, {THERE}) }}}} "
    "select number from {{ incremental_pull(source('raw', 'raw_events')) }}",
    "totals": f"{{{{ config({AUTO}, {THERE}) }}}} "
    "select o.customer, sum(o.amount) as theirs, max(cast(u.amount as double)) as ours "
    "from {{ ref('orders') }} as o join {{ ref('ours') }} as u on u.id = o.id "
    "group by o.customer having count(*) > 0",
    "elsewhere": f"{{{{ config({KEYED}, {THERE}, schema='more') }}}} select id from {{{{ ref('ours') }}}}",
}
SEED = {"name": "cities", "config": {"database": "archive"}}
SNAPSHOT = """
{% snapshot history %}
{{ config(database='archive', unique_key='id', strategy='check', check_cols=['amount']) }}
select id, amount from {{ ref('orders') }}
{% endsnapshot %}
"""


@dataclass
class Two:
    """The project, and a session that reads both catalogs."""

    shop: Shop
    folder: Path
    connection: SessionConnection

    @property
    def catalog(self) -> EmbeddedCatalog:
        return EmbeddedCatalog("archive", self.folder)

    def rows(self, name: str, columns: str = "*", schema: str = "") -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(f"SELECT {columns} FROM archive.{schema or self.shop.schema}.{name}")
        return sorted(cursor.fetchall(), key=repr)

    def names(self, schema: str = "") -> set[str]:
        return {entry.name for entry in self.catalog.list_names(schema or self.shop.schema)}


@pytest.fixture
def two(shop: Shop, tmp_path: Path) -> Iterator[Two]:
    folder = tmp_path / "archive"
    folder.mkdir()
    use(shop, catalogs={"archive": {"type": "sqlite", "warehouse": str(folder)}})
    settings = replace(shop.connection.settings, others=(OtherCatalog("archive", str(folder), {}),))
    connection = SessionEngine(settings).connect()
    yield Two(shop, folder, connection)
    connection.close()


def source(shop: Shop, orders: Orders) -> None:
    rows = " UNION ALL ".join(
        f"SELECT {id_} AS id, {customer} AS customer, {amount} AS amount"
        for id_, (customer, amount) in orders.items()
    )
    shop.source("raw_orders", rows)


def test_models_of_every_kind_are_built_in_the_catalog_that_they_name(two: Two) -> None:
    shop = two.shop
    for name, text in MODELS.items():
        shop.model(name, text)
    shop.file("snapshots/history.sql", SNAPSHOT)
    shop.file("seeds/cities.csv", "id,city\n1,Riga\n2,Oslo\n")
    shop.file("seeds/seeds.yml", yaml.safe_dump({"version": 2, "seeds": [SEED]}))
    shop.source("raw_events", "SELECT * FROM VALUES (1), (2) AS v(number)")
    first: Orders = {1: (1, 5), 2: (1, 20), 3: (2, 30)}
    last: Orders = {1: (1, 5), 2: (2, 25), 4: (1, 40)}
    source(shop, first)
    shop.dbt("build")
    require_rows(two, first, first, [1, 2])
    source(shop, {**last, 3: (0, -1)})
    shop.sql("INSERT INTO {s}.raw_events VALUES (3)")
    shop.dbt("build")
    require_rows(two, last, {**first, **last}, [1, 2, 3])
    assert shop.recorded["totals"]["strategy"] == "incremental"
    history = two.rows("history", "id, amount, dbt_valid_to IS NULL")
    assert history == [(1, 50, True), (2, 200, False), (2, 250, True), (3, 300, True), (4, 400, True)]

    own = {entry.name for entry in shop.catalog.list_names(shop.schema)}
    assert {side_root(name) or name for name in own} == {"orders", "back", "raw_orders", "raw_events"}
    assert "orders" in two.names()
    assert {side_root(name) or name for name in two.names()}.isdisjoint({"back", "raw_orders", "raw_events"})


def require_rows(two: Two, orders: Orders, ever: Orders, events: list[int]) -> None:
    """The oracle: each table has the rows that follow from the source.

    :param ever: with the deleted ones.
    """
    shop = two.shop
    ours = sorted((id_, *row) for id_, row in orders.items())
    theirs = [(id_, customer, amount * 10) for id_, customer, amount in ours]
    assert shop.rows("orders") == ours
    assert two.rows("orders") == theirs == two.rows("whole")
    assert shop.rows("back") == [(id_, customer, amount + 1) for id_, customer, amount in theirs]
    assert two.rows("large") == [(id_,) for id_, _, amount in theirs if amount > 100]
    assert two.rows("merged") == sorted((id_, amount) for id_, (_, amount) in ever.items())
    assert two.rows("appended") == [(number,) for number in events]
    assert two.rows("totals") == [
        (
            customer,
            sum(amount for _, of, amount in theirs if of == customer),
            float(max(amount for _, of, amount in ours if of == customer)),
        )
        for customer in sorted({of for _, of, _ in ours})
    ]
    assert two.rows("elsewhere", schema=f"{shop.schema}_more") == [(id_,) for id_ in sorted(ever)]
    assert two.rows("cities") == [(1, "Riga"), (2, "Oslo")]


def test_commands_know_the_tables_of_each_catalog(two: Two, capsys: pytest.CaptureFixture[str]) -> None:
    shop, schema = two.shop, two.shop.schema
    for name in ("ours", "orders", "back", "totals"):
        shop.model(name, MODELS[name])
    shop.file("macros/listed.sql", LISTED)
    project = yaml.safe_load((shop.folder / "dbt_project.yml").read_text())
    hook = "{{ compact_due(budget='1 hour') }}"
    shop.file("dbt_project.yml", yaml.safe_dump({**project, "on-run-end": hook}))
    source(shop, {1: (1, 5), 2: (1, 20), 3: (2, 30)})
    shop.dbt("run")
    source(shop, {1: (1, 6), 4: (2, 40)})
    shop.dbt("run")

    # dbt's listing and documentation.
    capsys.readouterr()
    shop.fail("run-operation", "listed")
    listed = capsys.readouterr().out
    assert set(re.findall(r"(lake|archive)`\.`\w+`\.`(\w+)` (\w+)", listed)) == {
        *(("lake", "orders", "True"), ("lake", "back", "True"), ("lake", "raw_orders", "False")),
        *(("archive", "orders", "True"), ("archive", "totals", "True")),
    }
    shop.dbt("docs", "generate")
    documented = json.loads((shop.folder / "target" / "catalog.json").read_text(encoding="utf-8"))["nodes"]
    places = {name: one["metadata"]["database"] for name, one in documented.items()}
    assert places == {
        **{f"model.shop.{name}": "lake" for name in ("ours", "back")},
        **{f"model.shop.{name}": "archive" for name in ("orders", "totals")},
    }
    assert set(documented["model.shop.totals"]["columns"]) == {"customer", "theirs", "ours"}

    # Reads.
    there = f"archive.{schema}.orders"
    status = {one["table"]: one for one in arctic(shop, "status", "--catalog", "archive")}
    assert set(status) == {there, f"archive.{schema}.totals"} | {name for name in status if "state" in name}
    assert [one["upstream"] for one in status[there]["behind"]] == [f"lake.{schema}.orders"]
    named = {one["table"] for one in arctic(shop, "status", there, "back")}
    assert named == {there, f"lake.{schema}.back"}
    own = run(shop, "status")
    assert "left out: archive; the project has tables in this catalog, too" in own.stderr
    assert {one["table"].split(".")[0] for one in json.loads(own.stdout)} == {"lake"}
    history = arctic(shop, "history", there)
    assert [one["kind"] for one in history][-1] != ""
    lag = {one["model"]: one for one in arctic(shop, "lag")}
    assert lag["back"]["upstreams"][0]["upstream"] == "orders"
    assert lag["orders"]["upstreams"][0]["upstream"] == "ours", "not of the table of this name in the lake"

    # Writes.
    arctic(shop, "compact", there, "--kind", "major", "--trim-grace", "0s")
    done = [one["table_name"] for one in arctic(shop, "history", "--compaction", there)]
    assert set(done) == {there}
    assert "arctic_operations" not in two.names()
    before = two.rows("orders")
    arctic(shop, "sql", f"DELETE FROM {there} WHERE id = 4")
    shop.dbt("run", "--select", "back", "totals")
    assert 4 not in [row[0] for row in shop.rows("back")]
    assert len(two.rows("orders")) == len(before) - 1
    arctic(shop, "rollback", there, history[0]["version"], "--yes")
    assert two.rows("orders") == before
    shop.dbt("run", "--full-refresh", "--select", "orders")
    assert arctic(shop, "restore", there, "--previous", "--yes")["generation"] == 1
    assert two.rows("orders") == before
    assert arctic(shop, "verify", "--catalog", "archive")["findings"] == []
    kept = arctic(
        shop, "clean", "--catalog", "archive", "--keep-previous", "0s", "--older-than", "0s", "--yes"
    )
    assert {one["target"].split(".")[0] for one in kept["removals"] + kept["kept"]} <= {"archive"}
    plans = {one["table"] for one in arctic(shop, "expire", "--catalog", "archive", "--dry-run")}
    assert there in plans
    assert not any(one.startswith("lake.") for one in plans)


LISTED = """
{% macro listed() %}
  {% set found = [] %}
  {% for database in ('lake', 'archive') %}
    {% for name in ('orders', 'back', 'totals', 'raw_orders') %}
      {% set one = adapter.get_relation(database, target.schema, name) %}
      {% if one is not none %}{% do found.append(one.render() ~ ' ' ~ one.is_keyed) %}{% endif %}
    {% endfor %}
  {% endfor %}
  {% do exceptions.raise_compiler_error(found | join(', ')) %}
{% endmacro %}
"""


def arctic(shop: Shop, *arguments: str) -> Any:
    """What a command of ``dbt-arctic`` prints as JSON."""
    return json.loads(run(shop, *arguments).stdout or "null")


def run(shop: Shop, *arguments: str) -> Result:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    done = CliRunner().invoke(main, [*arguments, "--json", *folders], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done
