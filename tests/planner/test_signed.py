"""Rows that a result gains and loses: how they are joined, and what is read for them."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.algebra import Project, scans, walk
from dbt_arctic.planner.facts import Facts, UpstreamFacts
from dbt_arctic.planner.parse import named, parse
from dbt_arctic.planner.plan import Query, understand
from dbt_arctic.planner.render import Renderer
from dbt_arctic.planner.signed import signed
from dbt_arctic.planner.sums import plan_sums


def understood(sql: str, schemas: dict[str, tuple[tuple[str, str], ...]]) -> Query:
    return understand(named(parse(sql), lambda written: written), schemas)


@pytest.mark.parametrize(("rows", "hinted"), [(100, True), (-1, False), (3_000_000, False)])
def test_changes_that_are_known_to_be_few_are_sent_to_each_task(rows: int, hinted: bool) -> None:
    schemas = {"t": (("id", "int"), ("x", "int")), "u": (("id", "int"), ("y", "int"))}
    query = understood("SELECT t.x, u.y FROM t JOIN u ON t.id = u.id", schemas)
    facts = Facts(
        {
            "t": UpstreamFacts(True, ("id",), 10_000_000, rows),
            "u": UpstreamFacts(False, ("id",), 10_000_000, 0),
        }
    )

    (part,) = signed(query.node, query.node.output, facts)
    assert ("BROADCAST" in Renderer(Named()).query(part).upper()) == hinted


class Named:
    def relation(self, source: str, state: str) -> str:
        return f"{source}_{state}"


@pytest.mark.parametrize(
    ("rows", "sent"),
    [
        # Each of a million orders has ten lines, and each line one part.
        ({"o": 1_000_000, "l": 10_000_000, "p": 200_000}, [{"o"}, {"o", "l"}]),
        # A hundred thousand orders have lines for more tasks than one.
        ({"o": 1_000_000, "l": 30_000_000, "p": 200_000}, [{"o"}]),
        # Spark sends a small table to each task by itself.
        ({"o": 1_000_000, "l": 10_000_000, "p": 10_000}, [{"o"}]),
        # How many lines an order has is not known.
        ({"o": 0, "l": 10_000_000, "p": 200_000}, [{"o"}]),
    ],
)
def test_what_few_changes_meet_is_sent_to_each_task_as_long_as_it_is_few(
    rows: dict[str, int], sent: list[set[str]]
) -> None:
    schemas = {
        "o": (("ok", "int"), ("day", "date")),
        "l": (("ok", "int"), ("n", "int"), ("pk", "int"), ("x", "int")),
        "p": (("pk", "int"), ("name", "string")),
    }
    query = understood(
        "SELECT o.day, l.x, p.name FROM o JOIN l ON o.ok = l.ok JOIN p ON l.pk = p.pk", schemas
    )
    facts = Facts(
        {
            "o": UpstreamFacts(True, ("ok",), rows["o"], 100_000),
            "l": UpstreamFacts(False, ("ok", "n"), rows["l"]),
            "p": UpstreamFacts(False, ("pk",), rows["p"]),
        }
    )
    (part,) = signed(query.node, query.node.output, facts)
    found = [node for node in walk(part) if isinstance(node, Project) and node.broadcast]
    assert [{one.source for one in scans(node)} for node in reversed(found)] == sent


def test_scans_read_what_is_used_and_no_more() -> None:
    schemas = {
        "o": (("ok", "int"), ("day", "date"), ("note", "string")),
        "l": (("ok", "int"), ("n", "int"), ("x", "int"), ("note", "string")),
    }
    query = understood(
        "SELECT day, count(*) AS n FROM o WHERE EXISTS (SELECT * FROM l WHERE l.ok = o.ok AND x > 1) "
        "GROUP BY day",
        schemas,
    )
    facts = Facts({"o": UpstreamFacts(True, ("ok",)), "l": UpstreamFacts(True, ("ok", "n"))})
    made = plan_sums(query, ("day",), facts)
    assert made is not None
    assert made.changes is not None
    nodes = [
        made.changes,
        *(one.rows for one in made.staged.touched),
        *(one.rows for one in made.staged.gathered),
    ]
    read = {stored for node in nodes for one in scans(node) for _, stored in one.columns}
    assert "note" not in read
    assert {"ok", "day", "x"} <= read
