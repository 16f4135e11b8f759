"""The folder of a file source has one path, by which its files are known."""

from __future__ import annotations

from pathlib import Path

from dbt_arctic.adapter.file_sources import file_source


def path_of(given: str, project: Path) -> str:
    settings = {"from": "files", "path": given, "format": "text"}
    declared = {"name": "landing.clicks", "where": "x.yml", "settings": settings, "columns": {}}
    return file_source(declared, str(project)).path


def test_a_folder_has_one_path_however_it_is_written(tmp_path: Path) -> None:
    project, folder = tmp_path / "project", tmp_path / "landing" / "clicks"
    folder.mkdir(parents=True)
    project.mkdir()
    for given in (str(folder), "../landing/clicks", "./../landing/./clicks/", f"{project}/../landing/clicks"):
        assert path_of(given, project) == str(folder), given
    assert path_of("landing", project) == str(project / "landing")


def test_the_folder_is_the_one_that_the_machine_opens(tmp_path: Path) -> None:
    real, link = tmp_path / "real" / "project", tmp_path / "project"
    real.mkdir(parents=True)
    link.symlink_to(real)
    (tmp_path / "real" / "landing").mkdir()
    # The folder above a link is that of its target.
    assert path_of("../landing", link) == str(tmp_path / "real" / "landing")
    assert path_of("landing", link) == str(link / "landing"), "a link may be given another target"
