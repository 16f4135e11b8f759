"""The options of Java in tests, unless the user has set them."""

from __future__ import annotations

import os

COLLECTOR = "-XX:+UseSerialGC"
"""Without threads of its own: two Sparks share two cores."""

MINUTES = (
    f"-XX:TieredStopAtLevel=1 {COLLECTOR} -Xmn512m -XX:ReservedCodeCacheSize=512m -XX:-UseCodeCacheFlushing"
)
"""Of a Spark that runs for some minutes: the optimising compiler took a third of a worker's CPU and had not
paid for itself after five minutes of tests (215 CPU seconds in place of 156). Room for young objects and for
code, so that neither has to be cleared away often.
"""

HOURS = f"{COLLECTOR} -XX:ReservedCodeCacheSize=512m"
"""Of a soak: code that is optimised saves a fifth of its CPU in the end."""

_OPTIONS = "JAVA_TOOL_OPTIONS"


def choose(options: str = MINUTES) -> None:
    """Set the options for every Java that this process and its children start."""
    os.environ.setdefault(_OPTIONS, options)
