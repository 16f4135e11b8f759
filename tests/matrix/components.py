"""Catalogs and stores that the matrix starts by itself: on loopback, on free ports, stopped in any case.

Each function is a context manager. A component that cannot be started raises ``NotRun`` with the reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dbt_arctic.engine.java import find_java

POSTGRES_FOLDERS = "/usr/lib/postgresql"
MOTO = "5.2.5"
_MOTO_PACKAGES = (f"moto[s3,glue]=={MOTO}", "flask>=3,<4", "flask-cors>=6,<7")
"""What its server needs for these two services. With `moto[server]`, it would be three times as large."""
KAFKA = "4.3.1"
REST_FIXTURE = "1.11.0"
"""Of Iceberg's test fixtures: newer ones are not published."""
HADOOP = "3.4.2"
PASSWORD = "not-a-secret"
WAIT_S = 60

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>arctic</groupId><artifactId>matrix</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_WITHOUT_OTHERS = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)
_MARIADB_PACKAGES = ("mariadb-server-core", "mariadb-client-core", "liburing2", "libaio1")
_REST_JARS = (
    f"org.apache.iceberg:iceberg-open-api:{REST_FIXTURE}:test-fixtures",
    f"org.apache.iceberg:iceberg-core:{REST_FIXTURE}",
    f"org.apache.iceberg:iceberg-core:{REST_FIXTURE}:tests",
    f"org.apache.iceberg:iceberg-aws:{REST_FIXTURE}",
    f"org.apache.iceberg:iceberg-aws-bundle:{REST_FIXTURE}",
    "org.eclipse.jetty.ee10:jetty-ee10-servlet:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-server:12.1.5",
    "org.eclipse.jetty.compression:jetty-compression-gzip:12.1.5",
    "org.apache.hadoop:hadoop-client:3.4.2",
    "org.xerial:sqlite-jdbc:3.50.3.0",
)


_HDFS_JARS = tuple(
    f"org.apache.hadoop:hadoop-client-{part}:{HADOOP}" for part in ("minicluster", "api", "runtime")
)


class NotRun(Exception):
    """A component is not on this machine, or did not start."""


@dataclass(frozen=True)
class Component:
    """A component that runs.

    :param version: what it is, for the page.
    :param address: where it is reached.
    :param pid: the group of its processes, if it may be killed.
    """

    version: str
    address: str
    pid: int | None = None


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Component]:
    """A PostgreSQL of its own with the database ``lake`` and the user ``dbt``."""
    found = sorted(Path(POSTGRES_FOLDERS).glob("*/bin"))
    if not found:
        raise NotRun("PostgreSQL is not installed (apt-get install postgresql)")
    programs = found[-1]
    data = folder / "postgres"
    data.mkdir()
    # PostgreSQL refuses to run as root.
    user = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    if user:
        shutil.chown(data, "postgres", "postgres")
    secret = data.with_suffix(".password")
    secret.write_text(PASSWORD, encoding="utf-8")
    secret.chmod(0o644)
    port = free_port()
    login = ["-U", "dbt", "--auth", "scram-sha-256", "--pwfile", str(secret), "--no-sync"]
    _run([programs / "initdb", "-D", data / "data", *login], folder, **user)
    server = [programs / "postgres", "-D", data / "data", "-h", "127.0.0.1", "-p", str(port), "-k", data]
    server += ["-c", "wal_level=logical"]  # the log of changes can be read
    with process("postgres", server, folder, lambda: listens(port), **user):
        environ = {**os.environ, "PGPASSWORD": PASSWORD}
        _until(
            lambda: _succeeds(
                [programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "dbt", "lake"], environ
            ),
            "createdb",
        )
        version = _output([programs / "postgres", "--version"]).split(")")[1].split()[0]
        yield Component(f"PostgreSQL {version}", f"postgresql://127.0.0.1:{port}/lake")


@contextlib.contextmanager
def mariadb(folder: Path, tools: Path) -> Iterator[Component]:
    """A MariaDB of its own with the database ``lake`` and the user ``dbt``.

    If it is not installed, it runs from Debian's packages, which are unpacked and not installed.
    """
    server, base, environ = _mariadb(tools / "mariadb", folder)
    data, port = folder / "mariadb", free_port()
    user = ["--user=root"] if os.getuid() == 0 else []
    create = [base / "bin" / "mariadb-install-db", "--no-defaults", f"--basedir={base}", f"--datadir={data}"]
    _run([*create, *user, "--auth-root-authentication-method=normal", "--skip-test-db"], folder, env=environ)
    secret = folder / "mariadb.sql"
    secret.write_text(
        f"CREATE DATABASE lake;\nCREATE USER dbt@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON *.* TO dbt@'127.0.0.1';\n",
        encoding="utf-8",
    )
    command = [
        *(server, "--no-defaults", f"--basedir={base}", f"--datadir={data}", *user),
        *("--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder / 'mariadb.sock'}"),
        *(f"--pid-file={folder / 'mariadb.pid'}", f"--init-file={secret}"),
        *("--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve"),
        *("--log-bin=log", "--server-id=7", "--sync-binlog=0"),
        *("--binlog-format=ROW", "--binlog-row-metadata=FULL"),
    ]
    with process("mariadb", command, folder, lambda: listens(port), env=environ):
        version = _output([server, "--version"], environ).split("Ver ")[1].split("-")[0]
        yield Component(f"MariaDB {version}", f"mariadb://127.0.0.1:{port}/lake")


def _mariadb(unpacked: Path, folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """The program of the server, the folder that it is installed in, and its environment."""
    installed = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    if installed is not None:
        return Path(installed), Path("/usr"), dict(os.environ)
    base = unpacked / "usr"
    if not (base / "sbin" / "mariadbd").exists():
        missing = "MariaDB is not installed (apt-get install mariadb-server)"
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise NotRun(missing)
        packages = folder / "packages"
        packages.mkdir()
        download = ["apt-get", "-qq", "download", *_MARIADB_PACKAGES]
        try:
            _run(download, folder, cwd=packages)
        except NotRun:
            if os.getuid() != 0:
                raise NotRun(missing) from None
            _run(["apt-get", "-qq", "update"], folder)
            _run(download, folder, cwd=packages)
        # Another process may unpack at the same time.
        half = unpacked.with_name(f"{unpacked.name}-{os.getpid()}")
        half.mkdir(parents=True, exist_ok=True)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg", "-x", package, half], folder)
        try:
            half.rename(unpacked)
        except OSError:
            shutil.rmtree(half)
    libraries = [
        str(path) for part in ("usr/lib", "lib") for path in sorted((unpacked / part).glob("*-linux-gnu"))
    ]
    return base / "sbin" / "mariadbd", base, {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}


@contextlib.contextmanager
def moto(folder: Path, tools: Path) -> Iterator[Component]:
    """moto as S3 and Glue, with the bucket ``lake``."""
    packages = tools / "moto"
    if not (packages / "moto").exists():
        _run([sys.executable, "-m", "pip", "install", "-q", "--target", packages, *_MOTO_PACKAGES], folder)
    port = free_port()
    environ = {**os.environ, "PYTHONPATH": str(packages)}
    server = Path(__file__).with_name("moto_server.py")
    command = [sys.executable, server, "-H", "127.0.0.1", "-p", str(port)]
    with process("moto", command, folder, lambda: listens(port), env=environ):
        address = f"http://127.0.0.1:{port}"
        with direct().open(urllib.request.Request(f"{address}/lake", method="PUT")):
            pass
        yield Component(f"moto {MOTO}", address)


@contextlib.contextmanager
def hdfs(folder: Path, tools: Path) -> Iterator[Component]:
    """A name node and a data node of Hadoop, in one process."""
    jars = maven_jars(tools / "hdfs", _HDFS_JARS, folder)
    port, details = free_port(), folder / "hdfs.json"
    command = [
        *_java(),
        *("-cp", f"{jars}/*", "org.apache.hadoop.test.MiniDFSClusterManager", "-format"),
        *("-nnport", str(port), "-datanodes", "1", "-writeDetails", details),
        *("-D", f"hdfs.minidfs.basedir={folder / 'hdfs'}", "-D", "dfs.permissions.enabled=false"),
    ]
    # The details are written when the data node has registered.
    with process("hdfs", command, folder, details.exists):
        yield Component(f"HDFS {HADOOP}", f"hdfs://127.0.0.1:{port}")


@contextlib.contextmanager
def rest(folder: Path, tools: Path, warehouse: str, s3: str | None) -> Iterator[Component]:
    """The REST catalog of Iceberg's own tests, over SQLite."""
    jars = maven_jars(tools / "rest", _REST_JARS, folder)
    port = free_port()
    environ = {
        **os.environ,
        "CATALOG_REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/rest.db",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_WAREHOUSE": warehouse,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    if s3:
        environ["CATALOG_IO__IMPL"] = "org.apache.iceberg.aws.s3.S3FileIO"
        environ["CATALOG_S3_ENDPOINT"] = s3
        environ["CATALOG_S3_PATH__STYLE__ACCESS"] = "true"
    command = [
        *_java(),
        *("-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"),
    ]
    with process("rest", command, folder, lambda: listens(port), env=environ):
        yield Component(f"REST fixture of Iceberg {REST_FIXTURE}", f"http://127.0.0.1:{port}")


@contextlib.contextmanager
def hive(folder: Path, s3: bool) -> Iterator[Component]:
    """The Hive metastore among pyspark's jars, over Derby.

    :param s3: whether tables are in the bucket ``lake``. The metastore creates a folder for each schema and
        table, which object stores do not need, and has no client for S3. It gets local folders instead.
    """
    jars = spark_jars()
    conf = folder / "hive-conf"
    conf.mkdir()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.jdbc.EmbeddedDriver",
        "hive.metastore.warehouse.dir": str(folder / "hive-warehouse"),
        "hive.metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "NONE",
        "hive.async.log.enabled": "false",
    }
    if s3:
        folders = folder / "hive-s3"
        folders.mkdir()
        overload = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
        settings |= {
            "fs.s3.impl": overload,
            "fs.viewfs.overload.scheme.target.s3.impl": overload,
            "fs.viewfs.mounttable.lake.link./warehouse": f"file://{folders}",
        }
    listed = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>" for name, value in settings.items()
    )
    (conf / "hive-site.xml").write_text(f"<configuration>{listed}</configuration>", encoding="utf-8")
    port = free_port()
    main = "org.apache.hadoop.hive.metastore.HiveMetaStore"
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.net", "java.lang", "java.util")]
    command = [*_java(), *opened, "-cp", f"{conf}{os.pathsep}{jars}/*", main, "-p", str(port)]
    with process("hive", command, folder, lambda: listens(port), cwd=folder):
        version = next(jars.glob("hive-metastore-*.jar")).stem.rpartition("-")[2]
        yield Component(f"Hive metastore {version}", f"thrift://127.0.0.1:{port}")


@contextlib.contextmanager
def kafka(folder: Path, tools: Path) -> Iterator[Component]:
    """A Kafka broker that is its own controller. Its second listener, on the port in ``sasl``, wants a login.

    The user is ``dbt``, and the password ``PASSWORD``.
    """
    jars = maven_jars(tools / f"kafka-{KAFKA}", (f"org.apache.kafka:kafka_2.13:{KAFKA}",), folder)
    port, login, control = free_port(), free_port(), free_port()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{control}",
        "controller.listener.names": "CONTROL",
        "listeners": f"PLAIN://127.0.0.1:{port},LOGIN://127.0.0.1:{login},CONTROL://127.0.0.1:{control}",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,LOGIN:SASL_PLAINTEXT,CONTROL:PLAINTEXT",
        "inter.broker.listener.name": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": f'{module} required user_dbt="{PASSWORD}";',
        "log.dirs": str(folder / "kafka"),
        "auto.create.topics.enable": "false",
        **dict.fromkeys(
            (
                "offsets.topic.replication.factor",
                "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr",
                "transaction.state.log.num.partitions",
            ),
            "1",
        ),
        "group.initial.rebalance.delay.ms": "0",
    }
    conf = folder / "kafka.properties"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    java = [*_java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    cluster = "Yw5rtXqAQ0mN2bC0yQ3m5A"
    _run(
        [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", conf],
        folder,
    )
    with process("kafka", [*java, "kafka.Kafka", conf], folder, lambda: listens(port)):
        (folder / "sasl").write_text(str(login), encoding="utf-8")
        yield Component(f"Kafka {KAFKA}", f"127.0.0.1:{port}")


def spark_jars() -> Path:
    """The folder of pyspark's jars."""
    import pyspark

    return Path(str(pyspark.__file__)).parent / "jars"


def free_port() -> int:
    with contextlib.closing(socket.socket()) as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def _java() -> list[str]:
    return [str(Path(find_java(None).home, "bin", "java")), "-Xmx512m", "-XX:+UseSerialGC"]


def maven_jars(
    target: Path, coordinates: tuple[str, ...], folder: Path, *, are_complete: bool = False
) -> Path:
    """The folder of jars and, unless they are complete, of what they depend on, fetched once."""
    names = ("groupId", "artifactId", "version", "classifier")
    dependencies = (
        "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, one.split(":"), strict=False))
        for one in coordinates
    )
    without = _WITHOUT_OTHERS if are_complete else ""
    pom = _POM.format(
        dependencies="".join(f"<dependency>{one}{without}</dependency>" for one in dependencies)
    )
    jars, fetched = target / "jars", target / "pom.xml"
    if jars.exists() and fetched.read_text(encoding="utf-8") == pom:
        return jars
    if shutil.which("mvn") is None:
        raise NotRun("Maven is not installed (apt-get install maven)")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    fetched.write_text(pom, encoding="utf-8")
    copied = target / "copied"
    _run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={copied}"], folder, cwd=target
    )
    copied.rename(jars)
    return jars


@contextlib.contextmanager
def process(
    name: str, command: list[str | Path], folder: Path, is_up: Callable[[], bool], **options: object
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block, and with this process."""
    log = folder / f"{name}.log"
    with log.open("w") as output:
        try:
            started = subprocess.Popen(
                list(map(str, command)),
                stdout=output,
                stderr=output,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **options,  # type: ignore[call-overload]
            )
        except OSError as error:
            raise NotRun(f"{name} could not be started: {error}") from error
    watcher = subprocess.Popen(
        [sys.executable, "-c", f"import os, sys; sys.stdin.read(); os.killpg({started.pid}, 15)"],
        stdin=subprocess.PIPE,
    )
    try:
        try:
            _until(is_up, name, started)
        except NotRun as error:
            raise NotRun(f"{error}: {_tail(log)}") from error
        yield started
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGINT if name == "postgres" else signal.SIGTERM)
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def _until(is_up: Callable[[], bool], name: str, process: subprocess.Popen[bytes] | None = None) -> None:
    ends = time.monotonic() + WAIT_S
    while not is_up():
        if process is not None and process.poll() is not None:
            raise NotRun(f"{name} ended with {process.returncode}")
        if time.monotonic() > ends:
            raise NotRun(f"{name} did not answer for {WAIT_S} s")
        time.sleep(0.2)


def listens(port: int) -> bool:
    """Whether something listens on a port of the loopback interface."""
    with contextlib.closing(socket.socket()) as opened:
        return opened.connect_ex(("127.0.0.1", port)) == 0


def direct() -> urllib.request.OpenerDirector:
    """An opener of URLs that uses no proxy."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _run(command: list[str | Path], folder: Path, **options: object) -> None:
    log = folder / f"{Path(str(command[0])).name}.log"
    with log.open("w") as output:
        try:
            done = subprocess.run(list(map(str, command)), stdout=output, stderr=output, **options)  # type: ignore[call-overload]
        except OSError as error:
            raise NotRun(f"{command[0]}: {error}") from error
    if done.returncode:
        raise NotRun(f"{command[0]} ended with {done.returncode}: {_tail(log)}")


def _succeeds(command: list[str | Path], environ: Mapping[str, str]) -> bool:
    return subprocess.run(list(map(str, command)), env=environ, capture_output=True).returncode == 0


def _output(command: list[str | Path], environ: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, env=environ)
    return done.stdout


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-500:]
