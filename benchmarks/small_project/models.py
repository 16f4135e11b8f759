"""The 24 models, and how each product builds them.

A model is one SELECT, in which braces enclose what it reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["staging", "rows", "sums", "view", "table"]


@dataclass(frozen=True)
class Model:
    """One model of the project.

    :param key: the columns that identify a row.
    :param reads: the relations in its SQL, which names them in braces. ``raw.`` precedes a source.
    :param newest: SQL of the time at which a row was changed last, for a watermark.
    """

    name: str
    kind: Kind
    key: tuple[str, ...]
    sql: str
    newest: str = ""


def _staging(name: str, columns: str) -> Model:
    return Model(f"stg_{name}", "staging", ("id",), f"SELECT id, {columns}, updated_at FROM {{raw.{name}}}")


MODELS = (
    _staging("customers", "name, region"),
    _staging("products", "title, category, price"),
    _staging("orders", "customer_id, status, ordered_on"),
    _staging("lines", "order_id, product_id, quantity, amount"),
    _staging("events", "customer_id, kind, happened_on"),
    Model(
        "orders_with_customers",
        "rows",
        ("id",),
        "SELECT o.id, o.customer_id, c.region, o.status, o.ordered_on,\n"
        "  GREATEST(o.updated_at, c.updated_at) AS updated_at\n"
        "FROM {stg_orders} AS o INNER JOIN {stg_customers} AS c ON o.customer_id = c.id",
        "updated_at",
    ),
    Model(
        "lines_with_products",
        "rows",
        ("id",),
        "SELECT l.id, l.order_id, p.category, l.quantity, l.amount, l.quantity * p.price AS list_price,\n"
        "  GREATEST(l.updated_at, p.updated_at) AS updated_at\n"
        "FROM {stg_lines} AS l INNER JOIN {stg_products} AS p ON l.product_id = p.id",
        "updated_at",
    ),
    Model(
        "paid_orders",
        "rows",
        ("id",),
        "SELECT id, customer_id, status = 'paid' AS is_paid, ordered_on, updated_at FROM {stg_orders}",
        "updated_at",
    ),
    Model(
        "clicks",
        "rows",
        ("id",),
        "SELECT id, customer_id, UPPER(kind) AS kind, happened_on, updated_at FROM {stg_events}",
        "updated_at",
    ),
    Model(
        "order_amounts",
        "sums",
        ("order_id",),
        "SELECT order_id, COUNT(*) AS line_count, SUM(amount) AS amount FROM {stg_lines} GROUP BY order_id",
    ),
    Model(
        "orders_by_customer",
        "sums",
        ("customer_id",),
        "SELECT customer_id, COUNT(*) AS order_count FROM {stg_orders} GROUP BY customer_id",
    ),
    Model(
        "events_by_customer",
        "sums",
        ("customer_id",),
        "SELECT customer_id, COUNT(*) AS event_count FROM {stg_events} GROUP BY customer_id",
    ),
    Model(
        "sales_by_product",
        "sums",
        ("product_id",),
        "SELECT product_id, SUM(quantity) AS quantity, SUM(amount) AS amount\n"
        "FROM {stg_lines} GROUP BY product_id",
    ),
    Model(
        "sales_by_category",
        "sums",
        ("category",),
        "SELECT category, COUNT(*) AS line_count, SUM(amount) AS amount\n"
        "FROM {lines_with_products} GROUP BY category",
    ),
    Model(
        "orders_by_region",
        "sums",
        ("region",),
        "SELECT region, COUNT(*) AS order_count FROM {orders_with_customers} GROUP BY region",
    ),
    Model(
        "orders_by_day",
        "sums",
        ("ordered_on",),
        "SELECT ordered_on, COUNT(*) AS order_count FROM {stg_orders} GROUP BY ordered_on",
    ),
    Model(
        "orders_by_status",
        "sums",
        ("status",),
        "SELECT status, COUNT(*) AS order_count FROM {stg_orders} GROUP BY status",
    ),
    Model(
        "clicks_by_day",
        "sums",
        ("happened_on", "kind"),
        "SELECT happened_on, kind, COUNT(*) AS click_count FROM {clicks} GROUP BY happened_on, kind",
    ),
    Model(
        "customer_sales",
        "sums",
        ("customer_id",),
        "SELECT o.customer_id, SUM(a.amount) AS amount, SUM(a.line_count) AS line_count\n"
        "FROM {order_amounts} AS a INNER JOIN {stg_orders} AS o ON a.order_id = o.id GROUP BY o.customer_id",
    ),
    Model(
        "customers_with_events",
        "rows",
        ("id",),
        "SELECT c.id, c.name, c.region, e.event_count\n"
        "FROM {stg_customers} AS c INNER JOIN {events_by_customer} AS e ON c.id = e.customer_id",
    ),
    Model("open_orders", "view", ("id",), "SELECT * FROM {stg_orders} WHERE status = 'open'"),
    Model("cheap_products", "view", ("id",), "SELECT * FROM {stg_products} WHERE price < 20"),
    Model(
        "best_customers",
        "table",
        ("customer_id",),
        "SELECT customer_id, amount FROM {customer_sales} ORDER BY amount DESC, customer_id LIMIT 100",
    ),
    Model(
        "regions",
        "table",
        ("region",),
        "SELECT region, COUNT(*) AS customer_count FROM {stg_customers} GROUP BY region",
    ),
)

Peer = Literal["arctic", "table", "merge"]
PEERS: tuple[Peer, ...] = ("arctic", "table", "merge")
ABOUT = {
    "arctic": "dbt-arctic: staging pulls changes, the others are automatic models",
    "table": "dbt-spark: every table is `materialized='table'`",
    "merge": "dbt-spark: rows by `merge` and a watermark, sums by `materialized='table'`",
}


def text_of(model: Model, peer: Peer) -> str:
    """The file of a model."""
    config, watermark = _config(model, peer)
    pulls = peer == "arctic" and model.kind == "staging"
    sql = model.sql
    for read in [one.name for one in MODELS]:
        sql = sql.replace(f"{{{read}}}", f"{{{{ ref('{read}') }}}}")
    before, raw, after = sql.partition("{raw.")
    if raw:
        name, _, after = after.partition("}")
        source = f"source('raw', '{name}')"
        sql = (
            before
            + ("{{ " + (f"incremental_pull({source}, unique_key='id')" if pulls else source) + " }}")
            + after
        )
    if watermark:
        newest = "(SELECT MAX(updated_at) FROM {{ this }})"
        sql = (
            f"SELECT * FROM (\n{sql}\n)\n{{% if is_incremental() %}}WHERE updated_at > {newest}{{% endif %}}"
        )
    return f"{{{{ config({config}) }}}}\n{sql}\n"


def _config(model: Model, peer: Peer) -> tuple[str, bool]:
    """The config of a model, and whether its SQL has a watermark."""
    key = str(list(model.key))
    iceberg = "" if peer == "arctic" else ", file_format='iceberg'"
    if model.kind == "view":
        return "materialized='view'", False
    if model.kind == "table" or peer == "table":
        return f"materialized='table'{iceberg}", False
    if peer == "arctic":
        strategy = "" if model.kind == "staging" else ", incremental_strategy='auto'"
        return f"materialized='incremental', unique_key={key}{strategy}", False
    if model.kind == "staging" or model.newest:
        settings = f"materialized='incremental', incremental_strategy='merge', unique_key={key}"
        return f"{settings}{iceberg}", True
    return f"materialized='table'{iceberg}", False
