"""Telling code from strings and comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_arctic.engine.lexer import first_word, pieces, without_comments


@given(st.text(alphabet="ab'\"`\\/*-%s \nrR", max_size=60))
def test_the_pieces_are_the_text(sql: str) -> None:
    assert "".join(text for _, text in pieces(sql)) == sql
    assert "".join(text for _, text in pieces(sql, placeholders=True)) == sql


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("select 1", "SELECT"),
        ('/* {"app": "dbt", "it\'s": 1} */\n  insert into t values (1)', "INSERT"),
        ("-- delete\n/* a /* nested */ b */ (WITH x AS (SELECT 1) SELECT 1)", "WITH"),
        ("  \n-- nothing", ""),
        ("/* never closed", ""),
    ],
)
def test_the_first_word_is_not_a_comments(sql: str, word: str) -> None:
    assert first_word(sql) == word


def test_a_comment_inside_a_string_stays() -> None:
    assert without_comments("SELECT '--a', `/*b*/`, r'\\' -- c") == "SELECT '--a', `/*b*/`, r'\\'  "
