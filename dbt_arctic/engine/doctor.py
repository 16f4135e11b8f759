"""The checks of ``dbt debug``: whether everything that a run needs works, and how to fix it."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.capabilities import CONCURRENT_COMMITS, SCHEMA_PREFIX, Capability, probe
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings, catalog_conf, packages
from dbt_arctic.engine.thrift import ThriftEngine
from dbt_arctic.errors import ArcticError, DependencyError
from dbt_arctic.human_readable import counted


class Check(NamedTuple):
    """One thing looked at. ``fix`` is empty where nothing is wrong.

    :param ok: ``False`` if nothing can be run before it is corrected.
    :param state: for what a run may do without: ``missing`` or ``not tried``.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    state: str = ""

    @property
    def shown_state(self) -> str:
        """The state of the check, for display."""
        return self.state or ("ok" if self.ok else "FAILED")


def diagnose(settings: SparkSettings, java_home: str | None = None) -> Iterator[Check]:
    """The checks of an embedded Spark, in the order of a run.

    They are java, jars, spark, catalog, write, and what the catalog can do.

    Each result is returned as soon as it is known. The first failed check is the last one, because the others
    depend on it.
    """
    if java_home is not None:
        settings = dataclasses.replace(settings, java_home=java_home)

    def java() -> list[Check]:
        found = find_java(settings.java_home)
        return [Check("java", True, f"Java {found.version}, {found.home}")]

    def spark() -> list[Check]:
        version = _spark_version(connection)
        return [
            Check("jars", True, ", ".join(packages(settings)) or "none: packages in the profile is empty"),
            Check("spark", True, f"Spark {version}, {settings.master}"),
        ]

    with contextlib.closing(SessionEngine(settings).connect()) as connection:
        place = settings.warehouse or "the server's warehouse"
        stored = _of_the_catalog(connection, settings.catalog, _kind(settings), place)
        others = _of_other_catalogs(connection, [other.name for other in settings.others])
        yield from _until_one_fails([("java", java), ("spark", spark), *stored, *others])


def diagnose_server(
    engine: ConnectEngine | ThriftEngine, description: str, others: Sequence[str] = ()
) -> Iterator[Check]:
    """The checks of a server of Spark: spark, catalog, write and capabilities; see ``diagnose``.

    :param others: the names of the other catalogs of the profile.
    """

    def spark() -> list[Check]:
        return [Check("spark", True, f"Spark {_spark_version(connection)}, {description}")]

    with contextlib.closing(engine.connect()) as connection:
        catalog = engine.settings.catalog
        stored = _of_the_catalog(connection, catalog, "as the server has it", catalog)
        yield from _until_one_fails([("spark", spark), *stored, *_of_other_catalogs(connection, others)])


_Step = tuple[str, Callable[[], list[Check]]]


def _of_the_catalog(connection: Connection, catalog: str, kind: str, place: str) -> list[_Step]:
    def listed() -> list[Check]:
        schemas = _rows(connection, f"SHOW SCHEMAS IN `{catalog}`")
        return [Check("catalog", True, f"{catalog} ({kind}), {counted(len(schemas), 'schema')}")]

    def written() -> list[Check]:
        found = probe(connection, catalog)
        _remove_folder(Path(place, found.schema))
        detail = f"a table can be created and read in {place}, Iceberg {found.iceberg}"
        return [Check("write", True, detail), *map(_of, found.tried)]

    return [("catalog", listed), ("write", written)]


def _remove_folder(folder: Path) -> None:
    """Remove the folder of a dropped schema, if it is on this machine.

    Iceberg leaves empty folders, and the metadata of the commit that the catalog refused.
    """
    if folder.name.startswith(SCHEMA_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)


def _of_other_catalogs(connection: Connection, names: Sequence[str]) -> list[_Step]:
    """Checks that other catalogs can be read. Nothing is written to them."""

    def listed(name: str) -> list[Check]:
        schemas = _rows(connection, f"SHOW SCHEMAS IN `{name}`")
        return [Check(f"catalog {name}", True, f"{counted(len(schemas), 'schema')}, nothing was written")]

    return [(f"catalog {name}", partial(listed, name)) for name in names]


def _until_one_fails(steps: list[_Step]) -> Iterator[Check]:
    for name, check in steps:
        try:
            yield from check()
        except ArcticError as error:
            failed = "jars" if isinstance(error, DependencyError) else name
            detail = " ".join(part for part in (error.what, error.where, error.why) if part)
            fix = error.fix or f"see {error.code} in the documentation"
            yield Check(failed, False, detail, fix)
            return


def _spark_version(connection: Connection) -> str:
    return str(_rows(connection, "SELECT split(version(), ' ')[0]")[0][0])


def _of(capability: Capability) -> Check:
    """The check of a capability. Only one whose absence loses rows stops a run."""
    name, works, detail, instead = dataclasses.astuple(capability)
    if works is not False:
        return Check(name, True, detail, state="not tried" if works is None else "")
    loses_rows = name == CONCURRENT_COMMITS
    return Check(name, not loses_rows, detail, instead, state="" if loses_rows else "missing")


def _rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def _kind(settings: SparkSettings) -> str:
    conf = catalog_conf(settings)
    return conf.get("type") or conf["catalog-impl"].rsplit(".", 1)[-1]
