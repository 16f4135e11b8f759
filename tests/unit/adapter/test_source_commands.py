"""``dbt-arctic ingest plan`` reads each table of the catalog once."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter import source_commands
from dbt_arctic.catalog.api import TableState
from tests.unit.sources.test_file_pull import PROD, SOURCE, Lake, Model, file, lake_of


def test_each_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lake, model = lake_of(file("a")), Model(PROD)
    model.run(lake)
    loads: Counter[tuple[str, str]] = Counter()
    load_table = Lake.load_table

    def counted(self: Lake, schema: str, name: str) -> TableState | None:
        loads[schema, name] += 1
        return load_table(self, schema, name)

    monkeypatch.setattr(Lake, "load_table", counted)
    node = SimpleNamespace(name="clicks")
    monkeypatch.setattr(source_commands, "parse_project", lambda target: SimpleNamespace(sources={}))
    monkeypatch.setattr(source_commands, "_pulled", lambda *given: [(node, model.name, {})] * 2)
    monkeypatch.setattr(source_commands, "kind_of", lambda declared: "files")
    monkeypatch.setattr(source_commands, "file_source", lambda *given: SOURCE)
    monkeypatch.setattr(source_commands, "consumed_by", lambda *given: model.consumed)
    target = SimpleNamespace(project_root="/project")
    found = source_commands.preview_sources(cast(Any, SimpleNamespace(catalog=lake)), cast(Any, target), [])
    assert [one.problem for one in found] == ["", ""]
    assert set(loads.values()) == {1}
