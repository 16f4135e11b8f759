"""Values that all rows share, as literals: of what Python was not given as it is stored there is none."""

from __future__ import annotations

import pytest

from dbt_arctic.auto.recorded_values import literal_of


@pytest.mark.parametrize(
    ("found", "literal"),
    [
        (("caf\u00e9", "string"), "CAST('caf\u00e9' AS string)"),
        (("caf\ufffd", "string"), None),
        ((None, "string"), "CAST(NULL AS string)"),
    ],
)
def test_bytes_that_are_no_text_have_no_literal(found: tuple[str | None, str], literal: str | None) -> None:
    assert literal_of([found]) == literal
    assert literal_of([]) is None
