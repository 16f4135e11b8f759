"""Finds secret settings and removes their values from text.

Errors quote messages of Java, a catalog or the network, and any of them may contain a password. The process
therefore records the value of each secret setting, and every error removes it from its text. This module
does not depend on its callers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "*****"

_SECRET = (
    r"password|passwd|passphrase|secret|token|credential|private[-_.]?key|access[-_.]?key|api[-_.]?key"
    r"|account[-_.]key|user[-_.]info|sas[-_.]|jaas|authorization|cookie|\bx[-_]auth"
    # The names of HTTP headers are free, and gateways have their own.
    r"|\bheader\..*(pass|pwd|auth|key|sign|session)"
)
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
REDACTED_BY_SPARK = rf"(?i)secret|password|token|access[.]?key|credential|^spark\..*({_SECRET})"
"""The names of settings whose values Spark hides: as by default, and each secret among its own settings.

Spark applies the pattern to properties of tables as well, which are no secrets and have to be read.
"""
_NOT_A_SECRET = re.compile(r"(?i)true|false|none|null|\S{0,3}")
# Names that precede a secret in an address or a list of options.
_USER_OF_A_URL = re.compile(r"(?<=://)([^/\s:@'\"]*):([^/\s@'\"]+)@")
_PARAMETER = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|pwd|secret|token|access_?key)[\w.-]*=)([^\s&;,'\")\]}]+)"
)

_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret.

    >>> is_secret("spark.hadoop.fs.s3a.secret.key"), is_secret("header.Cookie"), is_secret("header.X-Auth")
    (True, True, True)
    >>> is_secret("header.X-Gateway-Pass"), is_secret("header.X-Iceberg-Access-Delegation")
    (True, False)
    >>> is_secret("jdbc.user"), is_secret("max_authors")
    (False, False)
    """
    return _SECRET_NAME.search(name) is not None


def remember(settings: Mapping[str, object]) -> None:
    """Record the secrets among these settings, so that every later error omits them."""
    for name, value in settings.items():
        text = str(value)
        if is_secret(name):
            _remember(text)
            # OAuth uses `id:secret`, and a server may quote the second part alone.
            _remember(text.partition(":")[2])
        for found in _USER_OF_A_URL.finditer(text):
            _remember(found[2])
        for found in _PARAMETER.finditer(text):
            _remember(found[2])


def without_secrets(text: str) -> str:
    """The text with stars in place of every recorded secret and every value in a secret's position.

    >>> without_secrets("jdbc:postgresql://me:hunter2@host/db?password=hunter2&ssl=true")
    'jdbc:postgresql://me:*****@host/db?password=*****&ssl=true'
    """
    # The longest first, because one secret may be a prefix of another.
    for known in sorted(_known, key=len, reverse=True):
        text = text.replace(known, HIDDEN)
    text = _USER_OF_A_URL.sub(rf"\1:{HIDDEN}@", text)
    return _PARAMETER.sub(rf"\1{HIDDEN}", text)


def blanked(text: bytes) -> bytes:
    """The text with each recorded secret overwritten by as many stars, so that offsets stay valid."""
    for known in sorted(_known, key=len, reverse=True):
        text = text.replace(known.encode(), b"*" * len(known.encode()))
    return text


def masked(name: str, value: str | None) -> str:
    """A setting's value for display."""
    return HIDDEN if value and is_secret(name) else without_secrets(str(value))


def _remember(value: str) -> None:
    if _NOT_A_SECRET.fullmatch(value) is None:
        _known.update({value, quote(value, safe=""), quote_plus(value)})
