"""Settings of topics in Avro: where their schemas are, and which parts of a message are decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.avro_settings import AvroMessages
from dbt_arctic.sources.kafka_settings import KafkaSource, parse_kafka

COLUMNS = {"order_id": "bigint", "status": "string"}
REGISTRY = {"registry": "http://127.0.0.1:8081/"}


def source(root: str | None = None, client: dict[str, str] | None = None, **settings: Any) -> KafkaSource:
    made = {"from": "kafka", "servers": "h:1", "format": "avro", "columns": COLUMNS, **settings}
    return parse_kafka("shop.orders", made, {}, client or {}, "shop.yml", root)


def test_messages_in_avro_are_read_as_json_once_they_are_decoded() -> None:
    value = source(**REGISTRY)
    assert (value.format, value.avro) == ("json", AvroMessages({"value": "value"}, "http://127.0.0.1:8081"))
    both = source(key="order_id", key_format="avro", **REGISTRY)
    assert both.key_format == "json"
    assert both.avro is not None
    assert both.avro.parts == {"value": "status", "key": "order_id"}
    key = source(format="json", key="order_id", key_format="avro", **REGISTRY).avro
    assert key is not None
    assert key.parts == {"key": "order_id"}
    assert source(format="json").avro is None


def test_change_events_are_avro_if_their_schemas_are_known() -> None:
    made = source(format="debezium", key="order_id", **REGISTRY)
    assert made.avro is not None
    assert made.changes is not None
    assert (made.format, made.changes.decimals) == ("debezium", "double"), "numbers, with each digit"
    assert source(format="debezium", key="order_id").avro is None


def test_a_schema_in_a_file_is_read_when_it_is_needed(tmp_path: Path) -> None:
    avro = source(str(tmp_path), schema="orders.avsc").avro
    assert avro is not None
    with pytest.raises(ConfigError, match=r"orders\.avsc cannot be read"):
        avro.schema("orders")
    file = tmp_path / "orders.avsc"
    file.write_text("{")
    with pytest.raises(ConfigError, match="is not an Avro schema"):
        avro.schema("orders")
    file.write_text(json.dumps({"type": "record", "name": "order", "fields": []}))
    assert avro.schema("orders").is_record


def test_properties_of_the_registry_are_not_those_of_kafka() -> None:
    login = "schema.registry.basic.auth.user.info"
    made = source(client={login: "dbt:hunter22", "security.protocol": "SSL"}, **REGISTRY)
    assert made.client == {"security.protocol": "SSL"}
    assert made.registry_client == {login: "dbt:hunter22"}
    assert "hunter22" not in repr(made)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "no schema"),
        ({**REGISTRY, "schema": "a.avsc"}, "both registry and schema"),
        ({"registry": "registry:8081"}, "no address that can be used"),
        ({"registry": "http://dbt:hunter22@registry:8081"}, "contains a login"),
        ({"format": "json", **REGISTRY}, "no part of its messages is Avro"),
        ({"schema": "a.avsc", "key": "order_id", "key_format": "avro"}, "a schema in a file"),
        ({**REGISTRY, "options": {"dateFormat": "dd"}}, "belongs to the format json"),
    ],
)
def test_wrong_settings_are_errors(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        source(**settings)
    assert error.value.fix
    assert "hunter22" not in str(error.value)
