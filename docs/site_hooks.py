"""Hooks of MkDocs: pages of the repository outside of ``docs`` are pages of the site, too.

Links in the repository lead to files. On the site, a link to a file that is not a page becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "example_project/README.md",
    "benchmarks/README.md",
    "benchmarks/results/README.md",
)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the repository, and the pictures next to them."""
    for name in _PAGES:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text("utf-8")))
    for picture in sorted((ROOT / "benchmarks" / "results").glob("*.svg")):
        name = picture.relative_to(ROOT).as_posix()
        files.append(File.generated(config, f"project/{name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links of the repository to pages of the site."""
    here = page.file.src_uri

    def replaced(match: re.Match[str]) -> str:
        image, text, target = match.groups()
        path, hash_sign, anchor = target.partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match.group(0)
        place = place_on_site(here, path)
        if files.get_file_from_path(place) is None:
            return text if (ROOT / in_repository(here, path)).exists() else match.group(0)
        relative = posixpath.relpath(place, posixpath.dirname(here) or ".")
        return f"{image}[{text}]({relative}{hash_sign}{anchor})"

    return _LINK.sub(replaced, markdown)


def in_repository(page: str, path: str) -> str:
    """The path in the repository to which a link of a page leads."""
    source = page.removeprefix("project/") if page.startswith("project/") else f"docs/{page}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path))


def place_on_site(page: str, path: str) -> str:
    """The path on the site of a file of the repository.

    >>> place_on_site("project/README.md", "docs/how-to/load-files.md")
    'how-to/load-files.md'
    >>> place_on_site("README.md", "../CHANGELOG.md")
    'project/CHANGELOG.md'
    """
    place = in_repository(page, path)
    if place.startswith("docs/"):
        return place.removeprefix("docs/")
    return f"project/{place}/README.md" if (ROOT / place).is_dir() else f"project/{place}"
