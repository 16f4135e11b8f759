"""Who can read the catalog's own file? It names every table, and whoever writes it can exchange them."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from dbt_arctic.maintenance.finding import Finding

_OTHERS = stat.S_IROTH | stat.S_IWOTH


def check_catalog_file(catalog: str, path: str, mode: int) -> Iterator[Finding]:
    """Check who may read and write the file of a SQLite catalog.

    :param mode: of the file. What its group may do is for a team to decide.
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
            "it was made by another program or an older dbt-arctic, or its permissions were changed",
            f"chmod o-rw '{path}'",
        )
