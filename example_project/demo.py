"""The demo: a shop's warehouse is loaded, changed in rounds, compacted, and compared with full rebuilds.

    python example_project/demo.py --scale 0.01 --rounds 3

The exit code is 1 when a model differs from its rebuild, and 2 when something failed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from feed.land import LandingFailed  # noqa: E402
from feed.tpch import GeneratorError  # noqa: E402
from feed.write import rounds_written  # noqa: E402
from walkthrough.dbt_process import DbtFailed  # noqa: E402
from walkthrough.report import (  # noqa: E402
    last_line,
    print_differences,
    print_next,
    print_phases,
    print_stages,
    write_report,
)
from walkthrough.stages import Walkthrough  # noqa: E402

STEPS = ("feed", "load", "changes", "compact", "compare", "test")


def _steps(_context: click.Context, _option: click.Parameter, value: str) -> set[str]:
    steps = {step.strip() for step in value.split(",")}
    if wrong := steps - set(STEPS):
        raise click.BadParameter(f"{', '.join(sorted(wrong))}: the steps are {', '.join(STEPS)}")
    return steps


@click.command(help=__doc__)
@click.option("--scale", default=0.01, show_default=True, help="TPC-H scale factor; 1 is a gigabyte.")
@click.option("--rounds", default=3, show_default=True, help="Rounds of changes after the load.")
@click.option(
    "--dir", "work", type=click.Path(path_type=Path), default=HERE.parent / ".demo", show_default=".demo"
)
@click.option(
    "--steps",
    default=",".join(STEPS),
    show_default=True,
    callback=_steps,
    help="Only these, on what an earlier call left; 'feed' starts over and empties the folder.",
)
@click.option(
    "--kafka",
    default="",
    envvar="SHOP_KAFKA",
    metavar="HOST:PORT",
    help="A broker whose topics shop-demo.* take the place of files; 'feed' deletes them first.",
)
def main(scale: float, rounds: int, work: Path, steps: set[str], kafka: str) -> None:
    began = time.monotonic()
    console = Console()
    demo = Walkthrough(work.resolve(), console, comparing="compare" in steps, kafka=kafka)
    try:
        if "feed" in steps:
            demo.write_feed(scale, rounds)
        if "load" in steps:
            demo.load()
        if "changes" in steps:
            demo.changes()
        if "compact" in steps:
            demo.compact()
        if steps == {"compare"}:
            demo.compare_only()
        if "test" in steps:
            demo.test()
    except (DbtFailed, GeneratorError, LandingFailed) as error:
        console.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    print_stages(console, demo.stages)
    print_phases(console, demo.seconds)
    print_differences(console, demo.stages)
    write_report(demo.work / "report.json", demo.stages)
    print_next(console, HERE, demo.work, kafka)
    print(last_line(demo.stages, rounds_written(demo.feed), time.monotonic() - began))
    sys.exit(1 if any(stage.differences for stage in demo.stages) else 0)


if __name__ == "__main__":
    main()
