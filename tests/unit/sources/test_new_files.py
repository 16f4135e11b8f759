"""Which files a model reads: compared with a plain model of what it has read so far."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import ListedFile
from dbt_arctic.errors import SourceFileChanged
from dbt_arctic.sources.file_settings import ChangedFiles, FileSource
from dbt_arctic.sources.file_sql import rows_of
from dbt_arctic.sources.new_files import new_files
from dbt_arctic.sources.source_planner import no_rows

CLICKS = FileSource("landing.clicks", "/data", "json", columns={"id": "bigint", "we`ird": "string"})
A, B, C = (ListedFile(f"/data/{name}.json", 10, 1) for name in "abc")


def test_a_first_run_reads_what_is_there() -> None:
    assert new_files(CLICKS, [C, A], [A, B, C], None, "m") == [A, C]


def test_a_file_that_was_consumed_is_not_read_again() -> None:
    assert new_files(CLICKS, [A, B, C], [A, B, C], [A], "m") == [B, C]
    assert new_files(CLICKS, [A], [A, B], [A, B], "m") == []  # one that is gone has been read


def test_an_old_time_of_modification_hides_no_file() -> None:
    late = B._replace(modified_ms=1)
    assert new_files(CLICKS, [A, late], [A, late], [A], "m") == [late]


@pytest.mark.parametrize("changed", [A._replace(modified_ms=11), A._replace(size_bytes=2)])
def test_a_changed_file_is_treated_as_the_source_says(changed: ListedFile) -> None:
    present, listed = [changed, B], [A, changed, B]
    with pytest.raises(SourceFileChanged, match=r"a file of .* changed after m had read it"):
        new_files(CLICKS, present, listed, [A], "m")
    assert new_files(replace(CLICKS, changed_files="reread"), present, listed, [A], "m") == [changed, B]
    assert new_files(replace(CLICKS, changed_files="ignore"), present, listed, [A], "m") == [B]


def test_a_file_that_changed_before_it_was_read_is_read_as_it_is() -> None:
    changed = B._replace(modified_ms=11)
    assert new_files(CLICKS, [A, changed], [A, B, changed], [A], "m") == [changed]


def test_a_file_that_disappeared_unread_is_an_error() -> None:
    with pytest.raises(SourceFileChanged, match=r"2 files .* read them: /data/b\.json, /data/c\.json"):
        new_files(CLICKS, [A], [A, B, C], [A], "m")
    assert new_files(replace(CLICKS, changed_files="ignore"), [A, C], [A, B, C], [A], "m") == [C]


@pytest.mark.parametrize("policy", ["fail", "reread", "ignore"])
@pytest.mark.parametrize("seed", range(60))
def test_random_folders_are_read_as_a_plain_model_says(seed: int, policy: ChangedFiles) -> None:
    """Files come, change and go; runs list the folder, and some end before they commit."""
    rng = random.Random(seed)
    source = replace(CLICKS, changed_files=policy)
    present: dict[str, ListedFile] = {}
    listed: set[ListedFile] = set()
    consumed: set[ListedFile] | None = None
    read: list[ListedFile] = []  # by the oracle: what a committed run has read, in order
    for clock in range(30):
        for _ in range(rng.randrange(3)):
            path = f"/data/{rng.randrange(8)}.json"
            if path in present and rng.random() < 0.3:
                del present[path]
            elif path not in present or rng.random() < 0.3:
                present[path] = ListedFile(path, rng.randrange(clock + 1), rng.randrange(9))
        listed |= set(present.values())
        known = set() if consumed is None else consumed
        paths = {file.path for file in known}
        changed = {file for file in present.values() if file.path in paths and file not in known}
        lost = {file.path for file in listed - known} - set(present) - paths
        refused = consumed is not None and (
            (bool(changed) and policy == "fail") or (bool(lost) and policy != "ignore")
        )
        try:
            files = new_files(source, list(present.values()), listed, consumed, "m")
        except SourceFileChanged:
            assert refused
            if rng.random() < 0.5:  # a full refresh
                consumed, read = set(listed), list(present.values())
            continue
        assert not refused
        expected = {file for file in present.values() if file not in known}
        if policy == "ignore":
            expected -= changed
        assert set(files) == expected
        assert files == sorted(files)
        if rng.random() < 0.7:
            consumed = set(listed)
            read += files
    assert len(read) == len(set(read))


def test_random_folders_detect_a_rule_without_late_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_time(source: FileSource, present: Any, listed: Any, consumed: Any, model: str) -> list[ListedFile]:
        newest = max((file.modified_ms for file in consumed or ()), default=-1)
        found = rule(source, present, listed, consumed, model)
        return [file for file in found if file.modified_ms > newest]

    rule = new_files
    monkeypatch.setattr("tests.unit.sources.test_new_files.new_files", by_time)
    with pytest.raises(AssertionError):
        test_random_folders_are_read_as_a_plain_model_says(1, "reread")


def test_names_are_quoted() -> None:
    assert rows_of(CLICKS, "v`w") == (
        "SELECT `id`, `we``ird`, `_source_file`, `_source_modified`, 'U' AS `_action`\nFROM `v``w`"
    )
    assert (
        no_rows("a*/b", {"we`ird": "string"})
        == "/* a* /b */\nSELECT CAST(NULL AS string) AS `we``ird`\nWHERE false"
    )
