"""What pyspark says on the terminal besides raising it, kept quiet: our errors say it once, and better."""

from __future__ import annotations

import logging
import warnings


def silence_pyspark() -> None:
    """Stop pyspark from printing each failed query as JSON, and from warning that it gave up retrying."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
