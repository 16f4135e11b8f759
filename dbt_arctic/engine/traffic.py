"""The bytes that the scans of statements read and their writes added.

Iceberg reports them to Spark, without a job.

Spark's own counters miss what Iceberg's Parquet reader reads. The bytes read are the sizes of the files that
remain after pruning, including columns and row groups that the scan skips. Cached tables and shuffles are not
counted.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from dbt_arctic.engine.api import Traffic

_READ = ("TotalDataFileSize", "TotalDeleteFileSize")
_WRITTEN = ("AddedFileSizeInBytes",)
_SEPARATOR = "\x01"


def traffic_of(store: Any, jobs: Set[int]) -> Traffic:
    """The sums over the SQL executions that ran some jobs.

    :param store: Spark's ``SQLAppStatusStore`` (a py4j object), which has received all of their events.
    """
    read = written = 0
    if jobs:
        counted: set[int] = set()
        # The newest executions are last, and the jobs of an execution come after those of earlier statements.
        for place in range(store.executionsCount() - 1, -1, -1):
            # Spark removes old executions meanwhile, and each of the others has a lower place then.
            found = store.executionsList(place, 1)
            if found.isEmpty():
                continue
            execution = found.head()
            if execution.executionId() in counted:
                continue
            counted.add(execution.executionId())
            own = {int(job) for job in execution.jobs().keySet().mkString(",").split(",") if job}
            if own and max(own) < min(jobs):
                break
            if own & jobs:
                sizes = _sizes(store, execution)
                read += sum(sizes.get(name, 0) for name in _READ)
                written += sum(sizes.get(name, 0) for name in _WRITTEN)
    return Traffic(read, written, len(jobs))


def _sizes(store: Any, execution: Any) -> dict[str, int]:
    """Iceberg's metrics of an execution in bytes, by the last part of their class."""
    wanted = {}
    for metric in execution.metrics().mkString(_SEPARATOR).split(_SEPARATOR):
        # SQLPlanMetric(total data file size (bytes),34,v2Custom_org.apache...TotalDataFileSize)
        if "v2Custom_org.apache.iceberg" in metric:
            _, accumulator, kind = metric.rstrip(")").rsplit(",", 2)
            wanted[accumulator] = kind.rsplit(".", 1)[-1]
    found: dict[str, int] = {}
    for entry in store.executionMetrics(execution.executionId()).mkString(_SEPARATOR).split(_SEPARATOR):
        accumulator, _, value = entry.partition(" -> ")
        name = wanted.get(accumulator)
        if name in (*_READ, *_WRITTEN) and value.isdigit():
            found[name] = found.get(name, 0) + int(value)
    return found
