"""The settings of a source that is a Kafka topic."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.adapter.kafka_sources import kafka_source
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.kafka_offsets import Range
from dbt_arctic.sources.kafka_settings import parse_kafka
from dbt_arctic.sources.kafka_sql import read_request

COLUMNS = {"id": "bigint", "status": "string"}
GOOD = {"from": "kafka", "servers": "a:1", "topic": "orders", "format": "json", "columns": COLUMNS}


def test_options_go_to_the_format_to_the_reader_and_to_the_client() -> None:
    options = {"dateFormat": "yyyy", "minpartitions": 4, "kafka.fetch.max.bytes": 10}
    source = parse_kafka("shop.orders", {**GOOD, "options": options}, {}, {"security.protocol": "SSL"})
    assert source.options == {"dateFormat": "yyyy"}
    assert source.reader == {"minpartitions": "4"}
    assert source.client == {"security.protocol": "SSL", "fetch.max.bytes": "10"}
    request = read_request(source, [Range(1, 5, 7), Range(3, 0, 1)])
    assert request.format == "kafka"
    assert request.options == {
        "minpartitions": "4",
        "kafka.security.protocol": "SSL",
        "kafka.fetch.max.bytes": "10",
        "kafka.bootstrap.servers": "a:1",
        "kafka.isolation.level": "read_committed",
        "assign": '{"orders": [1, 3]}',
        "startingOffsets": '{"orders": {"1": 5, "3": 0}}',
        "endingOffsets": '{"orders": {"1": 7, "3": 1}}',
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }


def test_what_may_be_left_out() -> None:
    short = {"from": "kafka", "servers": ["a:1", "b:2 "], "format": "text"}
    source = parse_kafka("shop.orders", short, {}, {"isolation.level": "read_uncommitted"})
    assert (source.servers, source.topic, source.columns) == ("a:1,b:2", "orders", {"value": "string"})
    assert (source.isolation, source.client) == ("read_uncommitted", {})
    binary = {**short, "format": "binary", "key": "id", "columns": {"id": "bigint"}}
    assert parse_kafka("a.b", binary, {}, {}).columns == {"id": "bigint", "value": "binary"}
    assert parse_kafka("a.b", {**GOOD, "columns": None}, {"n": "int"}, {}).columns == {"n": "int"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"servers": None}, "has no servers"),
        ({"format": "xml"}, "use one of json, text, binary"),
        ({"topik": "x"}, "use 'topic'"),
        ({"columns": None}, "declares no columns"),
        (
            {"columns": "infer"},
            "review them: dbt-arctic ingest init shop --kafka a:1 --topic orders --dry-run",
        ),
        ({"columns": {"_SOURCE_OFFSET": "int"}}, "has a column _SOURCE_OFFSET"),
        ({"key": "nr"}, "not one of its columns"),
        ({"key": ["id", "status"]}, "write key_format: json"),
        ({"key_format": "xml"}, "use one of text, json, avro"),
        ({"format": "text"}, "declare one column"),
        ({"format": "text", "columns": {"v": "int"}}, "declare one column"),
        ({"format": "text", "columns": {}, "options": {"dateFormat": "y"}}, "belongs to the format json"),
        ({"on_bad_row": "skip"}, "use one of fail, quarantine, drop"),
        ({"required": ["nr"]}, "requires nr, which is none of its columns"),
        ({"format": "binary", "columns": {}, "on_bad_row": "drop"}, "has no effect"),
        ({"on_data_loss": "ignore"}, "use one of fail, skip"),
        ({"options": {"startingOffsets": "latest"}}, "cannot be set"),
        ({"options": {"failondataloss": "false"}}, "cannot be set"),
        ({"options": {"mode": "DROPMALFORMED"}}, "cannot be set"),
        ({"options": {"kafka.group.id": "g"}}, "cannot be set"),
        ({"options": {"kafka.isolation.level": "any"}}, "use one of read_committed"),
    ],
)
def test_a_wrong_setting_is_an_error_that_names_the_right_one(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_kafka("shop.orders", {**GOOD, **change}, {}, {}, "models/shop.yml")
    assert told in str(error.value)
    assert error.value.where == "models/shop.yml"


def test_a_secret_belongs_to_the_profile_and_not_to_a_source() -> None:
    options = {"kafka.sasl.jaas.config": "hunter2"}
    declared = {"name": "a.b", "where": "a.yml", "columns": {}, "settings": {**GOOD, "options": options}}
    with pytest.raises(ConfigError, match=r"the option kafka\.sasl\.jaas\.config") as error:
        kafka_source(declared, {})
    assert "profiles.yml: kafka: {sasl.jaas.config:" in error.value.fix
    assert "hunter2" not in str(error.value)
    secret = {"sasl.jaas.config": "hunter2"}
    assert "hunter2" not in repr(parse_kafka("a.b", GOOD, {}, secret))
