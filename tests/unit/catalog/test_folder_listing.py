"""A folder's files, as the standard library's walk finds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.errors import CatalogUnavailable


def test_all_files_below_a_folder_are_listed(tmp_path: Path) -> None:
    for name in ("a.json", "day=1/b c.json", "day=1/deep/er/%20.json", "empty"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name[:3])
    (tmp_path / "no_files").mkdir()
    os.utime(tmp_path / "a.json", ns=(0, 1_234_567_891_011))
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    expected = {
        ListedFile(str(path), path.stat().st_mtime_ns // 1_000_000, path.stat().st_size)
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert len(expected) == 4
    assert set(list_files(str(tmp_path), {})) == expected
    assert set(list_files(f"file://{tmp_path}", {})) == expected
    assert ListedFile(str(tmp_path / "a.json"), 1_234_567, 3) in expected


def test_a_missing_folder_has_no_files(tmp_path: Path) -> None:
    assert list_files(str(tmp_path / "nothing"), {}) == []


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogUnavailable, match="cannot be listed"):
        list_files(str(tmp_path / "file"), {})
