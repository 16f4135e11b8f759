"""Names in SQL, and metadata available only from ``SHOW CREATE TABLE``: NOT NULL columns, a view's query."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = re.compile(r"\s*(?:`((?:[^`]|``)*)`|(\S+))")
_NOT_NULL = re.compile(r"\bNOT NULL\b")


def quoted(*parts: str) -> str:
    """A name for SQL, each part in backquotes.

    >>> quoted("lake", "my`s", "t")
    '`lake`.`my``s`.`t`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def unquoted(name: str) -> str:
    """A single name without the backquotes that SHOW SCHEMAS adds where they are needed."""
    return name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name


def non_null_columns(create_table: str) -> set[str]:
    """The columns that a ``CREATE TABLE`` text declares NOT NULL.

    >>> non_null_columns("CREATE TABLE t (a INT NOT NULL COMMENT 'x, y', b STRUCT<c: INT NOT NULL>)")
    {'a'}
    """
    found = set()
    for definition in _definitions(create_table):
        name = _NAME.match(definition)
        if name and _NOT_NULL.search(_outermost(definition[name.end() :])):
            found.add(name[2] if name[1] is None else name[1].replace("``", "`"))
    return found


def partition_fields(create_table: str) -> tuple[str, ...]:
    """The partition fields of a ``CREATE TABLE`` text, in the form of ``TableState.partitioning``.

    >>> partition_fields("CREATE TABLE t (a INT)\\nUSING iceberg\\nPARTITIONED BY (bucket(2, a), `b c`)\\nX")
    ('bucket(2, a)', 'b c')
    """
    clause = re.search(r"^PARTITIONED BY (?=\()", _masked(create_table), re.MULTILINE)
    if clause is None:
        return ()
    return tuple(_unquoted_field(field) for field in _definitions(create_table[clause.end() :]))


def sort_columns(sort_order: str) -> tuple[str, ...]:
    """The columns of a sort order as SHOW TBLPROPERTIES prints it.

    >>> sort_columns("id ASC NULLS FIRST, days(at) DESC NULLS LAST")
    ('id', 'days(at)')
    """
    fields = _definitions(f"({sort_order})") if sort_order else ()
    return tuple(_unquoted_field(re.sub(r" (ASC|DESC)( NULLS \w+)?$", "", field.strip())) for field in fields)


def _unquoted_field(field: str) -> str:
    return re.sub(r"`((?:[^`]|``)*)`", lambda name: name[1].replace("``", "`"), field.strip())


def view_text(create_view: str) -> str:
    """The query of a ``CREATE VIEW`` text as SHOW CREATE TABLE prints it: the text after the line ``AS``."""
    depth_zero_as = re.search(r"^AS\n", _masked(create_view), re.MULTILINE)
    return create_view[depth_zero_as.end() :].removesuffix("\n") if depth_zero_as else create_view


def _definitions(create_table: str) -> Iterator[str]:
    """The comma-separated texts of the first parenthesis."""
    masked = _masked(create_table)
    start = masked.index("(") + 1
    depth = 0
    for at in range(start, len(masked)):
        character = masked[at]
        if character in "(<":
            depth += 1
        elif character in ")>" and depth:
            depth -= 1
        elif character in ",)" and not depth:
            yield create_table[start:at]
            start = at + 1
            if character == ")":
                return


def _masked(text: str) -> str:
    """The text with every quoted character replaced by ``x``, so that the rest can be searched."""
    return re.sub(
        r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'", lambda quote: "x" * len(quote[0]), text, flags=re.DOTALL
    )


def _outermost(definition: str) -> str:
    """The definition without quotes and without text in brackets."""
    text = _masked(definition)
    while (inner := re.sub(r"[(<][^()<>]*[)>]", "", text)) != text:
        text = inner
    return text
