"""What one process is to do: one peer, one story. A value that goes through a file of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.peers.peer import Machine
from benchmarks.peers.story import Story


@dataclass(frozen=True)
class WorkOrder:
    """:param folder: where the peer keeps its tables; it is empty.
    :param data: where the files lie that all peers read.
    :param results: the file to which the process writes its lines.
    """

    peer: str
    story: Story
    folder: Path
    data: Path
    results: Path
    machine: Machine
    buckets: int

    def to_json(self) -> str:
        return json.dumps(
            {
                "peer": self.peer,
                "story": self.story.as_dict(),
                "folder": str(self.folder),
                "data": str(self.data),
                "results": str(self.results),
                "machine": asdict(self.machine),
                "buckets": self.buckets,
            }
        )

    @staticmethod
    def from_json(text: str) -> WorkOrder:
        told = json.loads(text)
        return WorkOrder(
            told["peer"],
            Story.from_dict(told["story"]),
            Path(told["folder"]),
            Path(told["data"]),
            Path(told["results"]),
            Machine(**told["machine"]),
            told["buckets"],
        )
