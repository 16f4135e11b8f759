"""Side by side with everyone: ``make bench``.

    python -m benchmarks.peers --scale 5 --rounds 3 --dir /path/with/space

Each peer does the same work in a process of its own, one after the other. What it finds is compared with what
DuckDB says that it must find. What was measured before in the same folder is not measured again.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers import data, layers_data, story, tpch_data
from benchmarks.peers.about import about
from benchmarks.peers.peer import Machine
from benchmarks.peers.pictures import pictures_of, write_pictures
from benchmarks.peers.roster import PEERS, peer_class
from benchmarks.peers.run import Run, Runner
from benchmarks.peers.stored_runs import as_dict, kept_runs
from benchmarks.peers.summary import Summary, targets
from benchmarks.peers.tables import markdown
from dbt_arctic.engine.java import find_java

RESULTS = Path(__file__).parents[1] / "results"
PREPARE = {"rounds": data.prepare, "tpch": tpch_data.prepare, "layers": layers_data.prepare}
WORKLOADS = ("upserts", "growth", "pending", "tpch", "layers", "mixed")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--scale", type=float, default=1, help="million rows of a table")
    add("--peers", default=",".join(PEERS), help="in this order")
    add("--workloads", default=",".join(WORKLOADS))
    add("--rounds", type=int, default=3, help="of changes of one kind")
    add("--repeat", type=int, default=1, help="processes for each peer and workload")
    add("--growth", default="0.2,1,4", help="sizes of tables, in scales; they get scale / 50 changes a round")
    add("--commits", type=int, default=32, help="that pile up without compaction")
    add("--mixed-rounds", type=int, default=100, help="on a table of a fifth of the scale")
    add("--buckets", type=int, default=16)
    add("--cores", type=int, default=2)
    add("--memory", default="3g")
    add("--timeout", type=float, default=120, help="minutes for one process")
    add("--dir", type=Path, required=True, help="data, environments, tables; what was measured stays there")
    add("--out", type=Path, default=RESULTS, help="where tables, JSON and pictures go")
    return parser.parse_args()


def planned(given: argparse.Namespace) -> Iterator[story.Story]:
    rows = int(given.scale * 1e6)
    wanted = given.workloads.split(",")
    for workload in wanted:
        if workload == "upserts":
            yield story.upserts(rows, given.rounds)
        elif workload == "growth":
            for size in given.growth.split(","):
                yield story.growth(int(rows * float(size)), rows // 50, given.rounds)
        elif workload == "pending":
            yield story.pending(rows, given.commits)
        elif workload == "tpch":
            yield story.tpch(rows, given.rounds)
        elif workload == "layers":
            yield story.layers(rows, given.rounds)
        elif workload == "mixed":
            yield story.mixed(rows // 5, given.mixed_rounds)
        else:
            raise SystemExit(f"no such workload: {workload}; there are {', '.join(WORKLOADS)}")


def main() -> int:
    given = arguments()
    # The child is in a process group of its own: end it as an interrupt would, by what runs on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    peers = given.peers.split(",")
    if unknown := set(peers) - set(PEERS):
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    machine = Machine(given.cores, given.memory)
    folder = given.dir.resolve()
    runner = Runner(folder, machine, given.buckets, find_java().home, given.timeout * 60, _tell)
    # Of a workload that is cut off here, the next command finds in the folder what was measured of it.
    runs = kept_runs(given.out / "results.json", given.workloads.split(","))
    earlier = len(runs)
    for chosen in planned(given):
        began = time.perf_counter()
        expected = PREPARE[chosen.kind](runner.files, chosen)
        _tell(f"{chosen.name}: data made in {time.perf_counter() - began:.0f} s")
        # Peers in turn, and not one after the other with all of its repeats: what a machine does
        # meanwhile hits all of them.
        for repeat in range(given.repeat):
            for peer in peers:
                if peer not in chosen.without:
                    runs.append(runner.run(peer, chosen, repeat, expected))
                    _tell(f"  {runs[-1].failed or 'as expected'}")
                    write_results(given.out, runs, machine, given)
    summary = Summary(runs)
    for one in targets(summary):
        print(f"{one.what}: {one.measured} (wanted {one.wanted})")
    made = runs[earlier:]
    failed = [run for run in made if run.failed is not None]
    print(f"bench: {len(made)} runs, {len(failed)} not measured")
    return 1 if any(run.wrong for run in made) else 0


def write_results(folder: Path, runs: list[Run], machine: Machine, given: argparse.Namespace) -> None:
    summary = Summary(runs)
    titles = {peer: peer_class(peer).title for peer in summary.peers}
    known = about(runs, machine, given.buckets)
    text = markdown(summary, known, titles)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(text, encoding="utf-8")
    (folder / "results.json").write_text(json.dumps(as_json(summary, known), indent=1), encoding="utf-8")
    write_pictures(folder, pictures_of(summary, titles), text)


def as_json(summary: Summary, known: dict[str, str]) -> dict[str, Any]:
    return {
        "about": known,
        "targets": [asdict(one) for one in targets(summary)],
        "runs": [as_dict(run) for run in summary.runs],
    }


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
