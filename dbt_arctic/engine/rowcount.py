"""Determines the number of rows of a write from the metrics of the executed plan, without a job or another
read.

| statement | number |
|---|---|
| INSERT, INSERT OVERWRITE, CTAS | rows written |
| MERGE | rows inserted, updated and deleted; copied rows are not counted |
| DELETE | rows deleted |
| UPDATE with merge-on-read | rows updated |
| UPDATE with copy-on-write | -1: Iceberg does not distinguish copied and updated rows |
| anything else | -1 |

CTAS and a DELETE of whole files have no metrics. Their number is in the summary of the snapshot that the
table object of the executed plan refers to.
"""

from __future__ import annotations

from typing import Any

UNKNOWN = -1


def known_rows(rowcount: int) -> int | None:
    """The number of rows of a cursor's ``rowcount``; ``None`` if it is unknown.

    >>> known_rows(3), known_rows(UNKNOWN)
    (3, None)
    """
    return None if rowcount < 0 else rowcount


_MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_APPENDING = {"AppendDataExec", "OverwriteByExpressionExec", "OverwritePartitionsDynamicExec"}
_CREATING = {
    "AtomicCreateTableAsSelectExec",
    "AtomicReplaceTableAsSelectExec",
    "CreateTableAsSelectExec",
    "ReplaceTableAsSelectExec",
}


def written_rows(plan: Any, verb: str) -> int:
    """The number of rows of an executed command.

    :param plan: the physical plan of the command (a py4j object).
    :param verb: the first keyword of the statement, in capitals.
    """
    name = _class_name(plan)
    if name in _APPENDING:
        return _metrics(plan).get("addedRecords", UNKNOWN)
    if name in _CREATING:
        return _created_rows(plan)
    if name == "DeleteFromTableExec":
        return _summary_number(_snapshot(plan.table()), "deleted-records")
    if name not in ("WriteDeltaExec", "ReplaceDataExec"):
        return UNKNOWN
    merged = _merged_rows(plan)
    if merged is not None:
        return merged
    metrics = _metrics(plan)
    if not metrics:
        return UNKNOWN
    added = metrics.get("addedRecords", 0)
    if name == "WriteDeltaExec":
        return added or metrics.get("addedPositionalDeletes", 0) - metrics.get("removedPositionalDeletes", 0)
    return metrics.get("removedRecords", 0) - added if verb == "DELETE" else UNKNOWN


def _merged_rows(plan: Any) -> int | None:
    """The numbers of the operator of a MERGE, wherever adaptive execution has moved it."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = _class_name(node)
        if name == "MergeRowsExec":
            metrics = _metrics(node)
            return sum(metrics.get(key, 0) for key in _MERGED)
        if name == "AdaptiveSparkPlanExec":
            waiting.append(node.executedPlan())
        elif name.endswith("QueryStageExec"):
            waiting.append(node.plan())
        else:
            children = node.children().iterator()
            while children.hasNext():
                waiting.append(children.next())
    return None


def _created_rows(plan: Any) -> int:
    return _summary_number(_snapshot(plan.catalog().loadTable(plan.ident())), "added-records")


def _snapshot(spark_table: Any) -> Any:
    if _class_name(spark_table) != "SparkTable":
        return None
    branch = spark_table.branch()
    table = spark_table.table()
    return table.currentSnapshot() if branch is None else table.snapshot(branch)


def _summary_number(snapshot: Any, key: str) -> int:
    if snapshot is None:
        return 0
    return int(snapshot.summary().getOrDefault(key, "0"))


def _metrics(node: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    pairs = node.metrics().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        found[pair._1()] = pair._2().value()
    return found


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
