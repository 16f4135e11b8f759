"""QUALIFY in Spark's words: what is rewritten, what is a name and stays, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dbt_arctic
from dbt_arctic.adapter.sql_extensions import rewrite_extensions
from dbt_arctic.errors import ConfigError
from dbt_arctic.planner.spark.qualify import without_qualify

ROOT = Path(dbt_arctic.__file__).parent
FIRST = "row_number() over (partition by g order by id) = 1"


def around(inner: str, condition: str, rest: str, what: str = "") -> str:
    """What stands for a SELECT, in one line."""
    return (
        f"SELECT {what}* EXCEPT (`_qualify`) FROM ( {inner} , ( {condition} ) AS `_qualify` {rest} ) "
        "AS `_qualified` WHERE `_qualify`"
    )


def rewritten(sql: str) -> str:
    return re.sub(r"\s+", " ", without_qualify(sql))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (f"select * from t qualify {FIRST}", around("select *", FIRST, "from t")),
        (
            "select g, sum(v) s from t where v > 0 group by g having sum(v) > 1 qualify rank() over w = 1 "
            "window w as (order by sum(v)) order by s limit 3;",
            around(
                "select g, sum(v) s",
                "rank() over w = 1",
                "from t where v > 0 group by g having sum(v) > 1 window w as (order by sum(v))",
            )
            + " order by s limit 3;",
        ),
        (
            "select a from t window w as (order by a) qualify left(b, 1) is distinct from a "
            "union all select a from u",
            around("select a", "left(b, 1) is distinct from a", "from t window w as (order by a)")
            + " union all select a from u",
        ),
        (
            "select distinct a is distinct from b as c from t qualify count(*) over () > 1",
            around("select a is distinct from b as c", "count(*) over () > 1", "from t", "DISTINCT "),
        ),
        (
            "select a from (select a from t qualify f(a) > 1) qualify (g(a) = 2)",
            around("select a", "(g(a) = 2)", f"from ({around('select a', 'f(a) > 1', 'from t')})"),
        ),
        (
            "with q as (select 1 from t qualify x) select * from q",
            f"with q as ({around('select 1', 'x', 'from t')}) select * from q",
        ),
    ],
)
def test_a_condition_becomes_a_column_that_is_left_out(written: str, meant: str) -> None:
    assert rewritten(written) == meant


@pytest.mark.parametrize(
    "sql",
    [
        "select qualify, t.qualify from t qualify where qualify > 1",
        "select a as qualify from t qualify left join u on true order by qualify",
        "select 'qualify x' from t -- qualify y",
        "select * from a join b qualify on a.x = qualify.x",
        "select count(*) from t group by qualify having qualify = 1",
    ],
)
def test_a_name_or_a_text_is_no_clause(sql: str) -> None:
    assert without_qualify(sql) == sql


def test_comments_and_all_else_stay_and_the_column_is_called_like_no_other() -> None:
    sql = "select _qualify -- one\nfrom t -- two\nqualify /* three */ f(a) > 1 -- four\norder by 1"
    found = without_qualify(sql)
    assert "AS `_qualify1`" in found
    assert found.endswith("WHERE `_qualify1` -- four\norder by 1")
    assert "select _qualify -- one\n, (" in found
    assert "(\n/* three */ f(a) > 1\n) AS `_qualify1`\nfrom t -- two\n) AS" in found


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("select a, sum(b) from t group by all qualify rank() over (order by a) = 1", "GROUP BY ALL"),
        ("select a from t\nqualify f(a) = 1 order by t.b", "t.b in ORDER BY"),
        ("select 1\nqualify f(a) = 1", "no SELECT with FROM"),
    ],
)
def test_what_would_mean_something_else_is_refused_with_its_line(sql: str, why: str) -> None:
    with pytest.raises(ConfigError) as found:
        without_qualify(sql)
    assert why in str(found.value)
    assert f"line {sql.count(chr(10)) + 1} of" in str(found.value)


def test_only_models_that_ask_are_rewritten_and_automatic_ones_do() -> None:
    sql = f"select * from t qualify {FIRST}"
    automatic = {"materialized": "incremental", "incremental_strategy": "auto"}
    assert rewrite_extensions(sql, "m", {"materialized": "table"}) == sql
    assert rewrite_extensions(sql, "m", {**automatic, "sql_extensions": []}) == sql
    for config in (automatic, {"sql_extensions": "qualify"}, {"sql_extensions": ["qualify"]}):
        assert rewrite_extensions(sql, "m", config) == without_qualify(sql)
    for wrong in ("pivot", ["qualify", "top"], {"qualify": True}, True):
        with pytest.raises(ConfigError, match="known are: qualify"):
            rewrite_extensions(sql, "m", {"sql_extensions": wrong})


def test_sql_is_rewritten_in_one_place() -> None:
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if re.search(r"\b(without_qualify|rewrite_extensions)\b", path.read_text(encoding="utf-8"))
    }
    assert naming == {"planner/spark/qualify.py", "adapter/sql_extensions.py"}
    text = (ROOT / "adapter" / "sql_extensions.py").read_text(encoding="utf-8")
    assert text.count("rewrite_extensions(") == 2, "its definition and one call"
