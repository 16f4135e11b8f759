"""Suppresses terminal output of pyspark that duplicates its exceptions, which dbt-arctic reports itself."""

from __future__ import annotations

import logging
import warnings


def silence_pyspark() -> None:
    """Stop pyspark from printing each failed query as JSON, and from warning that it gave up retrying."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
