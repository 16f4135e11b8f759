"""Compiles the driver of catalogs in databases: ``python -m tests.packaging.jdbc_driver``.

The jar is a part of the package, because a user of dbt needs no Java compiler. It records its source.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from pathlib import Path

from dbt_arctic.engine.jdbc_driver import JAR

SOURCE = JAR.with_name("CatalogDriver.java")
DRIVER = "dbt_arctic.CatalogDriver"
JAVA = "17"
"""The oldest Java on which Spark runs."""
_TIME = (2026, 1, 1, 0, 0, 0)


def manifest() -> str:
    """The manifest of a jar of the current source."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
    return f"Manifest-Version: 1.0\nSource-Digest: {digest[:40]}\n\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="driver-") as folder:
        subprocess.run(["javac", "--release", JAVA, "-Xlint:all", "-d", folder, str(SOURCE)], check=True)
        entries = {
            "META-INF/MANIFEST.MF": manifest().encode(),
            "META-INF/services/java.sql.Driver": f"{DRIVER}\n".encode(),
        }
        for compiled in sorted(Path(folder).rglob("*.class")):
            entries[compiled.relative_to(folder).as_posix()] = compiled.read_bytes()
        with zipfile.ZipFile(JAR, "w", zipfile.ZIP_DEFLATED) as jar:
            for name, content in entries.items():
                jar.writestr(zipfile.ZipInfo(name, _TIME), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
