"""A model's header, cut into statements."""

from __future__ import annotations

import pytest

from dbt_arctic.engine.lexer import split_header


@pytest.mark.parametrize(
    ("header", "statements", "rest"),
    [
        (None, [], ""),
        ("set time zone 'UTC';", ["set time zone 'UTC'"], ""),
        ("set a = ';'; set b = 1 -- ; not an end\n;", ["set a = ';'", "set b = 1 -- ; not an end"], ""),
        ("set a = 1; /* note */", ["set a = 1"], "/* note */"),
        (" ;; ", [], ""),
    ],
)
def test_what_ends_in_a_semicolon_is_a_statement(
    header: str | None, statements: list[str], rest: str
) -> None:
    assert split_header(header) == (statements, rest)
