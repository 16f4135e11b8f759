"""A command of ours finds a profile as dbt does, outside of any dbt command."""

from __future__ import annotations

import contextvars
from pathlib import Path

import pytest

from dbt_arctic.adapter.project import Target, load_target
from dbt_arctic.errors import ProfileError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "dbt_project.yml").write_text("{name: shop, profile: shop}", encoding="utf-8")
    (tmp_path / "profiles.yml").write_text(
        "shop: {target: a, outputs: {a: {type: arctic, schema: s, warehouse: \"{{ env_var('LAKE') }}\"}}}",
        encoding="utf-8",
    )
    return tmp_path


def outside_of_dbt(folder: Path) -> Target:
    """Where no dbt command of this process has left anything behind."""
    return contextvars.Context().run(load_target, folder, folder)


def test_a_profile_may_read_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", "/lake")
    assert outside_of_dbt(project).credentials.warehouse == "/lake"


def test_a_variable_that_is_not_set_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKE", raising=False)
    with pytest.raises(ProfileError, match="LAKE"):
        outside_of_dbt(project)


def test_a_target_that_the_profile_lacks_is_not_a_matter_of_dbt_debug(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", "/lake")
    with pytest.raises(ProfileError, match="does not have a target named 'prod'") as caught:
        contextvars.Context().run(load_target, project, project, "prod")
    assert "dbt debug" not in caught.value.fix
    assert "add this one" in caught.value.fix


def test_artifacts_are_where_dbt_leaves_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", "/lake")
    monkeypatch.delenv("DBT_TARGET_PATH", raising=False)
    assert outside_of_dbt(project).artifacts == project / "target"
    (project / "dbt_project.yml").write_text(
        '{name: shop, profile: shop, target-path: "built/{{ target.name }}"}', encoding="utf-8"
    )
    assert outside_of_dbt(project).artifacts == project / "built" / "a"
    monkeypatch.setenv("DBT_TARGET_PATH", "chosen")
    assert outside_of_dbt(project).artifacts == project / "chosen"


def test_a_target_path_may_read_the_variables_of_dbt_1_12(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", "/lake")
    monkeypatch.delenv("DBT_TARGET_PATH", raising=False)
    # As dbt 1.12 has it, whichever dbt runs here.
    of_file = {str(project): {"folder": "built"}}
    monkeypatch.setattr("dbt.config.project.vars_data_from_root", of_file.__getitem__, raising=False)
    (project / "dbt_project.yml").write_text(
        "{name: shop, profile: shop, target-path: \"{{ var('folder') }}\"}", encoding="utf-8"
    )
    assert outside_of_dbt(project).artifacts == project / "built"


def test_a_target_path_that_cannot_be_read_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE", "/lake")
    monkeypatch.delenv("DBT_TARGET_PATH", raising=False)
    (project / "dbt_project.yml").write_text(
        "{name: shop, profile: shop, target-path: \"{{ env_var('NOWHERE') }}\"}", encoding="utf-8"
    )
    with pytest.raises(ProfileError, match=r"target-path[\s\S]*NOWHERE[\s\S]*DBT_TARGET_PATH"):
        outside_of_dbt(project)
