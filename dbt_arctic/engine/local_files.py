"""Files of a Spark on this machine without a process and a checksum file for each of them.

Hadoop sets the permissions of each file that it creates by running the program ``chmod``, unless its native
library is there, and writes a ``.crc`` file beside it. Of a small commit these cost a fifth of the time.
Iceberg and Parquet need neither. Hadoop has no setting for that, so its file system for ``file:`` gets
another inner one here.
"""

from __future__ import annotations

from typing import Any

_CLASS = "dbtarctic.LocalFiles"
_SOURCE = """
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
"""The same permissions, set by Java itself, which knows no sticky bit."""


def prepare_local_files(context: Any) -> None:
    """Prepare the file system of a SparkContext whose master is local. Every thread of the JVM uses it.

    A file system that the user names as ``fs.file.impl`` stays as it is.
    """
    jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()
    if hadoop.get("fs.file.impl") is not None:
        return
    root = jvm.java.net.URI.create("file:///")
    files = jvm.org.apache.hadoop.fs.FileSystem.get(root, hadoop)  # Hadoop keeps this object
    files.setWriteChecksum(False)
    if _has_posix_permissions(jvm) and not jvm.org.apache.hadoop.io.nativeio.NativeIO.isAvailable():
        _replace_inner(context, files, root)


def _has_posix_permissions(jvm: Any) -> bool:
    views = jvm.java.nio.file.FileSystems.getDefault().supportedFileAttributeViews()
    return bool(views.contains("posix"))


def _replace_inner(context: Any, files: Any, root: Any) -> None:
    """Give Hadoop's ``LocalFileSystem`` an inner file system of the class above, compiled by Janino."""
    jvm, gateway = context._jvm, context._gateway
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    made = compiler.getClassLoader().loadClass(_CLASS)
    nothing = gateway.new_array(jvm.java.lang.Class, 0), gateway.new_array(jvm.java.lang.Object, 0)
    inner = made.getDeclaredConstructor(nothing[0]).newInstance(nothing[1])
    inner.initialize(root, context._jsc.hadoopConfiguration())
    field = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FilterFileSystem").getDeclaredField("fs")
    field.setAccessible(True)
    field.set(files, inner)
