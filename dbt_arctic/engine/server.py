"""The project's own server: an embedded Spark Connect server that keeps running, so that runs start warm.

A server belongs to one project folder and to exactly the settings with which it was started. It is described
by a file in the user's state folder that only the user can read, since it contains the server's token.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dbt_arctic import secret
from dbt_arctic.engine.connect_settings import SERVER_ID_KEY, ConnectSettings
from dbt_arctic.engine.jars import fetching
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.launch import launch_conf, python_of_workers
from dbt_arctic.engine.private_file import blank_secrets, write_private, write_properties
from dbt_arctic.engine.settings import SparkSettings, session_conf
from dbt_arctic.engine.start_notices import starting
from dbt_arctic.engine.startup import start_error
from dbt_arctic.engine.warehouse import prepare_warehouses
from dbt_arctic.errors import ServerError

START_TIMEOUT_S = 600
"""The first start on a machine downloads the jars."""

STOP_TIMEOUT_S = 20
_MAIN_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_POLL_S = 0.1


@dataclass(frozen=True)
class Server:
    """A server as described by its file. ``started_at`` is in seconds since the epoch."""

    project: str
    pid: int
    port: int
    id: str
    token: str = field(repr=False)
    fingerprint: str
    warehouse: str
    master: str
    driver_memory: str
    log: str
    started_at: float

    def __post_init__(self) -> None:
        secret.remember({"token": self.token})

    def is_alive(self) -> bool:
        """Whether its process is running: one with its process id, and the server id in its command line."""
        return _process_exists(self.pid) and self.id in _command_line(self.pid)

    def connect_settings(self, settings: SparkSettings) -> ConnectSettings:
        """The settings for its sessions. No conf is needed, because the server has the same settings."""
        return ConnectSettings(
            # Spark's client sends a token without TLS only to this name.
            host="localhost",
            port=self.port,
            token=self.token,
            catalog=settings.catalog,
            server_id=self.id,
        )


class _Detached(subprocess.Popen[bytes]):
    """A process that is meant to outlive this one, without a warning that it is still running."""

    def __del__(self) -> None:
        self.returncode = self.returncode if self.returncode is not None else 0


def fingerprint(settings: SparkSettings) -> str:
    """A hash that distinguishes servers with different settings or versions."""
    conf = {key: value for key, value in session_conf(settings).items() if key != "spark.app.name"}
    identity = [
        sorted(conf.items()),
        settings.java_home,
        importlib.metadata.version("pyspark"),
        sys.executable,
    ]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def read_server(project: Path) -> Server | None:
    """The server of a project folder, running or not; ``None`` if none was started or it was stopped."""
    path = _state_file(project)
    try:
        if path.stat().st_uid != os.getuid():
            return None  # another user put it there
        return Server(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None  # a file of a different version


def usable_server(project: Path, settings: SparkSettings) -> Server | None:
    """The project's server if it is running with exactly these settings."""
    server = read_server(project)
    if server is None or server.fingerprint != fingerprint(settings) or not server.is_alive():
        return None
    return server


def start_server(project: Path, settings: SparkSettings) -> Server:
    """Start the project's server and wait until it responds. A running one with these settings is kept.

    Raises ``ServerError`` if one is running with other settings, and the errors of starting a Spark.
    """
    with _locked(_state_file(project).with_suffix(".lock")):
        running = read_server(project)
        if running is not None and running.is_alive():
            if running.fingerprint == fingerprint(settings):
                return running
            raise ServerError(
                "The project's server runs with other settings.",
                where=f"{project}; warehouse {running.warehouse}, process {running.pid}",
                why="A server keeps the settings of the target with which it was started.",
                fix="dbt-arctic server stop, then dbt-arctic server start",
            )
        prepare_warehouses(settings)
        server = _started(project, settings, _state_folder())
        try:
            write_private(_state_file(project), json.dumps(asdict(server)))
        except BaseException:
            _end(server)  # it could not be found again
            raise
        return server


def stop_server(project: Path) -> Server | None:
    """Stop the project's server; ``None`` if none is running. Its running statements fail."""
    with _locked(_state_file(project).with_suffix(".lock")):
        server = read_server(project)
        if server is None:
            return None
        was_alive = server.is_alive()
        if was_alive:
            _end(server)
        _state_file(project).unlink(missing_ok=True)
        Path(server.log).unlink(missing_ok=True)
        return server if was_alive else None


def _started(project: Path, settings: SparkSettings, folder: Path) -> Server:
    from pyspark.find_spark_home import _find_spark_home

    java = find_java(settings.java_home)
    wanted = session_conf(settings)
    server_id = f"dbt-arctic-server-{secrets.token_hex(8)}"
    token = secrets.token_hex(32)
    port = _free_port()
    log = folder / f"{server_id}.log"
    conf_file = folder / f"{server_id}.conf"
    conf = wanted | {
        "spark.app.name": server_id,
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
        SERVER_ID_KEY: server_id,
    }
    write_properties(conf_file, launch_conf(conf, settings, java))
    environment = {
        **os.environ,
        "JAVA_HOME": java.home,
        "PYSPARK_PYTHON": python_of_workers(wanted),
    }
    submit = Path(_find_spark_home(), "bin", "spark-submit")  # type: ignore[no-untyped-call] # pyspark's
    command = [str(submit), "--name", server_id, "--properties-file", str(conf_file), "--class", _MAIN_CLASS]
    process = None
    try:
        with (
            starting(wanted, f"Java {java.version}"),
            fetching(wanted),
            log.open("wb") as output,
        ):
            process = _Detached(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # a Ctrl-C in the terminal must not stop it
            )
            answered = _wait_for(process, port)
            if not answered:
                process.kill()
                process.wait()
    except BaseException:  # in particular Ctrl-C, which does not reach the process
        if process is not None:
            process.kill()
            process.wait()
        raise
    finally:
        conf_file.unlink(missing_ok=True)
        blank_secrets(log)
    if not answered:
        raise start_error(log.read_text(errors="replace"), str(log), settings, f"Java {java.version}")
    return Server(
        project=str(project),
        pid=process.pid,
        port=port,
        id=server_id,
        token=token,
        fingerprint=fingerprint(settings),
        warehouse=settings.warehouse,
        master=settings.master,
        driver_memory=settings.driver_memory,
        log=str(log),
        started_at=time.time(),
    )


def _wait_for(process: subprocess.Popen[bytes], port: int) -> bool:
    """Whether the process started to listen before it ended or the timeout was over."""
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        time.sleep(_POLL_S)
    return False


def _end(server: Server) -> None:
    _signal(server.pid, signal.SIGTERM)
    until = time.monotonic() + STOP_TIMEOUT_S
    while server.is_alive():
        if time.monotonic() > until:
            _signal(server.pid, signal.SIGKILL)
        _reap(server.pid)
        time.sleep(_POLL_S)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended since the check
        os.kill(pid, number)


def _process_exists(pid: int) -> bool:
    _reap(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process has this process id now
        return False
    return True


def _command_line(pid: int) -> str:
    listed = Path(f"/proc/{pid}/cmdline")
    if listed.exists():
        return listed.read_text(errors="replace")
    shown = ["ps", "-ww", "-p", str(pid), "-o", "command="]
    return subprocess.run(shown, capture_output=True, text=True, check=False).stdout


def _reap(pid: int) -> None:
    """Reap a server that this process has started and that has ended.

    Otherwise it would remain as a zombie.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _state_folder() -> Path:
    root = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(root, "dbt-arctic", "servers")


def _state_file(project: Path) -> Path:
    name = hashlib.sha256(str(project.resolve()).encode()).hexdigest()[:16]
    return _state_folder() / f"{name}.json"


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Allow only one start or stop of a project's server at a time."""
    import fcntl

    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
