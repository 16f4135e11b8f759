"""Determines the number of rows of a write from the metrics of the executed plan.

Needs no job and no other read.

| statement | number |
|---|---|
| INSERT, INSERT OVERWRITE, CTAS | rows written |
| MERGE | rows inserted, updated and deleted; copied rows are not counted |
| DELETE | rows deleted |
| UPDATE with merge-on-read | rows updated |
| UPDATE with copy-on-write | unknown: Iceberg does not distinguish copied and updated rows |
| anything else | unknown |

CTAS and a DELETE of whole files have no metrics. Their number is in the summary of the snapshot that the
table object of the executed plan refers to.
"""

from __future__ import annotations

from typing import Any

_MERGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
_APPENDING = {"AppendDataExec", "OverwriteByExpressionExec", "OverwritePartitionsDynamicExec"}
_CREATING = {
    "AtomicCreateTableAsSelectExec",
    "AtomicReplaceTableAsSelectExec",
    "CreateTableAsSelectExec",
    "ReplaceTableAsSelectExec",
}


def written_rows(plan: Any, verb: str) -> int | None:
    """The number of rows of an executed command; ``None`` if it is unknown.

    :param plan: the physical plan of the command (a py4j object).
    :param verb: the first keyword of the statement, in capitals.
    """
    name = _class_name(plan)
    if name in _APPENDING:
        return _metric(plan, "addedRecords")
    if name in _CREATING:
        return _created_rows(plan)
    if name == "DeleteFromTableExec":
        return _summary_number(_snapshot(plan.table()), "deleted-records")
    if name not in ("WriteDeltaExec", "ReplaceDataExec"):
        return None
    merged = _merged_rows(plan)
    if merged is not None:
        return merged
    if plan.metrics().isEmpty():
        return None
    added = _metric(plan, "addedRecords") or 0
    if name == "WriteDeltaExec":
        deleted, restored = (_metric(plan, f"{one}PositionalDeletes") or 0 for one in ("added", "removed"))
        return added or deleted - restored
    return (_metric(plan, "removedRecords") or 0) - added if verb == "DELETE" else None


def _merged_rows(plan: Any) -> int | None:
    """The numbers of the operator of a MERGE, wherever adaptive execution has moved it."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        name = _class_name(node)
        if name == "MergeRowsExec":
            return sum(_metric(node, key) or 0 for key in _MERGED)
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


def _metric(node: Any, name: str) -> int | None:
    """The value of one metric. A write has twenty, and each access is a request to the JVM."""
    found = node.metrics().get(name)
    return int(found.get().value()) if found.isDefined() else None


def _class_name(node: Any) -> str:
    return str(node.getClass().getSimpleName())
