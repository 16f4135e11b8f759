"""Lands rounds of the change feed as files, as an ingestion tool would.

The files are ``<landing>/<table>/round_<number>.parquet``. A file appears under its name when it is complete.
Until then, its name begins with a dot, so readers ignore it. Landing a round twice has no effect.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq

from feed.tables import TABLES
from feed.write import feed_file


class LandingFailed(Exception):
    """The feed cannot be landed; the text says why."""


class Landing(Protocol):
    """Where the warehouse finds the change feed, round by round."""

    def start_over(self) -> None:
        """Remove everything that has landed."""

    def land_round(self, number: int) -> int:
        """Land one round of every table's feed; returns how many rows were landed."""

    def last_round(self) -> int:
        """The newest round that has landed; -1 before the initial load."""


class LandingFolder:
    """A folder with a subfolder for each table.

    :param feed: the folder with the feed's files.
    """

    def __init__(self, feed: Path, folder: Path) -> None:
        self.folder = folder
        self._feed = feed

    def start_over(self) -> None:
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def land_round(self, number: int) -> int:
        landed = 0
        for table in TABLES:
            source = feed_file(self._feed, table.name, number)
            target = feed_file(self.folder, table.name, number)
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            incomplete = target.with_name(f".{target.name}")
            shutil.copyfile(source, incomplete)
            os.replace(incomplete, target)
            landed += pq.read_metadata(target).num_rows
        return landed

    def last_round(self) -> int:
        landed = (self.folder / TABLES[-1].name).glob("round_*.parquet")
        return max((int(path.stem.removeprefix("round_")) for path in landed), default=-1)
