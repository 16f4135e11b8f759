"""A standalone cluster of Spark: a master and two workers, as processes of this machine on loopback."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dbt_arctic.engine.java import find_java
from tests.matrix.components import (
    WAIT_S,
    Component,
    NotRun,
    direct,
    free_port,
    listens,
    process,
)

CORES_OF_A_WORKER = 2
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@dataclass
class Cluster:
    """A cluster that runs, with its workers in the order in which they were started."""

    component: Component
    folder: Path
    environ: Mapping[str, str]
    status: str
    """The address of the master's page."""
    stack: contextlib.ExitStack
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def add_worker(self) -> None:
        """Start a worker, and wait until the master knows it."""
        number, known = len(self.workers), self.living()
        work = self.folder / f"work-{number}"
        command: list[str | Path] = [
            *(_spark_class(), _WORKER, "--host", "127.0.0.1", "--webui-port", "0", "--work-dir", work),
            *("--cores", str(CORES_OF_A_WORKER), "--memory", "1g", self.component.address),
        ]
        started = process(
            f"worker-{number}",
            command,
            self.folder,
            lambda: self.living() > known,
            env=self.environ,
        )
        self.workers.append(self.stack.enter_context(started))

    def living(self) -> int:
        """The number of workers that the master knows."""
        with direct().open(f"{self.status}/json/") as answer:
            found: dict[str, Any] = json.load(answer)
        return int(found["aliveworkers"])

    def pause(self, worker: int) -> None:
        """Stop the executors of a worker in the middle of whatever they do. The driver does not notice."""
        for pid in _children(self.workers[worker].pid):
            os.kill(pid, signal.SIGSTOP)

    def kill(self, worker: int) -> None:
        """Kill a worker with its executors, and wait until the master knows it."""
        known = self.living()
        os.killpg(self.workers[worker].pid, signal.SIGKILL)
        self.workers[worker].wait()
        ends = time.monotonic() + WAIT_S
        while self.living() >= known:
            if time.monotonic() > ends:
                raise NotRun("the master has not noticed that a worker is gone")
            time.sleep(0.1)


@contextlib.contextmanager
def standalone(folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A master and two workers.

    :param environ: variables that the executors get in addition.
    """
    port, page = free_port(), free_port()
    # Spark binds its pages to this address; by default they would be open to the network.
    variables = {
        **os.environ,
        "JAVA_HOME": find_java(None).home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        **(environ or {}),
    }
    status = f"http://127.0.0.1:{page}"
    command: list[str | Path] = [
        *(_spark_class(), _MASTER, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(page)),
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            process("master", command, folder, lambda: listens(port) and _shows(status), env=variables)
        )
        address = f"spark://127.0.0.1:{port}"
        version = importlib.metadata.version("pyspark")
        component = Component(f"standalone cluster of Spark {version}, two workers", address)
        cluster = Cluster(component, folder, variables, status, stack)
        cluster.add_worker()
        cluster.add_worker()
        yield cluster


def _shows(status: str) -> bool:
    """Whether the page of the master has its contents. It listens a moment before."""
    try:
        with direct().open(f"{status}/json/"):
            return True
    except OSError:  # also for a status of HTTP
        return False


def _spark_class() -> str:
    import pyspark

    return str(Path(str(pyspark.__file__)).parent / "bin" / "spark-class")


def _children(pid: int) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(line) for line in listed.split()]
