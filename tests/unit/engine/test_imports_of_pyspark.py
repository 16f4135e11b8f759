"""Threads import pyspark one after the other: an import of one of its parts fails while another one runs."""

from __future__ import annotations

import subprocess
import sys

SESSION = """
import sys
from dbt_arctic.engine import jvm
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings

def started_spark(settings):
    raise KeyError("opening")

jvm.started_spark = started_spark
try:
    SessionEngine(SparkSettings(catalog="lake", warehouse="lake")).connect().query_schema("SELECT 1")
except KeyError:
    print([name for name in sys.modules if name.partition(".")[0] == "pyspark"])
"""


def test_nothing_of_pyspark_is_imported_before_a_session_is_opened() -> None:
    ran = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == ("[]", "")
