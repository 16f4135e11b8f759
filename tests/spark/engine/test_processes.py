"""What needs a process of its own: lazy and failing starts, a JVM that dies, a clean terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import os, sys
from pathlib import Path
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError
settings = dict(catalog="lake", warehouse=os.path.abspath("warehouse"), master="local[1]", driver_memory="1g")
"""


def run_python(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_nothing_starts_before_the_first_statement(tmp_path: Path) -> None:
    ran = run_python(
        tmp_path,
        """
connection = SessionEngine(SparkSettings(**settings)).connect()
connection.cursor()
connection.cancel()
connection.close()
print(connection.is_open, "pyspark" in sys.modules, os.listdir("."))
""",
    )
    assert (ran.stdout, ran.stderr) == ("False False []\n", "")


def test_a_run_leaves_only_the_warehouse_and_after_the_jvm_dies_the_next_statement_starts_another(
    tmp_path: Path,
) -> None:
    """Nothing on the terminal, and no other file. The second half is in the same process as the first.

    The settings that go with each task are few, also after Hadoop has loaded more defaults, and files of
    every kind are written and read without them.
    """
    ran = run_python(
        tmp_path,
        """
import shutil, signal, threading
engine = SessionEngine(SparkSettings(**settings))
connection = engine.connect()
cursor = connection.cursor()
cursor.execute("CREATE SCHEMA s")
cursor.execute("CREATE TABLE s.t USING iceberg AS SELECT 1 AS a")
cursor.execute("SELECT * FROM lake.s.t")
try:
    cursor.execute("SELECT nope")
except ArcticError as error:
    print(error.code)
hadoop = connection.session.sparkContext._jvm.org.apache.hadoop
for loads in (hadoop.mapred.JobConf, hadoop.yarn.conf.YarnConfiguration, hadoop.hdfs.HdfsConfiguration):
    loads()
print(connection.session._jsparkSession.sessionState().newHadoopConf().size() < 200)
frame = connection.session.sql("SELECT id, concat('n', id) AS name FROM range(20)")
expected = [(number, f"n{number}") for number in range(20)]
for form, options in (
    ("parquet", {"compression": "zstd"}),
    ("json", {"compression": "gzip"}),
    ("csv", {"compression": "bzip2"}),
    ("orc", {}),
):
    folder = Path("formats").absolute().joinpath(form).as_uri()
    for _ in range(2):
        frame.write.mode("overwrite").options(**options).format(form).save(folder)
    read = connection.session.read.schema("id BIGINT, name STRING").format(form).load(folder)
    print(form, sorted(map(tuple, read.collect())) == expected)
shutil.rmtree("formats")
connection.close()
print(os.listdir("."), sorted(os.listdir("warehouse")))
written = [path.suffix for path in Path("warehouse/s").rglob("*")]
print(written.count(".parquet"), written.count(".crc"), flush=True)
print("killed", file=sys.stderr, flush=True)

connection = engine.connect()
cursor = connection.cursor()
cursor.execute("SELECT 1")
jvm = connection.session.sparkContext._gateway.proc.pid
threading.Timer(1, os.kill, (jvm, signal.SIGKILL)).start()
try:
    cursor.execute("SELECT sum(hash(id)) FROM range(1000000000000)")
except ArcticError as error:
    print(error.code, error.what)
cursor.execute("SELECT 2")
print(cursor.fetchall())
""",
    )
    assert ran.stdout == (
        "AR-201\nTrue\nparquet True\njson True\ncsv True\norc True\n"
        "['warehouse'] ['.gitignore', 'catalog.db', 's']\n1 0\n"
        "AR-207 Spark ended while the statement ran.\n[(2,)]\n"
    ), ran.stderr
    assert ran.stderr.startswith("killed\n")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("java_home=os.path.abspath('nowhere')", ["AR-101", "there is no bin/java", "java_home"]),
        ("driver_memory='2q'", ["AR-105", "driver_memory"]),
        ("warehouse='/proc/nowhere'", ["AR-104", "/proc/nowhere"]),
        (
            "packages=('com.example:no-such-thing:1.0',), repositories=(Path('empty').absolute().as_uri(),), "
            "spark_conf={'spark.jars.ivySettings': os.path.abspath('ivy.xml'), "
            "'spark.jars.ivy': os.path.abspath('ivy')}",
            ["AR-103", "com.example:no-such-thing:1.0", "proxy"],
        ),
    ],
    ids=["no java", "bad memory", "bad warehouse", "no such jar"],
)
def test_a_failed_start_says_what_to_do(tmp_path: Path, more: str, told: list[str]) -> None:
    # Jars are only looked up in a folder, so the test needs no network.
    (tmp_path / "empty").mkdir()
    (tmp_path / "ivy.xml").write_text(
        '<ivysettings><settings defaultResolver="local"/><resolvers><filesystem name="local">'
        f'<artifact pattern="{tmp_path}/empty/[artifact]-[revision].[ext]"/>'
        "</filesystem></resolvers></ivysettings>"
    )
    ran = run_python(
        tmp_path,
        f"""
settings.update({more})
try:
    SessionEngine(SparkSettings(**settings)).connect().cursor().execute("SELECT 1")
except ArcticError as error:
    print(error)
""",
    )
    for part in told:
        assert part in ran.stdout, ran.stdout + ran.stderr
    assert ran.stderr == ""
