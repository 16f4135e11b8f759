"""Which comments a run writes."""

from __future__ import annotations

from typing import Any

from dbt_arctic.adapter.docs import changed_docs, documented
from dbt_arctic.catalog.api import CatalogColumn

COLUMNS = (CatalogColumn("id", "int", "the key"), CatalogColumn("Name", "string"))


def model(description: str, **columns: str) -> dict[str, Any]:
    described = {name: {"name": name, "description": text} for name, text in columns.items()}
    return {"description": description, "columns": described}


def test_what_the_catalog_says_already_is_not_written() -> None:
    change = changed_docs(model("orders", ID="the key", name=""), "orders", COLUMNS, True, True)
    assert (change.comment, change.columns, change.missing) == (None, {}, ())


def test_what_changed_or_went_is_written_in_the_spelling_of_the_table() -> None:
    change = changed_docs(model("", id="", name="who", gone="x"), "orders", COLUMNS, True, True)
    assert (change.comment, change.columns, change.missing) == ("", {"id": "", "Name": "who"}, ("gone",))


def test_only_requested_parts_are_compared() -> None:
    described = model("new", id="new")
    assert changed_docs(described, "old", COLUMNS, False, True).comment is None
    assert changed_docs(described, "old", COLUMNS, True, False).columns == {}


def test_a_quoted_name_is_exact() -> None:
    columns = {"ID": {"description": "a", "quote": True}, "Name": {"description": "b", "quote": True}}
    assert documented(columns, ["id", "Name"]) == ({"Name": "b"}, ("ID",))
