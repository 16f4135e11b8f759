"""Explains disk errors and their remedies. Pure functions.

Recognises messages of the operating system, and those of Java, Hadoop and SQLite that contain them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ArcticError, CatalogUnavailable, DiskError


class _Trouble(NamedTuple):
    """A kind of disk failure.

    :param why: the cause.
    :param fix: the remedy.
    """

    words: re.Pattern[str]
    why: str
    fix: str


_TROUBLES = (
    _Trouble(
        re.compile(r"No space left on device|Disk quota exceeded|\[SQLITE_FULL|not enough space on the disk"),
        "the disk is full, or this user's quota is exhausted",
        "free some space on it",
    ),
    _Trouble(
        re.compile(r"File too large"),
        "the file exceeds the size limit of this disk or process",
        "free some space, or raise the limit (`ulimit -f`)",
    ),
    _Trouble(
        re.compile(r"Read-only file system"),
        "the disk is mounted read-only",
        "mount it for writing; check the system log for a disk error that made it read-only",
    ),
    _Trouble(
        re.compile(
            r"Permission denied|Operation not permitted|Mkdirs failed to create|AccessControlException"
            r"|AccessDeniedException|\[SQLITE_(READONLY|PERM)"
        ),
        "this user has no permission to do that, or the disk is mounted read-only",
        "give it write permission for the folder and its contents",
    ),
    _Trouble(
        re.compile(r"Input/output error|\[SQLITE_IOERR"),
        "the disk is full or damaged",
        "check its free space and the system log",
    ),
)
# Other exceptions quote the statement in their messages, which may contain any of these words.
_CLASSES = (
    "java.io.",
    "java.nio.",
    "java.lang.ExceptionInInitializerError",  # a library could not be extracted
    "org.apache.hadoop.",
    "org.apache.iceberg.exceptions.RuntimeIOException",
)
_SQLITE = "org.sqlite."


def disk_error(causes: Sequence[Cause], where: str) -> ArcticError | None:
    """The error if a disk is the cause; otherwise ``None``."""
    for cause in reversed(causes):
        of_catalog = cause.java_class.startswith(_SQLITE)
        if not of_catalog and not cause.java_class.startswith(_CLASSES):
            continue
        detail = f"{cause.name}: {cause.message.strip() or 'without a message'}".splitlines()[0]
        trouble = next((one for one in _TROUBLES if one.words.search(detail)), None)
        if trouble is None:
            continue
        if of_catalog:
            return CatalogUnavailable(
                "The catalog's file could not be written.",
                where=where,
                why=f"{trouble.why}: {detail}",
                fix=f"the file is `catalog.db` in the warehouse: {trouble.fix}, then run again",
            )
        return DiskError(
            "A file could not be written or read.",
            where=where,
            why=f"{trouble.why}: {detail}",
            fix="on the disk of the warehouse or of Spark's temporary files (`spark.local.dir`, or else "
            f"/tmp): {trouble.fix}, then run again",
        )
    return None
