"""An operator's day on a small shop, with the pictures of docs/how-to/a-day-of-an-operator.md.

    python -m benchmarks.operator_day --dir .demo/day --pictures docs/how-to/pictures

The day takes about a quarter of an hour. Pictures of pages need Chromium.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from benchmarks.operator_day.day import PROJECT, Day
from benchmarks.operator_day.pages import find_browser, photograph
from benchmarks.operator_day.terminal import picture, type_in

HERE = Path(__file__).resolve().parents[2]
COMPACTING = "major sales.orders"


@click.command(help=__doc__)
@click.option("--dir", "work", type=click.Path(path_type=Path), default=HERE / ".demo" / "day")
@click.option("--pictures", type=click.Path(path_type=Path), default=HERE / "docs" / "how-to" / "pictures")
@click.option("--orders", default=200_000, show_default=True)
@click.option("--rounds", default=6, show_default=True, help="Runs in the morning; half as many later.")
def main(work: Path, pictures: Path, orders: int, rounds: int) -> None:
    browser = find_browser()
    if browser is None:
        sys.exit("There is no Chromium, which takes the pictures of pages.")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    pictures.mkdir(parents=True, exist_ok=True)
    day = Day(work.resolve(), orders)

    def take(name: str, *arguments: str, typed: str = "", until: str = "") -> None:
        stops = (lambda shown: until in shown) if until else None
        shown = type_in(*arguments, folder=PROJECT, until=stops)
        picture(pictures / f"{name}.svg", f"dbt-arctic {typed or ' '.join(arguments)}", shown)
        print(f"dbt-arctic {' '.join(arguments)}", flush=True)

    # The morning: the shop is built, and changes come in. At times only what is near the source runs.
    day.run()
    type_in("savepoint", "orders", "opening", folder=PROJECT)
    for number in range(rounds):
        day.run()
        if number % 2:
            day.run("--select", "orders", "events")
    take("status", "status")
    take("plan", "compact", "--plan")
    # Noon: what is due is done.
    take("progress", "compact", until=COMPACTING)
    # The afternoon: more changes; at its end, the rest, and what is kept of old versions.
    for _ in range(rounds // 2):
        day.run()
    take("learned", "compact", "--plan")
    take("compact", "compact", "--trim-grace", "1m", typed="compact --trim-grace 1m")
    take("history", "history", "--compaction", "--limit", "14")
    day.run("--select", "orders", "events")
    take("expire", "expire", "--older-than", "1h", "--dry-run")
    take("verify", "verify")
    page = work / "report.html"
    type_in("report", "--output", str(page), folder=PROJECT)
    for name, width, height, dark, place in (
        ("report-top", 1080, 900, False, ""),
        ("report-charts", 1080, 980, False, "over-time"),
        ("report-phone", 390, 1100, True, ""),
    ):
        photograph(
            browser, page, pictures / f"{name}.png", width=width, height=height, dark=dark, place=place
        )
    _require_small(pictures)


def _require_small(pictures: Path) -> None:
    sizes = {file.name: file.stat().st_size for file in sorted(pictures.iterdir())}
    for name, size in sizes.items():
        print(f"{name}: {size / 1000:.0f} kB")
    if max(sizes.values()) > 200_000 or sum(sizes.values()) > 1_000_000:
        sys.exit("The pictures are too large for the repository.")


if __name__ == "__main__":
    os.chdir(HERE)
    main()
