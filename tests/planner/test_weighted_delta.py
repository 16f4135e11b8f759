"""Rows that a result gains and loses: how they are joined, and what is read for them."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.algebra.operators import Project, scans, walk
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import Renderer
from dbt_arctic.planner.auxiliary.aggregate_maintenance import plan_summary_delta
from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.delta.weighted_delta import WeightedRows, weighted_rows
from dbt_arctic.planner.frontend.parse import named, parse
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts


def query_of(sql: str, schemas: dict[str, tuple[tuple[str, str], ...]]) -> Query:
    return analyse_query(named(parse(sql), lambda written: written), schemas)


@pytest.mark.parametrize(("rows", "hinted"), [(100, True), (None, False), (3_000_000, False)])
def test_changes_that_are_known_to_be_few_are_sent_to_each_task(rows: int | None, hinted: bool) -> None:
    schemas = {"t": (("id", "int"), ("x", "int")), "u": (("id", "int"), ("y", "int"))}
    query = query_of("SELECT t.x, u.y FROM t JOIN u ON t.id = u.id", schemas)
    facts = Facts(
        {
            "t": UpstreamFacts(True, ("id",), 10_000_000, rows),
            "u": UpstreamFacts(False, ("id",), 10_000_000, 0),
        }
    )

    (part,) = weighted_rows(query.node, query.node.output, facts)
    assert ("BROADCAST" in Renderer(Named()).query(part).upper()) == hinted


class Named:
    def relation(self, source: str, state: str) -> str:
        return f"{source}_{state}"


STAR = {
    "o": (("ok", "int"), ("ck", "int"), ("day", "date")),
    "l": (("ok", "int"), ("n", "int"), ("pk", "int"), ("x", "int")),
    "p": (("pk", "int"), ("name", "string")),
    "c": (("ck", "int"), ("city", "string")),
}
KEYS = {"o": ("ok",), "l": ("ok", "n"), "p": ("pk",), "c": ("ck",)}


def parts(sql: str, rows: dict[str, int], changed: dict[str, int | None]) -> WeightedRows:
    query = query_of(sql, STAR)
    facts = Facts(
        {
            name: UpstreamFacts(name in changed, key, rows.get(name, 0), changed.get(name, 0))
            for name, key in KEYS.items()
        }
    )
    return weighted_rows(query.node, query.node.output, facts)


def broadcast_columns(found: WeightedRows) -> list[set[str]]:
    nodes = [node for part in found for node in walk(part) if isinstance(node, Project) and node.broadcast]
    return [{one.source for one in scans(node)} for node in reversed(nodes)]


ORDERS = "SELECT o.day, l.x, p.name FROM o JOIN l ON o.ok = l.ok JOIN p ON l.pk = p.pk"
CITIES = "SELECT c.city, o.day, l.x FROM c JOIN o ON c.ck = o.ck JOIN l ON l.ok = o.ok"
LINES = "SELECT o.day, l.x, c.city FROM l JOIN o ON o.ok = l.ok JOIN c ON o.ck = c.ck"


@pytest.mark.parametrize(
    ("sql", "rows", "changed", "expected"),
    [
        # Each line has one order, and each order one customer.
        (LINES, {"l": 10**9, "o": 10**8, "c": 10**7}, {"l": 10**6}, [{"l"}, {"l", "o"}]),
        # Each of a million orders has ten lines: their key begins with the order.
        (ORDERS, {"o": 10**6, "l": 10**7, "p": 2 * 10**6}, {"o": 100_000}, [{"o"}, {"o", "l"}]),
        (ORDERS, {"o": 10**6, "l": 3 * 10**7, "p": 10**7}, {"o": 100_000}, [{"o"}]),
        # Each of a million customers has ten orders, if these are spread evenly; many are not relied on.
        (CITIES, {"c": 10**6, "o": 10**7, "l": 10**8}, {"c": 10_000}, [{"c"}, {"c", "o"}]),
        (CITIES, {"c": 10**6, "o": 10**7, "l": 10**8}, {"c": 100_000}, [{"c"}]),
        # How many lines an order has is not known.
        (ORDERS, {"o": 0, "l": 10**7, "p": 10**6}, {"o": 100}, [{"o"}]),
        # Spark sends what is smaller to each task by itself.
        (LINES, {"l": 10**9, "o": 10**8, "c": 1_000}, {"l": 10**6}, [{"l"}]),
        (LINES, {"l": 10**9, "o": 10**8, "c": 10**7}, {"l": None}, []),
        (LINES, {"l": 10**9, "o": 10**8, "c": 10**7}, {"l": 10**7}, []),
        # One part has ten thousand lines, whether the query is below it or joined with it.
        (
            "SELECT s.x, c.city FROM (SELECT l.x, o.ck FROM l JOIN p ON l.pk = p.pk "
            "JOIN o ON l.ok = o.ok) AS s "
            "JOIN c ON s.ck = c.ck",
            {"l": 10**9, "o": 10**8, "p": 10**5, "c": 10**7},
            {"p": 5_000},
            [{"p"}],
        ),
        # What is compared is more than what has changed.
        (
            "SELECT s.n, o.day FROM (SELECT p.pk, count(*) AS n FROM p GROUP BY p.pk) AS s "
            "JOIN l ON l.pk = s.pk JOIN o ON l.ok = o.ok",
            {"l": 10**7, "o": 10**8, "p": 10**5},
            {"p": 1},
            [],
        ),
        # The lines that a filter looks at are none of the orders'.
        (
            "SELECT l.x, p.name FROM o JOIN l ON o.ok = l.ok JOIN p ON l.pk = p.pk "
            "WHERE EXISTS (SELECT 1 FROM c WHERE c.ck = o.ck)",
            {"l": 10**9, "o": 1_000, "p": 10**7, "c": 10**9},
            {"o": 100},
            [{"o"}],
        ),
    ],
)
def test_rows_that_few_changes_match_are_broadcast_while_they_are_few(
    sql: str, rows: dict[str, int], changed: dict[str, int | None], expected: list[set[str]]
) -> None:
    assert broadcast_columns(parts(sql, rows, changed)) == expected


def test_what_has_not_changed_is_joined_once() -> None:
    sql = (
        "SELECT o.day, l.x, p.name, c.city FROM o JOIN l ON o.ok = l.ok "
        "JOIN p ON l.pk = p.pk JOIN c ON o.ck = c.ck"
    )
    rows = {"l": 10**7, "o": 10**6, "p": 10**5, "c": 10**5}
    (part,) = parts(sql, rows, {"l": 100, "o": 100})
    read = [one.source for one in scans(part)]
    assert (read.count("p"), read.count("c")) == (1, 1)
    # Without a condition between them, each changed relation is joined by itself.
    columns_in_model_table = parts(sql, rows, {"p": 10, "c": 10})
    assert len(columns_in_model_table) == 2
    assert all({one.source for one in scans(one)} == set(STAR) for one in columns_in_model_table)


def test_scans_read_what_is_used_and_no_more() -> None:
    schemas = {
        "o": (("ok", "int"), ("day", "date"), ("note", "string")),
        "l": (("ok", "int"), ("n", "int"), ("x", "int"), ("note", "string")),
    }
    query = query_of(
        "SELECT day, count(*) AS n FROM o WHERE EXISTS (SELECT * FROM l WHERE l.ok = o.ok AND x > 1) "
        "GROUP BY day",
        schemas,
    )
    facts = Facts({"o": UpstreamFacts(True, ("ok",)), "l": UpstreamFacts(True, ("ok", "n"))})
    made = plan_summary_delta(query, ("day",), facts)
    assert made is not None
    assert made.changes is not None
    nodes = [
        made.changes,
        *(one.rows for one in made.staged.affected_values),
        *(one.rows for one in made.staged.shared_lookups),
    ]
    read = {stored for node in nodes for one in scans(node) for _, stored in one.columns}
    assert "note" not in read
    assert {"ok", "day", "x"} <= read


@pytest.mark.parametrize(("key", "times"), [(("ck",), 1), ((), 2)])
def test_changed_relations_with_a_many_to_many_link_are_joined_separately(
    key: tuple[str, ...], times: int
) -> None:
    """Stores and customers of one city are no lines and orders."""
    schemas = {
        "c": (("ck", "int"), ("city", "int")),
        "s": (("sk", "int"), ("city", "int"), ("ck", "int")),
        "n": (("city", "int"), ("name", "string")),
    }
    link = "s.ck = c.ck" if key else "s.city = c.city"
    query = query_of(f"SELECT c.ck, s.sk, n.name FROM c JOIN s ON {link} JOIN n ON n.city = c.city", schemas)
    facts = Facts(
        {
            "c": UpstreamFacts(True, ("ck",), 10**6, 100),
            "s": UpstreamFacts(True, ("sk",), 10**6, 100),
            "n": UpstreamFacts(False, ("city",), 10**3),
        }
    )
    found = weighted_rows(query.node, query.node.output, facts)
    assert [one.source for part in found for one in scans(part)].count("n") == times


def test_a_key_that_begins_with_a_tenant_does_not_make_its_rows_few() -> None:
    schemas = {
        "t": (("tenant", "int"), ("plan", "string")),
        "e": (("tenant", "int"), ("id", "int"), ("kind", "int")),
        "k": (("kind", "int"), ("name", "string")),
    }
    query = query_of(
        "SELECT t.plan, e.id, k.name FROM t JOIN e ON e.tenant = t.tenant JOIN k ON k.kind = e.kind", schemas
    )

    def hinted(events: int) -> list[set[str]]:
        facts = Facts(
            {
                "t": UpstreamFacts(True, ("tenant",), 10**4, 300),
                "e": UpstreamFacts(False, ("tenant", "id"), events),
                "k": UpstreamFacts(False, ("kind",), 10**8),
            }
        )
        return broadcast_columns(weighted_rows(query.node, query.node.output, facts))

    # 300 tenants have 9,000 events, or 300,000: some of them have most of these.
    assert hinted(30 * 10**4) == [{"t"}, {"t", "e"}]
    assert hinted(1_000 * 10**4) == [{"t"}]


def test_a_list_of_values_is_not_worth_a_hint() -> None:
    query = query_of(
        "SELECT t.x, v.name FROM t JOIN (VALUES (1, 'a'), (2, 'b')) AS v(x, name) ON v.x = t.x",
        {"t": (("id", "int"), ("x", "int"))},
    )
    facts = Facts({"t": UpstreamFacts(True, ("id",), 10**6, 100)})
    assert broadcast_columns(weighted_rows(query.node, query.node.output, facts)) == []
