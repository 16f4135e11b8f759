"""The machine that something was measured on."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine_text() -> str:
    return f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"
