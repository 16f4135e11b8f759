"""How a dbt source outside the catalog is declared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt.artifacts.resources import SourceConfig

from dbt_arctic.adapter.external_sources import (
    connectors_of,
    declared_source,
    explained,
    kind_of,
    remember,
    require_meta,
    require_tables,
)
from dbt_arctic.errors import ConfigError, StatementError, UnknownRelation


def node(table: dict[str, Any], source: dict[str, Any]) -> SimpleNamespace:
    column = SimpleNamespace(name="id", data_type="bigint")
    return SimpleNamespace(
        resource_type="source",
        source_name="landing",
        name="clicks",
        original_file_path="models/landing.yml",
        columns={"id": column, "more": SimpleNamespace(name="more", data_type=None)},
        config=SimpleNamespace(meta={"arctic": table} if table else {}),
        source_meta={"arctic": source} if source else {},
    )


def test_settings_of_the_whole_source_hold_for_its_tables() -> None:
    declared = declared_source(node({"path": "in"}, {"from": "files", "path": "all", "format": "csv"}))
    assert declared is not None
    assert declared["settings"] == {"from": "files", "path": "in", "format": "csv"}
    assert declared["columns"] == {"id": "bigint"}
    assert declared["where"] == "models/landing.yml"
    assert kind_of(declared) == "files"
    assert declared_source(node({"path": "in"}, {})) is None
    assert declared_source(node({}, {})) is None


def test_settings_that_are_not_in_meta_are_an_error() -> None:
    config = SourceConfig.from_dict({"arctic": {"from": "files"}})
    made = {"resource_type": "source", "source_name": "landing", "name": "clicks", "config": config}
    with pytest.raises(ConfigError, match=r"source landing\.clicks") as caught:
        require_meta(SimpleNamespace(**made, original_file_path="models/s.yml"))
    assert caught.value.fix == "write config: {meta: {arctic: ...}}"
    require_meta(SimpleNamespace(**{**made, "config": SourceConfig.from_dict({"meta": {"arctic": {}}})}))


def test_another_value_of_from_is_an_error_that_names_those_that_exist() -> None:
    declared = declared_source(node({"from": "carrier pigeon"}, {}))
    assert declared is not None
    with pytest.raises(ConfigError, match="has from: carrier pigeon") as error:
        kind_of(declared)
    assert error.value.where == "models/landing.yml"
    assert "files" in error.value.fix


def test_spark_needs_a_connector_only_if_a_source_is_a_topic_or_avro() -> None:
    files, topic = node({"from": "files"}, {}), node({"topic": "t"}, {"from": "kafka"})
    assert connectors_of([files, node({}, {})]) == ()
    assert connectors_of([files, topic, topic]) == ("kafka",)
    avro = node({"format": "avro"}, {"from": "files"})
    table = node({"table": "t"}, {"from": "jdbc", "url": "jdbc:mysql://me@host/crm"})
    assert connectors_of([files, table, node({}, {"from": "jdbc"})]) == ("mariadb",)
    assert connectors_of([avro, topic, node({"from": "kafka", "format": "avro"}, {})]) == ("avro", "kafka")


def test_spark_needs_the_client_of_s3_only_if_a_folder_is_there() -> None:
    whole = {"from": "files", "path": "s3://shop/clicks/"}
    assert connectors_of([node({}, whole), node({"path": "s3a://shop/visits"}, whole)]) == ("s3",)
    others = ({"path": "landing"}, {"path": "gs://shop/clicks"}, {"from": "kafka"})
    assert connectors_of([node(other, whole) for other in others]) == ("kafka",)


def test_the_error_of_a_source_that_is_read_like_a_table_says_how_to_read_it() -> None:
    declared = declared_source(node({"from": "files"}, {}))
    assert declared is not None
    remember("`lake`.`landing`.`clicks`", declared)
    missing = StatementError(
        "failed", why="[TABLE_OR_VIEW_NOT_FOUND] `lake`.`landing`.`clicks` cannot be found"
    )
    found = explained(missing)
    assert "the source landing.clicks is a folder of files" in str(found)
    assert "incremental_pull(source('landing', 'clicks'))" in found.fix
    other = StatementError("failed", why="[TABLE_OR_VIEW_NOT_FOUND] `lake`.`a`.`b` cannot be found")
    assert explained(other) is other


def test_a_plan_refuses_a_model_that_reads_a_source_like_a_table() -> None:
    sources = {"source.p.landing.clicks": node({"from": "files"}, {}), "source.p.raw.t": node({}, {})}
    reads = SimpleNamespace(nodes=["model.p.a", "source.p.raw.t"])
    require_tables(SimpleNamespace(name="m", depends_on=reads), sources)
    reads.nodes.append("source.p.landing.clicks")
    with pytest.raises(UnknownRelation, match=r"landing\.clicks is a folder of files") as caught:
        require_tables(SimpleNamespace(name="m", depends_on=reads), sources)
    assert caught.value.where == "m"
    assert "incremental_pull(source('landing', 'clicks'))" in caught.value.fix
