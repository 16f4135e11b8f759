"""Parses the setting ``auto`` of an automatic model: strictness, accepted deviations, ties, verification."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Literal

from dbt_arctic.errors import ConfigError

ACCEPTABLE = ("float_sum", "ties", "order_dependent", "approximate")
"""Deviations from a full refresh that a user may accept for an automatic model."""

MOST_KEYS = 200
"""The most keys of a sample. Iceberg skips files by a list of at most 200 values."""

_VERIFY = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|keys?)?(?:\s+every\s+(?P<every>\d+))?")


@dataclass(frozen=True)
class Sampling:
    """The sample of keys that is recomputed after a refresh.

    :param share: the share of the stored rows; ``None`` if the number of keys is fixed.
    :param keys: the number of keys; ``None`` if it follows from the share.
    :param every: the number of incremental refreshes from one verification to the next.
    """

    share: float | None = None
    keys: int | None = None
    every: int = 1

    def size(self, rows: int | None) -> int:
        """The number of keys to verify, for a table of this many rows.

        >>> Sampling(share=0.001).size(5_000), Sampling(share=0.001).size(9), Sampling(share=0.5).size(None)
        (5, 2, 200)
        """
        if self.keys is not None:
            return self.keys
        wanted = MOST_KEYS if rows is None else ceil(rows * (self.share or 0))
        # One key that the refresh has written, and one that it has not.
        return max(2, min(wanted, MOST_KEYS))


@dataclass(frozen=True)
class AutoConfig:
    """The value of the setting ``auto``."""

    strict: Literal["strict"] | None = None
    accept: frozenset[str] = frozenset()
    ties: Literal["by_key"] | None = None
    verify: Sampling | None = None


def parse_auto(model: str, value: object) -> AutoConfig:
    """Parse ``auto: strict``, or a mapping with ``strict``, ``accept``, ``ties`` and ``verify``.

    :raises ConfigError: the value is something else.
    """
    if value is None or value == "strict":
        return AutoConfig(strict="strict" if value else None)
    if isinstance(value, Mapping) and set(value) <= {"strict", "accept", "ties", "verify"}:
        strict, accept, ties = value.get("strict"), value.get("accept"), value.get("ties")
        accept = [] if accept is None else accept
        known = isinstance(accept, list) and all(one in ACCEPTABLE for one in accept)
        if known and (strict is None or isinstance(strict, bool)) and ties in (None, "by_key"):
            return AutoConfig(
                "strict" if strict else None,
                frozenset(accept),
                "by_key" if ties else None,
                parse_sampling(model, value.get("verify")),
            )
    raise ConfigError(
        f"auto is {value!r}",
        where=model,
        fix=f"auto='strict', or a mapping: strict: true, ties: 'by_key', accept: [{', '.join(ACCEPTABLE)}], "
        "verify: '0.1%'",
    )


def parse_sampling(model: str, value: object) -> Sampling | None:
    """Parse ``verify``: a share, a number of keys, or one of these with ``every`` and a number.

    >>> parse_sampling("m", "0.1% every 10"), parse_sampling("m", 50), parse_sampling("m", None)
    (Sampling(share=0.001, keys=None, every=10), Sampling(share=None, keys=50, every=1), None)

    :raises ConfigError: the value is something else.
    """
    if value is None or value is False:
        return None
    found = None if isinstance(value, bool) else _VERIFY.fullmatch(str(value).strip())
    if found is not None:
        number, every = float(found["number"]), int(found["every"] or 1)
        if found["unit"] == "%" and 0 < number <= 100 and every >= 1:
            return Sampling(share=number / 100, every=every)
        if found["unit"] != "%" and number.is_integer() and 2 <= number <= MOST_KEYS and every >= 1:
            return Sampling(keys=int(number), every=every)
    raise ConfigError(
        f"verify is {value!r}",
        where=model,
        why=f"it is a share of the rows, or a number of keys from 2 to {MOST_KEYS}; and optionally every "
        "how many incremental refreshes",
        fix="for instance verify: '0.1%', verify: 50, or verify: '0.1% every 10'",
    )


__all__ = ["ACCEPTABLE", "MOST_KEYS", "AutoConfig", "Sampling", "parse_auto"]
