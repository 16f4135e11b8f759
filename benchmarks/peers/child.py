"""The process of one peer: ``python -m benchmarks.peers.child ORDER``. Standard library and pyspark only."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from benchmarks.peers.files import Files
from benchmarks.peers.layers_run import LayersRun
from benchmarks.peers.meter import Meter
from benchmarks.peers.order import WorkOrder
from benchmarks.peers.peer import Peer
from benchmarks.peers.report import Reporter, first_line
from benchmarks.peers.roster import peer_class
from benchmarks.peers.rounds import Rounds, orders, warm_up
from benchmarks.peers.tpch_run import Tpch


def work(order: WorkOrder, report: Reporter) -> None:
    peer = peer_class(order.peer)(order.folder, order.machine)
    peer.open()
    report.versions(versions(peer))
    files, meter = Files(order.data), Meter(peer.pid)
    warm_up(peer, files, order.buckets)
    story = order.story
    if story.kind == "tpch":
        Tpch(peer, story, order.buckets, files, meter, report, log_progress).run()
    elif story.kind == "layers":
        LayersRun(peer, story, order.buckets, files, meter, report, log_progress).run()
    else:
        Rounds(peer, story, orders("orders", order.buckets), files, meter, report, log_progress).run()


def versions(peer: Peer) -> dict[str, str]:
    found = {"spark": peer.spark.version, "java": java_version(peer)}
    for package in peer.packages:
        _, artifact, version = package.split(":")
        found[artifact] = version
    return found


def java_version(peer: Peer) -> str:
    return str(peer.spark._jvm.java.lang.System.getProperty("java.version"))


def log_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    order = WorkOrder.from_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    report = Reporter(order.results)
    try:
        work(order, report)
    except Exception as error:  # whatever a product throws is what it is reported with
        traceback.print_exc()
        report.error(first_line(f"{type(error).__name__}: {error}"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
