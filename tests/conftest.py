"""What holds for every test, whichever kind it is."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # pyspark leaves the socket of each collect() to the garbage collector, which may run in any later test.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    # dbt leaves its log file open when it is run again in the same process.
    config.addinivalue_line("filterwarnings", "ignore:unclosed file .*dbt[.]log:ResourceWarning")
