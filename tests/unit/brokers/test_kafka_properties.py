"""Properties of Kafka's Java client as settings of the client in Python."""

from __future__ import annotations

import pytest

from dbt_arctic.brokers.kafka_properties import client_settings
from dbt_arctic.errors import ConfigError

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


def test_a_login_has_the_same_meaning_for_both_clients() -> None:
    assert client_settings(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": rf'{MODULE} username="d\"bt" password='
            r"'p;\\w';",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.type": "pem",
            "ssl.keystore.location": "/client.pem",
            "ssl.key.password": "k",
            "ssl.endpoint.identification.algorithm": "",
            "request.timeout.ms": "5000",
            "max.poll.records": "100",
        },
        "shop.yml",
    ) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": 'd"bt',
        "sasl_plain_password": r"p;\w",
        "ssl_cafile": "/ca.pem",
        "ssl_certfile": "/client.pem",
        "ssl_password": "k",
        "ssl_check_hostname": False,
        "request_timeout_ms": 5000,
    }
    kerberos = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
    assert client_settings({"sasl.jaas.config": kerberos}, "") == {}


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"ssl.truststore.location": "/ca.jks"}, "ssl.truststore.type"),
        ({"ssl.keystore.location": "/ca.jks", "ssl.keystore.type": "JKS"}, "ssl.keystore.type: PEM"),
        ({"ssl.protocol": "TLSv1.3"}, "ssl.protocol"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "PLAIN, SCRAM-SHA-256"),
        ({"sasl.jaas.config": f'{MODULE} username="dbt";'}, "no password"),
        ({"request.timeout.ms": "soon"}, "milliseconds"),
    ],
)
def test_a_property_that_only_one_client_has_is_refused(properties: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        client_settings(properties, "shop.yml")
    assert told in str(error.value)
    assert error.value.where == "shop.yml"
