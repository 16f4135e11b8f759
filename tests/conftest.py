"""What holds for every test, whichever kind it is."""

from __future__ import annotations

import os

import pytest

# Tests run many small statements: a quick compiler and a collector without threads of its own halve the
# work of each Spark, and two of them share two cores.
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("JAVA_TOOL_OPTIONS", FAST_START)
    # pyspark leaves the socket of each collect() to the garbage collector, which may run in any later test.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    # dbt leaves its log file open when it is run again in the same process.
    config.addinivalue_line("filterwarnings", "ignore:unclosed file .*dbt[.]log:ResourceWarning")
