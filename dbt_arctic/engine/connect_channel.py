"""The gRPC channel to a Spark Connect server. The only module that knows of certificates."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client import DefaultChannelBuilder

from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.errors import ProfileError


class _TrustingChannelBuilder(DefaultChannelBuilder):
    """Spark's own builder, but for the certificate authorities that it trusts."""

    def __init__(self, url: str, roots: bytes, token: str | None) -> None:
        super().__init__(url)
        self._roots = roots
        self._bearer = token

    def toChannel(self) -> Any:  # noqa: N802  # Spark's name
        import grpc

        credentials = grpc.ssl_channel_credentials(self._roots)
        if self._bearer:
            bearer = grpc.access_token_call_credentials(self._bearer)
            credentials = grpc.composite_channel_credentials(credentials, bearer)
        return self._secure_channel(self.endpoint, credentials)


def channel_builder(settings: ConnectSettings) -> DefaultChannelBuilder:
    """Raises ``ProfileError`` where the file of certificate authorities cannot be read."""
    if settings.tls_ca is None:
        # The project's own server is on this machine: a proxy of the environment has nothing to do with it.
        direct = [("grpc.enable_http_proxy", 0)] if settings.server_id else None
        return DefaultChannelBuilder(settings.url, channelOptions=direct)
    try:
        roots = settings.tls_ca.read_bytes()
    except OSError as error:
        raise ProfileError(
            "tls_ca cannot be read",
            where=f"profiles.yml, tls_ca: {settings.tls_ca}",
            why=str(error),
            fix="set it to a PEM file with the trusted certificate authorities",
        ) from error
    return _TrustingChannelBuilder(settings.url, roots, settings.token)
