"""Removes overhead of Hadoop from a local Spark.

* Without its native library, Hadoop sets the permissions of each new file by running the program ``chmod``,
and writes a ``.crc`` file next to it. This takes a fifth of the time of a small commit. Iceberg and Parquet
need neither. Hadoop has no setting for it, so the inner file system for ``file:`` is replaced here.
* Iceberg sends Hadoop's settings to the tasks of each scan and each write: 1,100 of them, nearly all of which
are Hadoop's defaults. Without these, inserts take a tenth less CPU and small queries a seventh less.

Each is ten lines of Java, compiled by the compiler that Spark includes for its generated code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.engine.connectors import S3
from dbt_arctic.engine.settings import SparkSettings, each_catalog, local_warehouse

_FILES = """
package dbtarctic;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends RawLocalFileSystem {
  public void setPermission(Path path, FsPermission permission) throws IOException {
    if (permission.getStickyBit()) {
      super.setPermission(path, permission);
    } else {
      Files.setPosixFilePermissions(
          pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
    }
  }
}
"""
"""Sets the same permissions with Java itself, which does not support the sticky bit."""

_DEFAULTS = """
package dbtarctic;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

public class Defaults {
  public static void unset(Configuration conf) {
    List names = new ArrayList();
    for (Iterator all = conf.iterator(); all.hasNext(); ) {
      names.add(((Map.Entry) all.next()).getKey());
    }
    for (int at = 0; at < names.size(); at++) {
      String name = (String) names.get(at);
      String[] sources = conf.getPropertySources(name);
      if (sources != null && sources.length == 1 && sources[0].endsWith("-default.xml")) {
        conf.unset(name);
      }
    }
  }
}
"""
"""Unsets settings that come only from Hadoop's own default files, which its code contains as well."""


def prepare_files(context: Any) -> None:
    """Prepare the local file system of a SparkContext, which every thread of the JVM uses.

    A file system that the user configures as ``fs.file.impl`` is unchanged.
    """
    jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()
    if hadoop.get("fs.file.impl") is not None:
        return
    root = jvm.java.net.URI.create("file:///")
    files = jvm.org.apache.hadoop.fs.FileSystem.get(root, hadoop)  # Hadoop caches this object
    files.setWriteChecksum(False)
    views = jvm.java.nio.file.FileSystems.getDefault().supportedFileAttributeViews()
    if not views.contains("posix") or jvm.org.apache.hadoop.io.nativeio.NativeIO.isAvailable():
        return
    nothing = _array(context, jvm.java.lang.Class), _array(context, jvm.java.lang.Object)
    constructor = _compiled(context, _FILES, "LocalFiles").getDeclaredConstructor(nothing[0])
    inner = constructor.newInstance(nothing[1])
    inner.initialize(root, hadoop)
    field = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FilterFileSystem").getDeclaredField("fs")
    field.setAccessible(True)
    field.set(files, inner)


def unset_defaults(context: Any) -> None:
    """Unset Hadoop's own defaults in the settings of a SparkContext.

    Only for tables in local folders, because other file systems read more of the settings. The defaults
    return when Hadoop loads further default files. So those that Spark may load later are loaded first.
    """
    hadoop = context._jsc.hadoopConfiguration()
    jvm, made = context._jvm, _compiled(context, _DEFAULTS, "Defaults")
    jvm.org.apache.hadoop.mapred.JobConf()  # the defaults of MapReduce, as Spark's first job would load them
    jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
    unset = made.getMethod("unset", _array(context, jvm.java.lang.Class, hadoop.getClass()))
    unset.invoke(None, _array(context, jvm.java.lang.Object, hadoop))


def needs_defaults(settings: SparkSettings, environ: Mapping[str, str]) -> bool:
    """Whether Hadoop may be needed for more than local files.

    The reasons are other jars, its settings, or tables or files elsewhere.
    """
    return (
        settings.packages is not None
        or S3 in settings.connectors
        or any(local_warehouse(one) is None for one in each_catalog(settings))
        or bool(environ.get("HADOOP_CONF_DIR"))
        or any(key.startswith(("spark.hadoop.", "spark.jars")) for key in settings.spark_conf)
    )


def _compiled(context: Any, source: str, name: str) -> Any:
    """Compile a source and return its Java class."""
    compiler = context._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(source)
    return compiler.getClassLoader().loadClass(f"dbtarctic.{name}")


def _array(context: Any, type_: Any, *values: Any) -> Any:
    """A Java array, as reflection expects types and arguments."""
    made = context._gateway.new_array(type_, len(values))
    for at, value in enumerate(values):
        made[at] = value
    return made
