"""The first story of README.md, with its files and commands as they are written there.

``tests/packaging`` installs the package and runs ``dbt init`` and ``dbt debug``, with which the story begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import current_version, load_keyed
from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.test_operator_commands import Terminal
from tests.openlineage_schema import check_event

README = Path(__file__).parents[3] / "README.md"
FILE = re.compile(r"`([\w/]+\.(?:csv|yml|sql))`")
INSTALLATION = "pip install"


def blocks(heading: str) -> list[tuple[str | None, str]]:
    """The code blocks of a section, each with the file that the paragraph before it names."""
    section = README.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    parts = re.split(r"^```\w*\n", section, flags=re.MULTILINE)
    found: list[tuple[str | None, str]] = []
    for text, code in zip(parts[::2], parts[1::2], strict=False):
        paragraph = text.strip().rpartition("\n\n")[2]
        names = FILE.findall(paragraph)
        found.append((names[-1] if names else None, code))
    return found


def follow(
    shop: Shop, type_in: Terminal, found: list[tuple[str | None, str]], after: Callable[[str], None]
) -> None:
    """Write the files and run the commands, in their order."""
    for file, code in found:
        if file is not None:
            shop.file(file, code)
            continue
        for line in code.splitlines():
            program, *arguments = line.split()
            if program == "dbt":
                shop.dbt(*arguments)
            else:
                assert program == "dbt-arctic", line
                after(type_in(*arguments))


def check_lineage(shop: Shop, events: list[dict[str, Any]]) -> None:
    """The events of the last command name the versions that its commits record."""
    for event in events:
        check_event(event)
    ended = {event["job"]["name"]: event for event in events if event["eventType"] == "COMPLETE"}
    orders, amounts = ended["model.shop.orders"], ended["model.shop.order_amounts"]
    ((source,), (read,)) = (event["inputs"] for event in (orders, amounts))
    ((written,), (result,)) = (event["outputs"] for event in (orders, amounts))
    assert (source["namespace"], source["name"]) == ("file", "landing/order_events")
    version = current_version(
        shop.catalog, load_keyed(shop.catalog, Name("lake", shop.schema, "orders"))
    ).token
    assert read["facets"]["version"]["datasetVersion"] == version
    assert written["facets"]["version"]["datasetVersion"] == version
    fields = result["facets"]["columnLineage"]["fields"]
    found = {
        name: [(one["name"].split(".")[1], one["field"]) for one in column["inputFields"]]
        for name, column in fields.items()
    }
    assert found["gross_amount"] == [("orders", "amount")]
    assert found["order_id"] == [("orders", "order_id")]
    newest = shop.log("order_amounts")[0]
    statistics = result["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["size"]) == (1, int(newest.summary["added-files-size"]))


def test_the_first_story_of_the_readme(shop: Shop) -> None:
    type_in = Terminal(shop)
    installation, *story = blocks("Your first keyed table")
    assert INSTALLATION in installation[1]
    first = next(at for at, (file, _) in enumerate(story) if file is None)
    printed: list[str] = []
    follow(shop, type_in, story[: first + 1], printed.append)
    assert shop.rows("orders", "order_id, status") == [(1, "open"), (2, "open")]
    second = next(at for at, (file, _) in enumerate(story) if file is None and at > first)
    follow(shop, type_in, story[first + 1 : second + 1], printed.append)
    assert [order for (order,) in shop.rows("order_amounts", "order_id")] == [1, 2]

    commits = [len(shop.log(name)) for name in ("orders", "order_amounts")]
    shop.dbt("build")
    assert shop.script.jobs == 0, "nothing changed, so nothing runs"
    assert commits == [len(shop.log(name)) for name in ("orders", "order_amounts")]

    follow(shop, type_in, story[second + 1 :], printed.append)
    assert shop.rows("orders", "order_id, status") == [(2, "open")]
    assert shop.rows("order_amounts", "order_id") == [(2,)]
    (history,) = printed
    assert len(history.splitlines()) == 3, "a heading and both versions"
    check_lineage(shop, [json.loads(line) for line in type_in("openlineage").splitlines()])

    file, model = blocks("Let the adapter refresh a model incrementally")[0]
    assert file is not None
    shop.file(file, model)
    shop.dbt("build")
    assert shop.rows("amount_by_customer") == [(11, 1, Decimal("35.50"))]
    header, _ = story[0][1].split("\n", 1)
    shop.file("landing/order_events/3.csv", f"{header}\n4,3,11,open,4.50,2026-01-03 08:00:00\n")
    shop.dbt("build", "--select", "orders")
    _, plan = blocks("Let the adapter refresh a model incrementally")[1]
    _, heading, example = plan.splitlines()
    shown = type_in("plan").splitlines()
    assert shown[0].split("\t") == heading.split()
    assert shown[1].split("\t")[:2] == example.split()[:2]
    assert shown[1].split("\t")[2] == "orders: 1 changed row"
    shop.dbt("build")
    assert shop.rows("amount_by_customer") == [(11, 2, Decimal("40.00"))]
