"""The list of peers. A peer's module is imported only if it is selected: ours needs dbt_arctic."""

from __future__ import annotations

import importlib

from benchmarks.peers.peer import Peer

PEERS = {
    "arctic": "benchmarks.peers.arctic:Arctic",
    "iceberg-cow": "benchmarks.peers.iceberg:CopyOnWrite",
    "iceberg-dv": "benchmarks.peers.iceberg:DeletionVectors",
    "delta": "benchmarks.peers.delta:Delta",
    "hudi": "benchmarks.peers.hudi:Hudi",
    "paimon": "benchmarks.peers.paimon:Paimon",
    "paimon-dv": "benchmarks.peers.paimon:PaimonVectors",
    "rebuild": "benchmarks.peers.rebuild:Rebuild",
}


def peer_class(name: str) -> type[Peer]:
    module, _, member = PEERS[name].partition(":")
    found: type[Peer] = getattr(importlib.import_module(module), member)
    return found
