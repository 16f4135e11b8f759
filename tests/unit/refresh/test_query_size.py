"""The size of a result, from plans that Spark 4.1.4 printed."""

from __future__ import annotations

import pytest

from dbt_arctic.refresh.query_size import bytes_of_plan

JOIN = """\
== Optimized Logical Plan ==
Project [id#42L, status#52 AS s2#36], Statistics(sizeInBytes=1734.9 TiB)
+- Join Inner, (id#42L = id#50L), Statistics(sizeInBytes=1.52E+27 B)
   :- Union false, false, Statistics(sizeInBytes=69.4 MiB)
   :  :- Join LeftAnti, (id#57L = id#64L), Statistics(sizeInBytes=68.7 MiB, rowCount=1.00E+6)
   :  :  :- RelationV2[id#57L] lake.bench.a__base_1, Statistics(sizeInBytes=64.0 MiB, rowCount=1.00E+6)
   :  :  +- Project [id#64L], Statistics(sizeInBytes=121.6 KiB)
   :  :     +- RelationV2[id#64L, _action#71] lake.bench.a__change_1, Statistics(sizeInBytes=1.0 MiB)
   :  +- LocalRelation <empty>, [id#74L], Statistics(sizeInBytes=1.0 B, rowCount=0)
   +- RelationV2[id#84L, status#86] lake.bench.b__base_1, Statistics(sizeInBytes=26.0 MiB, rowCount=1.00E+6)

== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=false
+- LocalTableScan Statistics(sizeInBytes=9.0 GiB)
"""
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("nodes", "size"),
    [
        (["Range (0, 10, step=1), Statistics(sizeInBytes=80.0 B, rowCount=10)"], 80),
        (
            [
                "GlobalLimit 10, Statistics(sizeInBytes=160.0 B, rowCount=10)",
                "+- Range (0, 1000), Statistics(sizeInBytes=7.8 KiB)",
            ],
            160,
        ),
        (["Relation [a#1] JDBCRelation(t), Statistics(sizeInBytes=8.0 EiB)"], 8 * 1024**6),
        (["Relation [a#1] of an unknown kind"], None),
        ([], None),
    ],
)
def test_the_size_is_that_of_the_result_as_spark_estimates_it(nodes: list[str], size: float | None) -> None:
    plan = "\n".join(["== Optimized Logical Plan ==", *nodes, "", "== Physical Plan =="])
    assert bytes_of_plan(plan) == size


def test_a_join_is_as_large_as_what_it_reads() -> None:
    assert bytes_of_plan(JOIN) == (64 + 1 + 26) * MIB + 1
