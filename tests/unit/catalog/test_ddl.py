"""What is read out of the text of SHOW CREATE TABLE."""

from __future__ import annotations

from dbt_arctic.catalog.ddl import non_null_columns, quoted, unquoted, view_text


def test_backquotes_in_names_are_doubled_and_back() -> None:
    assert quoted("lake", "a`b", "c d") == "`lake`.`a``b`.`c d`"
    assert unquoted("`a``b`") == "a`b"
    assert unquoted("plain") == "plain"


def test_not_null_is_found_at_a_column_itself_only() -> None:
    text = """CREATE TABLE lake.a.t (
  id BIGINT NOT NULL COMMENT 'it''s (not) NULL, NOT NULL',
  price DECIMAL(12,2),
  `odd ``name, NOT NULL` STRING,
  `also odd` MAP<STRING, STRUCT<x: INT NOT NULL COMMENT 'a > b'>> NOT NULL,
  nested STRUCT<`a b`: INT NOT NULL COMMENT 'x', c: ARRAY<STRUCT<d: INT>>>,
  said STRING COMMENT 'a \\' quote, NOT NULL')
USING iceberg
PARTITIONED BY (bucket(4, id))
TBLPROPERTIES (
  'x' = 'y NOT NULL')
"""
    assert non_null_columns(text) == {"id", "also odd"}


def test_a_view_s_query_follows_the_as_that_is_not_in_quotes() -> None:
    text = "CREATE VIEW a.v (\n  id COMMENT 'one\nAS\ntwo')\nAS\nSELECT 1 AS id\nFROM t\n"
    assert view_text(text) == "SELECT 1 AS id\nFROM t"
