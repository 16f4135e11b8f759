"""Packaging of dbt-arctic.

Two packages carry names that dbt looks for and live elsewhere in this tree:
``dbt.adapters.arctic`` is ``dbt_arctic/_entry`` and ``dbt.include.arctic`` is ``macros``.
``dbt`` itself belongs to dbt-core: this distribution must never hold a ``dbt/__init__.py``.
"""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
ENTRY = HERE / "dbt_arctic" / "_entry"
VERSION: str = runpy.run_path(str(ENTRY / "__version__.py"))["version"]

DEPENDENCIES = [
    "click>=8.3,<9",
    "dbt-adapters>=1.24.5,<2",
    "dbt-common>=1.39,<2",
    "dbt-core>=1.11,<1.13",
    "dbt-spark>=1.11,<1.13",
    "jinja2>=3.1.3,<4",
    "packaging>=24",
    "pyiceberg[pyarrow,pyiceberg-core,sql-sqlite]>=0.12,<0.13",
    "pyspark[connect]>=4.1.4,<4.2",
    "pyyaml>=6,<7",
    "rich>=14,<16",
    "sqlglot>=30.30,<31",
]

REPORT = [
    "vl-convert-python>=1.9,<2",
]

# pyiceberg's clients for optional catalogs.
CATALOGS = {
    "postgres": ["psycopg[binary]>=3.2,<4"],
    "hive": ["pyiceberg[hive]"],
    "glue": ["pyiceberg[glue]"],
}

ENGINES = {
    "thrift": ["impyla>=0.24,<0.25"],
}

DATABASES = {
    "mariadb": ["pymysql>=1.1,<2", "mysql-replication>=1.0.17,<1.0.18"],
}

KAFKA = [
    "kafka-python>=3,<4",
]

DEVELOPMENT = [
    *KAFKA,
    *(package for packages in CATALOGS.values() for package in packages),
    *DATABASES["mariadb"],
    *ENGINES["thrift"],
    *REPORT,
    "build>=1.3",
    "dbt-tests-adapter>=1.20,<1.21",
    "duckdb==1.5.5",
    "duckdb-extension-avro==1.5.5",
    "duckdb-extension-httpfs==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "hypothesis>=6.140,<7",
    "mypy>=1.19,<2",
    "pandas>=2.2,<3",  # pandas-on-Spark of pyspark 4.1 does not support pandas 3
    "pytest>=9,<10",
    "pytest-timeout>=2.4,<3",
    "pytest-xdist>=3.8,<4",
    "ruff>=0.14,<1",
    "setuptools>=77",
    "tpchgen-cli>=4,<5",
    "trustme>=1.2,<2",
]


class BuildPython(build_py):
    """Copies the entry package into an editable wheel as plain files.

    dbt lists adapters (``dbt init``, ``dbt --version``) by looking for
    ``dbt/adapters/*/__version__.py`` in folders. An editable install serves a mapped
    package from an import hook, which has no folder to look into: dbt would import the
    adapter and yet not list it. All other code, and every macro, stays in the source tree.
    """

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            wheel = Path(self.get_finalized_command("install").install_lib)
            target = wheel / "dbt" / "adapters" / "arctic"
            target.mkdir(parents=True, exist_ok=True)
            for source in sorted(ENTRY.glob("*.py")):
                shutil.copyfile(source, target / source.name)


setup(
    name="dbt-arctic",
    version=VERSION,
    description="A dbt adapter for keyed tables on Apache Iceberg and Spark: cheap updates, incremental pull",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    license_files=["LICENSE"],
    python_requires=">=3.10,<3.14",
    install_requires=DEPENDENCIES,
    extras_require={"dev": DEVELOPMENT, "kafka": KAFKA, "report": REPORT, **CATALOGS, **DATABASES, **ENGINES},
    packages=[
        *find_packages(include=["dbt_arctic", "dbt_arctic.*"], exclude=["dbt_arctic._entry"]),
        "dbt.adapters.arctic",
        "dbt.include.arctic",
    ],
    package_dir={
        "dbt.adapters.arctic": "dbt_arctic/_entry",
        "dbt.include.arctic": "macros",
    },
    package_data={
        "dbt_arctic": ["py.typed", "cli/*.html", "engine/*.xml", "engine/*.java", "engine/*.jar"],
        "dbt.include.arctic": ["**/*.sql", "**/*.yml", "**/*.md"],
    },
    entry_points={"console_scripts": ["dbt-arctic = dbt_arctic.cli.main:main"]},
    cmdclass={"build_py": BuildPython},
    zip_safe=False,
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Database",
        "Typing :: Typed",
    ],
)
