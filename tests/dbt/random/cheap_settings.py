"""What makes the runs of most cases cheap: settings of Spark, and no unused artifacts.

One of ``USUAL`` cases runs as it does for users: with generated code, adaptive execution, several
partitions and all artifacts. All cases use partial parsing, which also saves time here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from dbt_arctic.auto import few_rows

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


@contextmanager
def whatever_the_size(seed: int) -> Iterator[None]:
    """Within it, automatic models over few rows are refreshed incrementally, unless it is as for users."""
    limit = few_rows.MAX_EXTRA_SECONDS if is_usual(seed) else math.inf
    with mock.patch.object(few_rows, "MAX_EXTRA_SECONDS", limit):
        yield


def flags(is_retried: bool) -> list[str]:
    """Flags of a dbt run.

    :param is_retried: whether ``dbt retry`` follows, which reads ``run_results.json``.
    """
    return [] if is_retried else ["--no-write-json"]
