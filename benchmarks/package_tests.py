"""Run the integration tests of a public dbt package, unmodified, on this adapter.

    python -m benchmarks.package_tests path/to/dbt_github --schema github_integration_tests_1 \\
        --packages path/to/dbt-utils path/to/dbt_fivetran_utils path/to/spark-utils

The project ``integration_tests`` of the package is copied into a temporary folder, with a profile of ours and
the package and what it needs in ``dbt_packages``. The results are in docs/how-to/use-packages.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.public_projects import prepare


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("package", type=Path)
    parser.add_argument("--packages", type=Path, nargs="*", default=[], help="Checkouts of what it needs.")
    parser.add_argument("--schema", default="package_tests", help="The profile's.")
    parser.add_argument("--exclude", nargs="*", default=[], help="As in dbt.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packages = [given.package, *given.packages]
        project = prepare(
            given.package / "integration_tests", packages, Path(folder), given.schema, as_it_is=True
        )
        dbt = str(Path(sys.executable).with_name("dbt"))
        excluded = ["--exclude", *given.exclude] if given.exclude else []
        codes = [
            subprocess.run(
                [dbt, *arguments],
                cwd=project,
                env={**os.environ, "DBT_PROFILES_DIR": str(project)},
                check=False,
            ).returncode
            for arguments in (["seed"], ["build", "--exclude-resource-type", "seed", *excluded])
        ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
