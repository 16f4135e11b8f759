"""What is advised for a file that cannot be read."""

from __future__ import annotations

from gzip import BadGzipFile

import pytest

from dbt_arctic.catalog.damage import unreadable_metadata


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (FileNotFoundError("gone"), "restore the file from a backup"),
        (BadGzipFile("Not a gzipped file"), "restore the file from a backup"),
        (ValueError("Expecting value: line 1 column 1 (char 0)"), "restore the file from a backup"),
        (PermissionError("Permission denied"), "give this user the right"),
        (OSError("When reading information: AWS Error SLOW_DOWN during HeadObject"), "change nothing else"),
        (OSError("AWS Error UNKNOWN (HTTP status 400) ExpiredToken"), "change nothing else"),
        (TimeoutError("timed out"), "change nothing else"),
    ],
)
def test_a_store_that_does_not_answer_is_no_reason_to_change_the_catalog(
    kind: str, error: Exception, advice: str
) -> None:
    told = unreadable_metadata("lake", "shop", "orders", kind, "s3://b/m.json", error)  # type: ignore[arg-type]
    assert advice in told.fix
    assert ("DROP VIEW" in told.fix or "delete the table's row" in told.fix) == ("restore" in advice)
