"""The messages of the benchmark: about 200 bytes of JSON each, with the key of an order."""

from __future__ import annotations

import random
from typing import Any

from pyspark.sql import SparkSession

PARTITIONS = 4
COLUMNS = {
    "order_id": "bigint",
    "customer_id": "bigint",
    "status": "string",
    "amount": "decimal(12,2)",
    "city": "string",
    "changed_at": "timestamp",
    "note": "string",
}
"""The columns of the value of a message, with their types in Spark's SQL."""

_STATUS = "element_at(array('new', 'paid', 'packed', 'sent', 'returned'), 1 + CAST(id % 5 AS INT))"


def produce(
    session: SparkSession, servers: str, topic: str, count: int, orders: int, round_number: int
) -> None:
    """Write messages to a topic: those of random orders, at the next offsets.

    :param orders: how many orders there are.
    """
    rows = session.range(0, count, 1, 4).selectExpr(
        f"CAST(pmod(xxhash64(id, {round_number}), {orders}) AS BIGINT) AS order_id",
        "pmod(id * 7919, 99991) AS customer_id",
        f"{_STATUS} AS status",
        f"CAST((id % 100000) / 100.0 + {round_number} AS DECIMAL(12,2)) AS amount",
        "concat('city ', id % 1000) AS city",
        f"timestampadd(SECOND, id % 86400, TIMESTAMP '2026-01-01 00:00:00') + INTERVAL {round_number} DAYS "
        "AS changed_at",
        "repeat('n', 40) AS note",
    )
    rows.selectExpr(
        "CAST(CAST(order_id AS STRING) AS BINARY) AS key",
        f"CAST(to_json(struct({', '.join(COLUMNS)})) AS BINARY) AS value",
    ).write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()


def message(chance: random.Random, orders: int) -> dict[str, Any]:
    """A message's value, for a producer in Python."""
    return {
        "order_id": chance.randrange(orders),
        "customer_id": chance.randrange(99991),
        "status": chance.choice(("new", "paid", "packed", "sent", "returned")),
        "amount": chance.randrange(100_000) / 100,
        "city": f"city {chance.randrange(1000)}",
        "changed_at": f"2026-01-{chance.randrange(1, 29):02}T00:00:00Z",
        "note": "n" * 40,
    }


def summary_sql(relation: str) -> str:
    """SQL of one row that is the same for the same orders."""
    return (
        "SELECT count(*), sum(order_id), CAST(sum(amount) AS STRING), "
        "sum(crc32(concat(order_id, status, city))), "
        f"CAST(max(changed_at) AS STRING) FROM {relation}"
    )


def latest_sql(topic_view: str) -> str:
    """SQL of the newest message of each order.

    :param topic_view: a relation with the columns of Spark's reader of Kafka.
    """
    kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return (
        f"SELECT message.* FROM (SELECT max_by(from_json(CAST(value AS STRING), '{kinds}'), offset) "
        f"AS message FROM {topic_view} GROUP BY key)"
    )


def expected(session: SparkSession, servers: str, topic: str) -> list[str]:
    """The summary of the newest message of each order, as Spark reads the whole topic."""
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", servers)
    reader.option("subscribe", topic).load().createOrReplaceTempView("whole_topic")
    return summary(session, f"({latest_sql('whole_topic')})")


def summary(session: SparkSession, relation: str) -> list[str]:
    """One row that is the same for the same orders."""
    return [str(value) for value in session.sql(summary_sql(relation)).collect()[0]]


def require_equal(name: str, found: list[str], wanted: list[str]) -> None:
    """Compare two summaries.

    :raises RuntimeError: they differ.
    """
    if found != wanted:
        raise RuntimeError(f"{name} has {found}, and the topic {wanted}")
