"""A schema registry with Confluent's interface: the schemas with which messages were written, by HTTP."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_arctic.brokers.api import REGISTRY_PREFIX
from dbt_arctic.errors import ConfigError, ServerUnreachable

_LOGIN, _TOKEN = f"{REGISTRY_PREFIX}basic.auth.user.info", f"{REGISTRY_PREFIX}bearer.auth.token"
_AUTHORITY = f"{REGISTRY_PREFIX}ssl.truststore.location"
_KNOWN = (_LOGIN, _TOKEN, _AUTHORITY)
_TIMEOUT_S = 20
_NOT_FOUND = 404


@dataclass(frozen=True)
class HttpRegistry:
    """A schema registry.

    :param url: without a login.
    :param properties: those of the profile's ``kafka`` that begin with ``REGISTRY_PREFIX``; may be secret.
    :param where: what declares it, for errors.
    """

    url: str
    properties: Mapping[str, str] = field(repr=False)
    where: str

    def schema(self, number: int) -> str | None:
        """The schema with an id, as JSON; ``None`` if there is none.

        :raises ServerUnreachable: the registry does not answer, or refuses.
        :raises ConfigError: the schema is not one of Avro, or refers to others.
        """
        answer = self._get(f"/schemas/ids/{number}")
        if answer is None:
            return None
        kind = answer.get("schemaType", "AVRO")
        if kind != "AVRO" or answer.get("references"):
            what = "refers to other schemas" if kind == "AVRO" else f"is one of {kind}"
            raise ConfigError(
                f"the schema {number} of {self.url} {what}",
                where=self.where,
                fix="declare format: binary, and decode the messages in the model",
            )
        return str(answer["schema"])

    def _get(self, path: str) -> Mapping[str, Any] | None:
        request = urllib.request.Request(self.url.rstrip("/") + path, headers=self._headers())
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=self._tls()) as answer:
                found: Mapping[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return None
            raise self._unreachable(f"it answers {error.code} {error.reason}") from error
        except (OSError, ValueError) as error:
            raise self._unreachable(str(error)) from error

    def _headers(self) -> dict[str, str]:
        for name in self.properties:
            if name not in _KNOWN:
                raise ConfigError(
                    f"the property {name} of the schema registry is not supported",
                    where=self.where,
                    fix=f"use {', '.join(_KNOWN)}",
                )
        made = {"Accept": "application/vnd.schemaregistry.v1+json"}
        if login := self.properties.get(_LOGIN):
            made["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        elif token := self.properties.get(_TOKEN):
            made["Authorization"] = f"Bearer {token}"
        return made

    def _tls(self) -> ssl.SSLContext | None:
        authority = self.properties.get(_AUTHORITY)
        return ssl.create_default_context(cafile=authority) if authority else None

    def _unreachable(self, why: str) -> ServerUnreachable:
        return ServerUnreachable(
            f"the schema registry {self.url} cannot be read",
            where=self.where,
            why=why,
            fix=f"check registry in the source's meta.arctic, and {_LOGIN} or {_TOKEN} in kafka of the "
            "profile; run again. Nothing was written",
        )


__all__ = ["HttpRegistry"]
