"""What makes the runs of most cases cheap: settings of Spark, and no unused artifacts.

One of ``USUAL`` cases runs as it does for users: with generated code, adaptive execution, several
partitions and all artifacts. All cases use partial parsing, which also saves time here.
"""

from __future__ import annotations

USUAL = 8

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
"""A task costs more than the handful of rows in it."""

AS_FOR_USERS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.leafNodeDefaultParallelism": "2",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


def is_usual(seed: int) -> bool:
    """Whether the case of a seed runs as it does for users."""
    return seed % USUAL == 0


def flags(is_retried: bool) -> list[str]:
    """Flags of a dbt run.

    :param is_retried: whether ``dbt retry`` follows, which reads ``run_results.json``.
    """
    return [] if is_retried else ["--no-write-json"]
