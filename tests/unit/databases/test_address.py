"""The address of a database, for its Python client and for Spark's driver."""

from __future__ import annotations

import pytest

from dbt_arctic.databases.address import has_password, parse_address
from dbt_arctic.databases.client import parts_of
from dbt_arctic.errors import ConfigError


def test_an_address_has_the_same_parts_for_both_clients() -> None:
    made = parse_address("jdbc:postgres://me%40x@db.example.com/my%20crm?sslmode=require", "", "pw", "")
    assert (made.kind, made.host, made.port, made.database) == (
        "postgresql",
        "db.example.com",
        5432,
        "my crm",
    )
    assert (made.user, made.password, made.options) == ("me@x", "pw", {"sslmode": "require"})
    url = made.jdbc_url("postgresql", ApplicationName="a b")
    assert url == "jdbc:postgresql://db.example.com:5432/my%20crm?sslmode=require&ApplicationName=a%20b"
    assert "pw" not in repr(made)
    other = parse_address("mysql://a:b@[::1]:3307/crm", "reader", "", "")
    assert (other.kind, other.user, other.password) == ("mariadb", "reader", "b")
    assert other.jdbc_url("mysql").startswith("jdbc:mysql://[::1]:3307/crm?")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("oracle://host/crm", "PostgreSQL and MariaDB"),
        ("postgresql:///crm", "has no host"),
        ("postgresql://host", "names no database"),
        ("postgresql://host/a/b", "names no database"),
        ("postgresql://host/crm?options=-c", "has the option options"),
        ("mariadb://host/crm?sslmode=require", "has the option sslmode"),
    ],
)
def test_another_address_is_an_error(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_address(url, "", "", "models/crm.yml")
    assert said in str(error.value)
    assert error.value.where == "models/crm.yml"
    assert error.value.fix


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://me:x@host/crm", True),
        ("jdbc:mariadb://host/crm?user=me&password=x", True),
        ("jdbc:mariadb://me@host:3306/crm", False),
        ("postgresql://host:5432/crm?sslmode=require", False),
        ("", False),
    ],
)
def test_a_password_in_an_address_is_found(url: str, expected: bool) -> None:
    assert has_password(url) == expected


@pytest.mark.parametrize("name", ["", "a.b.c", "a..b", 'a."b', ".a"])
def test_what_is_no_name_of_a_table_is_an_error(name: str) -> None:
    assert parts_of("`a``b`.`c.d`", "") == ["a`b", "c.d"]
    with pytest.raises(ConfigError, match="is not the name of a table"):
        parts_of(name, "")
