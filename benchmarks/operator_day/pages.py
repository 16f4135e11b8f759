"""A page as a person sees it: in Chromium, wide by day, and on a phone by night."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

_DARK = "--blink-settings=preferredColorScheme=0"
_FRAME = """<!doctype html>
<style>
body {{ margin: 0; height: 100vh; display: grid; place-items: center; background: #8a94a3; overflow: hidden }}
iframe {{ border: 0; width: {width}px; height: {height}px }}
</style>
<iframe src="{page}#{place}"></iframe>"""


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def photograph(
    browser: str, page: Path, picture: Path, *, width: int, height: int, dark: bool = False, place: str = ""
) -> None:
    """:param place: the part of the page at which it begins.

    :raises RuntimeError: the browser made no picture.
    """
    with tempfile.TemporaryDirectory() as folder:
        framed = Path(folder) / "framed.html"
        # A window cannot be as narrow as a phone; a frame in it can.
        framed.write_text(
            _FRAME.format(width=width, height=height, page=page.resolve().as_uri(), place=place),
            encoding="utf-8",
        )
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={max(width, 500)},{height}", f"--screenshot={picture.resolve()}"]
        command += [_DARK] if dark else []
        done = subprocess.run([*command, framed.as_uri()], capture_output=True, check=False)
        if done.returncode or not picture.exists():
            raise RuntimeError(f"{browser} made no picture: {done.stderr.decode()[-500:]}")
