"""The ``dbt-arctic`` command line: reads arguments, calls the layer below, prints.

It must not decide anything about tables or plans.
"""

from __future__ import annotations

import click

from dbt.adapters.arctic.__version__ import version


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version, prog_name="dbt-arctic")
def main() -> None:
    """Look after the keyed tables of a dbt project."""
