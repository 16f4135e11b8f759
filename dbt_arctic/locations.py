"""Locations of tables and warehouses, which may be written in several ways."""

from __future__ import annotations

import re


def same_place(location: str) -> str:
    """A location in a form that is the same for all ways to write it.

    >>> same_place("s3a://lake/shop/"), same_place("file:///lake"), same_place("file:/lake")
    ('s3://lake/shop', '/lake', '/lake')
    """
    text = re.sub(r"^s3[an]://", "s3://", location.strip())
    return re.sub(r"^file:(//(?=/))?", "", text).rstrip("/")
