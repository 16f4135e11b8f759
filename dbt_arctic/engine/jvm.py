"""The Spark of this process: started on first use, shared by every engine, replaced if it dies.

Its output goes to a separate file, which keeps the user's terminal clean and helps to explain failures.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from dbt_arctic.engine.api import Traffic
from dbt_arctic.engine.jars import fetching
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.jdbc_driver import CLASS_PATH
from dbt_arctic.engine.launch import launch_conf, python_of_workers
from dbt_arctic.engine.local_hadoop import needs_defaults, prepare_files, unset_defaults
from dbt_arctic.engine.private_file import blank_secrets, write_properties
from dbt_arctic.engine.pyspark_output import silence_pyspark
from dbt_arctic.engine.settings import (
    ICEBERG_CATALOG,
    ICEBERG_EXTENSIONS,
    SparkSettings,
    session_conf,
)
from dbt_arctic.engine.start_notices import starting
from dbt_arctic.engine.startup import log_tail, start_error
from dbt_arctic.engine.traffic import traffic_of
from dbt_arctic.engine.warehouse import prepare_warehouses
from dbt_arctic.errors import SparkStartError
from dbt_arctic.secret import masked

_LISTENERS_MS = 10_000

_lock = threading.RLock()
_running: SparkProcess | None = None


class SparkProcess:
    """A running Spark. ``conf`` is the conf at its start; ``log_path`` is its log."""

    def __init__(self, root: Any, conf: dict[str, str], folder: Path | None) -> None:
        self.root = root
        self.conf = conf
        self.folder = folder

    @property
    def context(self) -> Any:
        """The Java SparkContext."""
        return self.root.sparkContext

    # py4j resolves a class by trying each part of its name as a class of each imported package, in each jar.

    @cached_property
    def skip_commands(self) -> Any:
        """The mode in which a plan is analysed without running its commands."""
        return self.context._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()

    @cached_property
    def _sql_conf(self) -> Any:
        return self.context._jvm.org.apache.spark.sql.internal.SQLConf

    # Each call of a method is a request to the JVM, so objects that do not change are kept.

    @cached_property
    def _java_context(self) -> Any:
        return self.context._jsc.sc()

    @cached_property
    def _listeners(self) -> Any:
        return self._java_context.listenerBus()

    @cached_property
    def _jobs(self) -> Any:
        return self.context._jsc.statusTracker()

    @cached_property
    def _arrays(self) -> Any:
        return self.context._jvm.java.util.Arrays

    @property
    def is_ours(self) -> bool:
        """Whether this module started it. A notebook may have started its own Spark before."""
        return self.folder is not None

    def is_alive(self) -> bool:
        """Whether the JVM is running and its context has not been stopped."""
        context = self.context
        gateway_process = getattr(context._gateway, "proc", None) if context._gateway else None
        if gateway_process is not None and gateway_process.poll() is not None:
            return False
        return context._jsc is not None and not self._is_stopped()

    def _is_stopped(self) -> bool:
        try:
            return bool(self._java_context.isStopped())
        except Exception:  # the connection to the JVM is lost, for which py4j raises various errors
            return True

    def cancel_jobs(self, group: str) -> None:
        """Stop the jobs of a job group, including those that its statement has not started yet."""
        self._java_context.cancelJobGroupAndFutureJobs(group)

    def job_count(self, group: str) -> int | None:
        """The number of jobs of a group; ``None`` if Spark is too busy to answer."""
        if not self.is_alive():
            return 0
        if not self._has_counted():
            return None
        return len(self._jobs.getJobIdsForGroup(group))

    def _has_counted(self) -> bool:
        """Wait for Spark's listeners, which count jobs. The results of statements do not depend on them."""
        from py4j.protocol import Py4JJavaError

        try:
            self._listeners.waitUntilEmpty(_LISTENERS_MS)
        except Py4JJavaError as error:
            if "TimeoutException" not in str(error.java_exception):
                raise
            return False
        return True

    def traffic(self, groups: Sequence[str]) -> Traffic | None:
        """The bytes that the statements of some groups read and wrote; see ``traffic.py``.

        ``None`` if Spark is too busy to answer, or has removed what it knew of them.
        """
        from py4j.protocol import Py4JJavaError

        if not self.is_alive() or not self._has_counted():
            return None
        # Reading a Java array takes three requests for each element.
        listed = (self._arrays.toString(self._jobs.getJobIdsForGroup(group)) for group in groups)
        jobs = {int(job) for ids in listed for job in ids.strip("[]").split(", ") if job}
        try:
            return traffic_of(self.root._jsparkSession.sharedState().statusStore(), jobs)
        except Py4JJavaError as error:
            if "NoSuchElementException" not in str(error.java_exception):
                raise
            return None

    def close_catalog(self, session: Any, name: str) -> None:
        """Close open resources of a session's catalog (database connections), if it was used."""
        from py4j.java_gateway import is_instance_of

        gateway = self.context._gateway
        manager = session._jsparkSession.sessionState().catalogManager()
        if not manager.listCatalogs(gateway.jvm.scala.Option.empty()).contains(name):
            return
        catalog = manager.catalog(name)
        if is_instance_of(gateway, catalog, "org.apache.iceberg.spark.source.HasIcebergCatalog"):
            held = catalog.icebergCatalog()
            if is_instance_of(gateway, held, "java.io.Closeable"):
                held.close()

    def log_tail(self) -> str:
        """The end of the log."""
        return log_tail(_read(self.folder / "spark.log")) if self.folder else ""

    def new_session(self, settings: SparkSettings) -> Any:
        """A new session with exactly these settings, regardless of those at the start of the process.

        Raises ``SparkStartError`` if a setting differs that only a new process can change.
        """
        wanted = session_conf(settings, with_driver=self.is_ours)
        fixed: list[str] = []
        session = self.root.newSession()
        runtime_conf = session.conf
        for key in sorted(wanted.keys() | self.conf.keys() if self.is_ours else wanted.keys()):
            old, new = self.conf.get(key), wanted.get(key)
            if old == new:
                continue
            if key.startswith("spark.sql.") and not self._sql_conf.isStaticConfigKey(key):
                if new is None:
                    runtime_conf.unset(key)
                else:
                    runtime_conf.set(key, new)
            elif self.is_ours and not _makes_no_difference(key, old, new):
                fixed.append(f"{key}: {masked(key, old)} is running, {masked(key, new)} is wanted")
        if fixed:
            raise SparkStartError(
                "This process already runs Spark with other settings.",
                where="; ".join(fixed),
                why="Master, memory and jars are fixed when Spark starts, and a process has one Spark.",
                fix="use the same values in both profiles, or run them in two processes",
            )
        return session


def started_spark(settings: SparkSettings) -> SparkProcess:
    """The Spark of this process. It is started with these settings if there is none yet."""
    global _running
    with _lock:
        if _running is not None and not _running.is_alive():
            _forget()
        prepare_warehouses(settings)
        if _running is None:
            _running = _adopted() or _started(settings)
        return _running


def stop(wait_s: float = 0) -> None:
    """Stop the Spark of this process if this module started it. Open connections then fail.

    :param wait_s: seconds to wait for the end of the JVM.
    """
    global _running
    with _lock:
        if _running is None:
            return
        java = getattr(_running.context._gateway, "proc", None)
        if _running.is_ours and _running.is_alive():
            _running.root.stop()
        _forget()
        if java is not None and wait_s:
            java.wait(wait_s)


def _started(settings: SparkSettings) -> SparkProcess:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    silence_pyspark()
    java = find_java(settings.java_home)
    described = f"Java {java.version} at {java.home}"
    wanted = session_conf(settings)
    folder = Path(tempfile.mkdtemp(prefix="dbt-arctic-"))
    log_path = folder / "spark.log"
    full = {"spark.sql.warehouse.dir": str(folder / "spark-warehouse")} | wanted
    # Only the settings that the launcher needs are written; the rest is passed inside the JVM.
    at_launch = {
        key: value
        for key, value in launch_conf(full, settings, java).items()
        if not key.startswith(("spark.sql.", "spark.hadoop."))
    }
    launch_file = folder / "launch.conf"
    write_properties(launch_file, at_launch)
    try:
        with (
            starting(wanted, f"Java {java.version}"),
            fetching(wanted),
            log_path.open("wb") as log,
            _environment(
                JAVA_HOME=java.home,
                PYSPARK_PYTHON=python_of_workers(wanted),
                PYSPARK_SUBMIT_ARGS=_submit_arguments(launch_file),
            ),
        ):
            outputs = {"stdout": log, "stderr": log}
            gateway = launch_gateway(None, outputs)  # type: ignore[no-untyped-call] # pyspark's
            context = SparkContext(conf=_conf(SparkConf, full), gateway=gateway)
        blank_secrets(log_path)
        root = SparkSession.builder.getOrCreate()
        if context._jsc.isLocal():
            prepare_files(context)
            if not needs_defaults(settings, os.environ):
                unset_defaults(context)
    except PySparkRuntimeError as error:
        _forget()
        blank_secrets(log_path)
        raise start_error(_read(log_path), str(log_path), settings, described) from error
    except Exception as error:
        _forget()
        blank_secrets(log_path)
        raise start_error(f"{_read(log_path)}\n{error}", str(log_path), settings, described) from error
    finally:
        launch_file.unlink()
    assert root.sparkContext is context
    # Kept if Spark did not start, because the error refers to it.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return SparkProcess(root, wanted, folder)


def _adopted() -> SparkProcess | None:
    """A Spark that other code started in this process, if it supports Iceberg tables."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None or SparkContext._jvm is None:
        return None
    root = SparkSession.builder.getOrCreate()
    conf = dict(root.sparkContext.getConf().getAll())
    lacking = []
    if ICEBERG_EXTENSIONS not in conf.get("spark.sql.extensions", ""):
        lacking.append(f"spark.sql.extensions={ICEBERG_EXTENSIONS}")
    try:
        SparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(ICEBERG_CATALOG)
    except Exception:  # py4j wraps ClassNotFoundException; for any error, the class is unavailable
        lacking.append("Iceberg's runtime jar")
    if lacking:
        raise SparkStartError(
            "This process already runs a Spark that does not support Iceberg tables.",
            where=f"Spark application {root.sparkContext.appName}",
            why=f"It lacks {' and '.join(lacking)}.",
            fix="stop it before dbt starts, or start it with those",
        )
    return SparkProcess(root, conf, None)


def _forget() -> None:
    """Clear pyspark's references to a stopped Spark, so that a new one can start in this process."""
    global _running
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    _running = None
    gateway = SparkContext._gateway
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    if gateway is not None:
        with contextlib.suppress(Exception):  # nothing to close if the JVM is dead
            gateway.shutdown()
        process = getattr(gateway, "proc", None)
        if process is not None:
            process.stdin.close()  # a living JVM ends when its input is closed


def _makes_no_difference(key: str, running: str | None, wanted: str | None) -> bool:
    separator = {"spark.jars.packages": ",", CLASS_PATH: os.pathsep}.get(key)
    if separator is not None:
        return set((wanted or "").split(separator)) <= set((running or "").split(separator)) | {""}
    return key in ("spark.app.name", "spark.jars.excludes")


def _conf(spark_conf: Any, values: dict[str, str]) -> Any:
    conf = spark_conf(loadDefaults=False)
    for key, value in values.items():
        conf.set(key, value)
    return conf


def _submit_arguments(launch_file: Path) -> str:
    """The arguments of spark-submit: a file name instead of settings, which other users could read."""
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    # With a properties file, Spark would otherwise ignore the user's spark-defaults.conf.
    return f"--load-spark-defaults --properties-file {shlex.quote(str(launch_file))} {given}"


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
