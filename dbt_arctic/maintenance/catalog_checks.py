"""Checks the permissions of the catalog's file. It lists every table, and write access can replace tables."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from dbt_arctic.maintenance.finding import Finding

_OTHERS = stat.S_IROTH | stat.S_IWOTH


def check_catalog_file(catalog: str, path: str, mode: int) -> Iterator[Finding]:
    """Check the permissions on the file of a SQLite catalog.

    :param mode: the file's mode. Its group's permissions are not checked, because a team may share the file.
    """
    if mode & _OTHERS:
        may = " and ".join(
            word for word, bit in (("read", stat.S_IROTH), ("write", stat.S_IWOTH)) if mode & bit
        )
        yield Finding(
            "catalog-open",
            catalog,
            f"every user of this machine may {may} the catalog's file",
            path,
            "it was created by another program or an older dbt-arctic, or its permissions were changed",
            f"chmod o-rw '{path}'",
        )
