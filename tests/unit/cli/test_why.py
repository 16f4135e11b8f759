"""How ``dbt-arctic why`` shows commits without a version, topics, plain upstreams, and gaps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.cli import output, why
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.provenance import Feed, Gap, Provenance, Read, Step
from dbt_arctic.maintenance.row_change import RowChange, TypedValues, change_of
from tests.unit.cli.conftest import NOW

COMMIT = Snapshot(
    8432123456789012345, None, 1, NOW, "append", {"arctic.run": "5f3c2a10-8c4e:model.shop.orders"}
)
VERSION = Version(1, 8432123456789012345, 7432123456789012345)
OFFSETS = '{"0": 12.5}'
TABLE = KeyedTable(
    name=Name("lake", "shop", "orders"),
    generation=Generation(1, "base", "change"),
    key=("id",),
    layout=Layout(2, "id", (), ("id",)),
    columns=(Column("id", "bigint"), Column("note", "string")),
)


def changed(kind: str, **fields: object) -> RowChange:
    change = change_of(kind, {"id": 1, "note": "old"}, {"id": 1, "note": None})
    return RowChange(**{**vars(change), "time_ms": NOW, **fields})  # type: ignore[arg-type]


def explained() -> Provenance:
    reads = (
        Read("orders-topic", None, OFFSETS),
        Read("lake.raw.plain", "123456789012345678", "223456789012345678"),
        Read("lake.raw.keyed", VERSION.token, VERSION.token),
    )
    steps = (
        Step(changed("pull", commit=COMMIT), 1, VERSION, reads),
        Step(changed("upsert"), 1, None, ()),
        Step(changed("manual", time_ms=None), 1, None, ()),
        Step(changed("compaction of 2", commit=COMMIT, is_base=True), 1, None, ()),
    )
    feeds = (
        Feed("lake.shop.totals", VERSION.token, NOW, True),
        Feed("lake.shop.shown", None, None, None, "a view"),
    )
    gaps = (Gap(1, NOW, "commits have expired"), Gap(0, None, "it no longer exists"))
    return Provenance(TABLE, {"id": "1"}, None, TABLE.types, steps, feeds, gaps)


@pytest.mark.parametrize("width", [None, 80, 120])
def test_what_has_no_version_of_its_own_shows_none(
    width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    found = explained()
    why._print(found, found.steps)
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert text.count("expired") == 2, "the upsert, and the gap"
    assert "The row is deleted." in lines
    assert all(line in text for line in ("orders-topic", OFFSETS, "raw.plain", "223456789012345678"))
    assert "Generation 0 is left out: it no longer exists." in text
    if width is None:
        assert f"\tpull\t{COMMIT.summary['arctic.run']}\tnote: old → NULL" in text
        assert f"raw.keyed\t{VERSION.token}\t{VERSION.token}\n" in text
    else:
        assert [line for line in lines if len(line) > width] == []
        assert "1.8432123.7432123" in text
        assert VERSION.token not in text


def test_a_row_that_is_only_a_key_is_shown_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    found = replace(explained(), row={"id": 1})
    why._print(found, ())
    assert "\nThe row now: it has no columns other than the key\n" in capsys.readouterr().out
    why._print(replace(found, row={"id": 1, "note": "x"}), ())
    assert "\nThe row now: note = x\n" in capsys.readouterr().out


def test_values_of_an_earlier_generation_are_shown_in_its_own_types(
    capsys: pytest.CaptureFixture[str],
) -> None:
    then = {"id": "bigint", "place": "struct<a:int,b:int>", "kinds": "map<string,int>", "gone": "binary"}
    now = {"id": "bigint", "place": "struct<a:int,c:int>", "kinds": "array<int>", "added": "int"}
    before = TypedValues({"id": 1, "place": {"a": 1, "b": 2}, "kinds": {"k": 1}, "gone": b"\n"}, then)
    after = TypedValues({"id": 1, "place": {"a": 1, "c": 3}, "kinds": [1], "added": 4}, now)
    found = replace(explained(), row=after, types=now, steps=())
    step = Step(change_of("build", before, after), 2, None, ())
    why._print(found, (step,))
    text = capsys.readouterr().out
    for line in (
        'place: {"a": 1, "b": 2} → {"a": 1, "c": 3}',
        'kinds: {"k": 1} → [1]',
        "added: no column → 4",
        "gone: 0A → no column",
    ):
        assert line in text
    (commit,) = why.as_dict(found, (step,))["commits"]
    assert commit["before"] == {"id": 1, "place": '{"a": 1, "b": 2}', "kinds": '{"k": 1}', "gone": "0A"}


def test_the_readers_of_a_row_that_never_existed_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = replace(explained(), steps=(), incomplete=())
    why._print(found, ())
    text = capsys.readouterr().out
    assert "No row has this key in any version that is left." in text
    assert "totals" not in text
