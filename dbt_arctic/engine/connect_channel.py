"""The gRPC channel to a Spark Connect server, with its certificates."""

from __future__ import annotations

from typing import Any

from pyspark.sql.connect.client import DefaultChannelBuilder

from dbt_arctic.engine.connect_settings import ConnectSettings
from dbt_arctic.errors import ProfileError


class _TrustingChannelBuilder(DefaultChannelBuilder):
    """Spark's channel builder with configurable certificate authorities."""

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
    """Create the channel builder. Raises ``ProfileError`` if the certificate file cannot be read."""
    if settings.tls_ca is None:
        # The project's own server runs on this machine, so no proxy is used.
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
