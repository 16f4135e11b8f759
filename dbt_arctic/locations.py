"""Locations of tables and warehouses, which may be written in several ways."""

from __future__ import annotations

import re


def canonical_location(location: str) -> str:
    """A location in a form that is the same for all ways to write it.

    >>> [canonical_location(one) for one in ("s3a://lake/shop/", "file:///lake", "file:/lake")]
    ['s3://lake/shop', '/lake', '/lake']
    """
    text = re.sub(r"^s3[an]://", "s3://", location.strip())
    return re.sub(r"^file:(//(?=/))?", "", text).rstrip("/")
