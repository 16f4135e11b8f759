"""Secrets of the settings: which values are secret, and text with them left out.

Errors quote what Java, a catalog or the network said, and any of them may quote a password. So each value
that a secret setting gives to this process is remembered, and every error leaves it out of its text. Knows
nothing of who asks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "*****"

_SECRET_NAME = re.compile(
    r"password|passwd|passphrase|secret|token|credential|private[-_.]?key|access[-_.]?key|api[-_.]?key"
    r"|account[-_.]key|sas[-_.]|jaas|authorization",
    re.IGNORECASE,
)
_NOT_A_SECRET = re.compile(r"(?i)true|false|none|null|\S{0,3}")
# Where an address or a list of options says that a secret follows.
_USER_OF_A_URL = re.compile(r"(?<=://)([^/\s:@'\"]*):([^/\s@'\"]+)@")
_PARAMETER = re.compile(
    r"(?i)\b([\w.-]*(?:password|passwd|pwd|secret|token|access_?key)[\w.-]*=)([^\s&;,'\")\]}]+)"
)

_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret.

    >>> is_secret("spark.hadoop.fs.s3a.secret.key"), is_secret("jdbc.user")
    (True, False)
    """
    return _SECRET_NAME.search(name) is not None


def remember(settings: Mapping[str, object]) -> None:
    """From now on the secrets among these settings are left out of every error."""
    for name, value in settings.items():
        text = str(value)
        if is_secret(name):
            _remember(text)
            # OAuth's `id:secret`: a server may quote the second part alone.
            _remember(text.partition(":")[2])
        for found in _USER_OF_A_URL.finditer(text):
            _remember(found[2])
        for found in _PARAMETER.finditer(text):
            _remember(found[2])


def without_secrets(text: str) -> str:
    """The text with every secret that is known, or that stands where secrets stand, replaced.

    >>> without_secrets("jdbc:postgresql://me:hunter2@host/db?password=hunter2&ssl=true")
    'jdbc:postgresql://me:*****@host/db?password=*****&ssl=true'
    """
    # The longest first: one secret may begin another.
    for known in sorted(_known, key=len, reverse=True):
        text = text.replace(known, HIDDEN)
    text = _USER_OF_A_URL.sub(rf"\1:{HIDDEN}@", text)
    return _PARAMETER.sub(rf"\1{HIDDEN}", text)


def blanked(text: bytes) -> bytes:
    """The text with each known secret overwritten by as many stars, so that nothing moves."""
    for known in sorted(_known, key=len, reverse=True):
        text = text.replace(known.encode(), b"*" * len(known.encode()))
    return text


def shown(name: str, value: str | None) -> str:
    """A setting's value for people."""
    return HIDDEN if value and is_secret(name) else without_secrets(str(value))


def _remember(value: str) -> None:
    if _NOT_A_SECRET.fullmatch(value) is None:
        _known.update({value, quote(value, safe=""), quote_plus(value)})
