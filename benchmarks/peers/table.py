"""A table of the benchmark, as every peer has to lay it out. A value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """:param bucket_by: the column by which it is bucketed, where a peer has buckets; one of the key."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    buckets: int
    bucket_by: str
    version: str = "version"
    """The column that grows with each change of a key, for peers that order changes by one."""
    images: bool = False
    """Whether its changes are read together with the rows that they replaced."""

    def same_key(self, left: str, right: str) -> str:
        return " AND ".join(f"{left}.{column} = {right}.{column}" for column in self.key)
