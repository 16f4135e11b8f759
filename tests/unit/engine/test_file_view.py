"""Files that Spark reads together."""

from __future__ import annotations

from dbt_arctic.engine.api import FileRead
from dbt_arctic.engine.file_view import alike_folders


def test_files_are_read_together_if_their_folders_have_the_same_columns() -> None:
    groups = [
        ["/in/a", "/in/b/c", "/in/d/e"],
        ["/in/day=1/a", "/in/day=2/b", "/in/day=1/more/c=.json"],
        ["/in/day=1/hour=1/a", "/in/day=1/hour=2/x/y/b"],
        ["/in/shop/day=1/a"],
        ["/in/a=1/shop/day=1/a"],
    ]
    mixed = [path for at in range(3) for group in groups for path in group[at : at + 1]]
    assert alike_folders(FileRead("json", mixed, "/in", "", {})) == groups
    # What is above the folder does not matter.
    assert len(alike_folders(FileRead("json", ["/x=1/in/a", "/x=1/in/b/c"], "/x=1/in", "", {}))) == 1
