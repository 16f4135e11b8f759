"""Determines how a local Spark is launched: with cached jars, and with its class archive.

At each start, Ivy takes two seconds to resolve jars that were downloaded long ago, and jars that Spark adds
after its start are not covered by a class archive. So if the jars are known and in the cache, they are put on
the class path of the JVM. Pure functions over settings and folders; nothing is started here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.engine import class_archive
from dbt_arctic.engine.jars import cached_jars
from dbt_arctic.engine.java import Java
from dbt_arctic.engine.jdbc_driver import CLASS_PATH
from dbt_arctic.engine.settings import SparkSettings

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_ENTRY = re.compile(r"\s*([^\s#!=:]+)\s*[\s=:]\s*(.*?)\s*")
_PACKAGES = ("spark.jars.packages", "spark.jars.repositories")


def launch_conf(conf: Mapping[str, str], settings: SparkSettings, java: Java) -> dict[str, str]:
    """The conf for the launch.

    :param conf: the complete conf of the Spark, from ``session_conf``.
    :returns: the same conf with the jars of ``spark.jars.packages`` on the class path, and with the class
        archive for this Java and these jars if there is one. Unchanged if jars have to be downloaded or
        shipped, or if the user configures jars or class path.
    """
    launched = dict(conf)
    jars = _known_jars(conf, settings)
    if jars is None:
        if CLASS_PATH in launched and CLASS_PATH not in settings.spark_conf:
            # Ours replaces that of the user's spark-defaults.conf.
            users = filter(None, [spark_defaults().get(CLASS_PATH)])
            launched[CLASS_PATH] = os.pathsep.join([*users, launched[CLASS_PATH]])
        return launched
    for key in _PACKAGES:
        launched.pop(key, None)
    launched[CLASS_PATH] = os.pathsep.join([*map(str, jars), *filter(None, [conf.get(CLASS_PATH)])])
    archive = class_archive.path(java, jars)
    options = launched.get(JAVA_OPTIONS, "")
    if archive.exists() and not class_archive.is_chosen(options, os.environ):
        launched[JAVA_OPTIONS] = f'{options} "{class_archive.USE}{archive}"'.strip()
    return launched


def python_of_workers(conf: Mapping[str, str]) -> str:
    """The Python that runs the functions of Python models.

    By default it is that of this environment, not the first one in PATH. On a cluster, it may have another
    path.
    """
    return os.environ.get("PYSPARK_PYTHON") or conf.get("spark.pyspark.python", sys.executable)


def _known_jars(conf: Mapping[str, str], settings: SparkSettings) -> list[Path] | None:
    """The jars of the default coordinates, which have no dependencies that Spark lacks."""
    is_ours = settings.packages is None and not settings.spark_conf.keys() & {CLASS_PATH, *_PACKAGES}
    if not is_ours or settings.cores is None or _has_defaults_file():
        return None
    return cached_jars(conf)


def spark_defaults() -> dict[str, str]:
    """The settings of the user's ``spark-defaults.conf``, with which a Spark of this process starts."""
    if not _has_defaults_file():
        return {}
    lines = _defaults_file().read_text(encoding="utf-8").splitlines()
    found = (_ENTRY.fullmatch(line) for line in lines)
    return {entry[1]: entry[2] for entry in found if entry is not None}


def _has_defaults_file() -> bool:
    """Whether the user has a ``spark-defaults.conf``, which may set the class path as well."""
    return _defaults_file().exists()


def _defaults_file() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")  # type: ignore[no-untyped-call] # pyspark's
    return Path(folder, "spark-defaults.conf")
