"""The client of a schema registry, against one on loopback."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.brokers.schema_registry import HttpRegistry
from dbt_arctic.errors import ConfigError, ServerUnreachable
from tests.schema_registry import registry

LOGIN = "schema.registry.basic.auth.user.info"


def test_a_schema_is_found_by_its_id_with_a_login() -> None:
    with registry("dbt:hunter22") as running:
        number = running.add({"type": "string"})
        client = HttpRegistry(running.url + "/", {LOGIN: "dbt:hunter22"}, "shop.yml")
        assert client.schema(number) == '{"type": "string"}'
        assert client.schema(99) is None
        assert running.requests == ["/schemas/ids/7", "/schemas/ids/99"]
        assert "hunter22" not in repr(client)
        with pytest.raises(ServerUnreachable, match="answers 401") as error:
            HttpRegistry(running.url, {LOGIN: "dbt:wrong-one"}, "shop.yml").schema(number)
        assert "wrong-one" not in str(error.value)
    with pytest.raises(ServerUnreachable, match="cannot be read"):
        client.schema(number)


@pytest.mark.parametrize("answer", [{"schemaType": "PROTOBUF"}, {"references": [{"name": "other"}]}])
def test_a_schema_that_cannot_be_used_is_an_error(answer: dict[str, Any]) -> None:
    with registry() as running:
        number = running.add({"type": "string"})
        running.schemas[number] |= answer
        with pytest.raises(ConfigError, match=f"the schema {number} of"):
            HttpRegistry(running.url, {}, "shop.yml").schema(number)


def test_an_unknown_property_is_an_error() -> None:
    with registry() as running, pytest.raises(ConfigError, match="keystore"):
        HttpRegistry(running.url, {"schema.registry.ssl.keystore.location": "x"}, "shop.yml").schema(1)
