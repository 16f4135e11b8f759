"""Which names of a statement are relations that it reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from dbt_arctic.keyed.names import Name
from dbt_arctic.store.relation_reads import with_reads

ORDERS = Name("lake", "a", "orders")
N = ORDERS.sql
TPCH = sorted((Path(__file__).parents[2] / "planner" / "tpch").glob("*.sql"))


def replaced(sql: str) -> str:
    return with_reads(sql, {ORDERS: "(rows)"}.get)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM {N}",
        f"SELECT * FROM {N} AS o WHERE o.id = 1",
        f"SELECT '😀', `FROM` FROM\n  {N} o, `lake`.`a`.`plain`, {N} AS p",
        f"SELECT * FROM (SELECT id FROM {N} UNION ALL SELECT id FROM x) AS u LEFT JOIN {N} USING (id)",
        f"SELECT * FROM x JOIN {N} AS o ON x.id = o.id AND coalesce(o.a, 1) = 2, {N} AS p",
        f"SELECT * FROM ({N} AS o JOIN ({N} AS p CROSS JOIN x) ON o.id = p.id)",
        f"WITH a AS (SELECT 1), b AS (SELECT * FROM {N}) SELECT * FROM b",
        f"MERGE INTO t USING {N} AS s ON s.id = t.id WHEN MATCHED THEN DELETE",
        f"DELETE FROM x WHERE id IN (SELECT id FROM {N})",
        f"UPDATE x SET a = (SELECT max(a) FROM {N}) WHERE b",
        f"INSERT INTO x SELECT extract(YEAR FROM d) FROM {N}",
        f"SELECT * FROM x -- FROM\n, {N} -- the end",
        f"SELECT * FROM /* from */ {N} /* {ORDERS} */",
        f"FROM {N} SELECT id",
        f"SELECT * FROM {N} version",
        f"SELECT * FROM {N} AS `o``s` JOIN `lake`.`b`.`orders` AS p",
        f"SELECT (SELECT count(*) FROM {N}) AS n FROM x GROUP BY a, b",
    ],
)
def test_a_relation_that_is_read_gets_its_text(sql: str) -> None:
    assert replaced(sql) == sql.replace(N, "(rows)")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 'FROM {N}', \"JOIN {N}\", r'\\', 'it\\'s FROM {N}' FROM x",
        f"SELECT 1 -- FROM {N}\n FROM x /* /* JOIN {N} */ JOIN {N} */",
        f"SELECT `FROM {N.replace('`', '``')}` FROM x",
        f"SELECT {N}, a, {N} FROM x WHERE b IN (1, {N}) GROUP BY a, {N} ORDER BY a, {N}",
        f"SELECT extract(YEAR FROM {N}), trim(BOTH FROM {N}), a IS DISTINCT FROM {N} FROM x",
        f"SELECT struct({N}, {N}), (a, {N}) FROM x",
        f"SELECT * FROM {N} VERSION AS OF 3 AS o JOIN {N} FOR TIMESTAMP AS OF '2024-01-01' AS p",
        f"SELECT * FROM {N}.snapshots, {N}.`files`",
        "SELECT * FROM `lake`.`a`, `lake`.`a`.orders, `lake`.`a`.`orders_2`, `Lake`.`a`.`orders`",
        f"DELETE FROM {N} WHERE id = 1",
        f"UPDATE {N} SET a = 1, b = {N}",
        f"INSERT INTO {N} VALUES (1, 2)",
        f"MERGE INTO {N} AS t USING x ON t.id = x.id WHEN MATCHED THEN UPDATE SET a = 1, b = {N}",
        f"DROP TABLE {N}",
    ],
)
def test_any_other_text_stays(sql: str) -> None:
    assert replaced(sql) == sql


@pytest.mark.parametrize("path", TPCH, ids=lambda path: path.stem)
def test_the_relations_are_those_that_a_parser_finds(path: Path) -> None:
    tree = parse_one(path.read_text(encoding="utf-8"), dialect="spark")
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    expected = []
    for table in tree.find_all(exp.Table):
        if table.name not in ctes:
            table.set("db", exp.to_identifier("a"))
            table.set("catalog", exp.to_identifier("lake"))
            expected.append(Name("lake", "a", table.name))
    found: list[Name] = []
    sql = tree.sql(dialect="spark", identify=True)
    assert with_reads(sql, found.append) == sql
    assert sorted(found) == sorted(expected)
    assert expected
