"""A person's UPDATE, DELETE or MERGE is cut into its clauses, and its text stays as it was written."""

from __future__ import annotations

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.parse_dml import ParsedClause, parse_modification, verb_of


def test_an_update_is_cut_at_its_own_words_only() -> None:
    parsed = parse_modification(
        """UPDATE `lake`.shop.`my orders` AS o
        SET o.status = CASE WHEN a THEN 'x, WHERE' END, -- WHERE
            `b c` = f(1, (SELECT max(x) FROM s WHERE y = 2)), d = e == 3
        WHERE id IN (SELECT id FROM t WHERE z) /* SET */ AND q;"""
    )
    assert (parsed.verb, parsed.target, parsed.alias) == ("UPDATE", ("lake", "shop", "my orders"), "o")
    assert parsed.clauses == (
        ParsedClause(
            "matched",
            "update",
            "id IN (SELECT id FROM t WHERE z) /* SET */ AND q",
            (
                (("o", "status"), "CASE WHEN a THEN 'x, WHERE' END"),
                (("b c",), "f(1, (SELECT max(x) FROM s WHERE y = 2))"),
                (("d",), "e == 3"),
            ),
        ),
    )


def test_a_column_may_be_called_as_a_keyword() -> None:
    parsed = parse_modification(
        """MERGE INTO scd USING s ON scd.id = s.id
        WHEN MATCHED AND s.case = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET tier = CASE WHEN s.end IS NULL THEN 'open' WHEN s.x > 1 THEN 'y' END
        WHEN NOT MATCHED THEN INSERT *"""
    )
    assert [one.action for one in parsed.clauses] == ["delete", "update", "insert"]
    value = "CASE WHEN s.end IS NULL THEN 'open' WHEN s.x > 1 THEN 'y' END"
    assert parsed.clauses[1].values == ((("tier",), value),)


def test_a_delete_may_have_a_query_in_front_and_no_condition() -> None:
    parsed = parse_modification(
        "WITH gone AS (SELECT id FROM s) DELETE FROM orders t WHERE id IN (TABLE gone)"
    )
    assert (parsed.prefix, parsed.target, parsed.alias) == (
        "WITH gone AS (SELECT id FROM s)",
        ("orders",),
        "t",
    )
    assert parsed.clauses == (ParsedClause("matched", "delete", "id IN (TABLE gone)"),)
    assert parse_modification("delete from orders").clauses == (ParsedClause("matched", "delete", None),)


def test_a_merge_is_cut_into_its_clauses() -> None:
    parsed = parse_modification(
        """MERGE INTO shop.orders
        USING (SELECT 1 AS id, CASE WHEN true THEN 'THEN' END AS s) AS u
        ON orders.id = u.id AND CASE WHEN u.s IS NULL THEN false ELSE true END
        WHEN MATCHED AND u.s = 'WHEN' THEN DELETE
        WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED AND u.id > 0 THEN INSERT (id, `s`) VALUES (u.id, concat(u.s, ','))
        WHEN NOT MATCHED BY TARGET THEN INSERT *
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = NULL"""
    )
    assert parsed.source == "(SELECT 1 AS id, CASE WHEN true THEN 'THEN' END AS s) AS u"
    assert (parsed.source_alias, parsed.alias) == ("u", None)
    assert parsed.on == "orders.id = u.id AND CASE WHEN u.s IS NULL THEN false ELSE true END"
    assert parsed.clauses == (
        ParsedClause("matched", "delete", "u.s = 'WHEN'"),
        ParsedClause("matched", "update", None, None),
        ParsedClause("not matched", "insert", "u.id > 0", ((("id",), "u.id"), (("s",), "concat(u.s, ',')"))),
        ParsedClause("not matched", "insert", None, None),
        ParsedClause("not matched by source", "update", None, ((("s",), "NULL"),)),
    )


@pytest.mark.parametrize(
    ("source", "alias"),
    [
        ("shop.updates", "updates"),
        ("shop.updates u", "u"),
        ("(SELECT 1) AS `a b`", "a b"),
        ("(VALUES (1, 2)) AS u(id, n)", "u"),
        ("(SELECT 1)", "_arctic_unnamed"),
    ],
)
def test_a_source_is_known_by_its_alias_or_its_name(source: str, alias: str) -> None:
    parsed = parse_modification(f"MERGE INTO t USING {source} ON true WHEN MATCHED THEN DELETE")
    assert (parsed.source, parsed.source_alias) == (source, alias)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("", ["no statement"]),
        ("DELETE FROM a; DELETE FROM b", ["several"]),
        ("SELECT 1", ["SELECT is not UPDATE"]),
        ("UPDATE t WHERE a", ["SET is missing"]),
        ("UPDATE t SET a", ["column = value"]),
        ("UPDATE t SET a = 1, , b = 2", ["empty"]),
        ("UPDATE t SET a = DEFAULT", ["DEFAULT", "NULL"]),
        ("UPDATE t x y SET a = 1", ["alias"]),
        ("DELETE t WHERE a", ["FROM is missing"]),
        ("DELETE FROM 'a'", ["name"]),
        ("MERGE INTO t USING s WHEN MATCHED THEN DELETE", ["ON is missing"]),
        ("MERGE INTO t USING s ON true", ["WHEN is missing"]),
        ("MERGE INTO t USING s ON true WHEN MATCHED THEN INSERT *", ["UPDATE SET"]),
        ("MERGE INTO t USING s ON true WHEN NOT MATCHED THEN DELETE", ["THEN INSERT"]),
        (
            "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a) VALUES (1, 2)",
            ["1 column and 2 values"],
        ),
        ("MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *", ["not in the source"]),
        ("MERGE INTO t USING s ON true WHEN MAYBE THEN DELETE", ["WHEN [NOT] MATCHED"]),
        ("UPDATE t SET a = 'open", ["cannot be parsed"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_unsupported_sql_is_reported(sql: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_modification(sql)
    assert [word for word in words if word not in str(raised.value)] == []


@pytest.mark.parametrize(
    ("sql", "verb"),
    [
        ("select 1", "SELECT"),
        ("-- x\nwith a as (select 1) update t set b = 1", "UPDATE"),
        ("(select 1)", "("),
    ],
)
def test_the_verb_of_a_statement(sql: str, verb: str) -> None:
    assert verb_of(sql) == verb
