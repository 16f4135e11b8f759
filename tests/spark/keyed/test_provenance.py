"""The history of a row is compared with a list that a plain dict and a list keep of each commit."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.row_versions import complete_snapshots
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.maintenance.provenance import Provenance, explain_row
from dbt_arctic.maintenance.restore import undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_base, load_change
from tests.extent import extent
from tests.spark.keyed.test_lookups import BUCKETS, TYPES, N, files_read, rows_of_range

Row = dict[str, Any]
Event = tuple[str, str, Row | None, Row | None]
"""Kind, effect, the row before, the row after."""

KEYS = range(4)


@dataclass
class Ledger:
    """What is done to a table, and the events of each key, oldest first."""

    orders: Any
    rows: dict[int, Row] = field(default_factory=dict)
    events: dict[int, list[Event]] = field(default_factory=dict)
    versions: list[tuple[str, dict[int, Row]]] = field(default_factory=list)

    def _note(self, kind: str, key: int, after: Row | None) -> None:
        before = self.rows.get(key)
        if before is None:
            effect = "unchanged" if after is None else "new"
        elif after is None:
            effect = "deleted"
        else:
            effect = "unchanged" if before == after else "changed"
        self.events.setdefault(key, []).append((kind, effect, before, after))
        self.rows = (
            {**self.rows, key: after}
            if after is not None
            else {one: row for one, row in self.rows.items() if one != key}
        )

    def _done(self) -> None:
        self.versions.append((self.orders.version.token, self.rows))

    def build(self, rows: list[Row]) -> None:
        self.orders.build(rows)
        new = {row["id"]: row for row in rows}
        for key in sorted({*self.rows, *new}):
            self._note("build", key, new.get(key))
        self.versions = []
        self._done()

    def apply(self, upserts: list[Row], deletes: list[int] = []) -> None:  # noqa: B006 # not changed
        self.orders.apply(upserts, [{"id": key} for key in deletes])
        for row in upserts:
            self._note("upsert", row["id"], row)
        for key in deletes:
            self._note("upsert", key, None)
        self._done()

    def roll_back(self, at: int) -> None:
        token, then = self.versions[at]
        now = self.rows
        roll_back(self.orders.session.context, self.orders.name, token)
        for key in sorted({*now, *then}):
            if now.get(key) != then.get(key):
                self._note(f"rollback to {token}", key, then.get(key))
        self._done()

    def explain(self, key: int) -> Provenance:
        return explain_row(self.orders.session.context, self.orders.name, [f"id={key}"])

    def check(self, keys: Any = KEYS) -> None:
        for key in keys:
            found = self.explain(key)
            assert events_of(found) == self.events.get(key, []), key
            assert found.row == self.rows.get(key)
            assert found.incomplete == ()


def events_of(found: Provenance) -> list[Event]:
    steps = [step.change for step in reversed(found.steps)]
    assert all(step.is_before_known for step in steps)
    return [(step.kind, step.effect, plain(step.before), plain(step.after)) for step in steps]


def plain(row: Any) -> Row | None:
    return None if row is None else dict(row)


def row(key: int, amount: int) -> Row:
    return {"id": key, "amount": amount}


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(extent(6, 30)))
def test_a_row_has_the_history_that_its_commits_gave_it(shop: Any, seed: int) -> None:
    draw = random.Random(seed)
    ledger = Ledger(shop.table())
    ledger.build([row(key, key) for key in KEYS if key != 3])
    for _ in range(extent(8, 14)):
        match draw.choice(["apply", "apply", "apply", "compact", "compact later", "rollback", "refresh"]):
            case "apply":
                keys = draw.sample(list(KEYS), 2)
                ledger.apply([row(keys[0], draw.randrange(3))], keys[1:] if draw.random() < 0.5 else [])
            case "compact":
                ledger.orders.compact()
            case "compact later":  # merged, but not trimmed
                ledger.orders.compact(grace=3600)
            case "rollback":
                ledger.roll_back(draw.randrange(len(ledger.versions)))
            case "refresh" if draw.random() < 0.3:
                if ledger.orders.table.previous is None:  # only the previous generation is kept
                    ledger.build([row(key, draw.randrange(3)) for key in KEYS if draw.random() < 0.7])
    ledger.check()


@pytest.mark.modelled
@pytest.mark.parametrize("seed", range(extent(6, 30)))
def test_with_a_sequence_the_greatest_value_wins_however_late(shop: Any, seed: int) -> None:
    draw = random.Random(seed)
    orders = shop.table("orders", {"id": "bigint", "amount": "int", "at": "int"}, sequence_by="at")
    current: Row | None = {"id": 1, "amount": 0, "at": 5}
    newest, is_deleted = 5, False
    orders.build([current])
    expected: list[Event] = [("build", "new", None, current)]
    for number in range(extent(8, 14)):
        if draw.random() < 0.3:
            orders.compact()
        at, delete = draw.randrange(3, 8), draw.random() < 0.4
        written: Row | None = {"id": 1, "amount": number, "at": at}
        action = "D" if delete else "U"
        orders.upsert_sql(orders.model([{**(written or {}), "_action": action}], actions=True))
        # A delete wins over an upsert with the same value.
        wins = at > newest or (at == newest and (delete or not is_deleted))
        if not wins:
            expected.append(("upsert", "late", current, current))
            continue
        written = None if delete else written
        if current is None:
            effect = "unchanged" if written is None else "new"
        elif written is None:
            effect = "deleted"
        else:
            effect = "unchanged" if current == written else "changed"
        expected.append(("upsert", effect, current, written))
        current, newest, is_deleted = written, at, delete
    found = explain_row(orders.session.context, orders.name, ["id=1"])
    assert events_of(found) == expected
    assert found.row == current


def counted(orders: Any) -> tuple[Context, list[str]]:
    """The context of a session, and the statements that it runs."""
    context, ran = orders.session.context, []

    def query(sql: str) -> list[tuple[Any, ...]]:
        ran.append(sql)
        found: list[tuple[Any, ...]] = context.query(sql)
        return found

    return replace(context, query=query), ran


@pytest.mark.modelled
def test_the_number_of_statements_does_not_grow_with_the_history(shop: Any) -> None:
    ledger = Ledger(shop.table())
    ledger.build([row(key, 0) for key in KEYS])
    for number in range(12):
        ledger.apply([row(number % 4, number)])
        ledger.orders.compact()
    context, ran = counted(ledger.orders)
    found = explain_row(context, ledger.orders.name, ["id=1"])
    assert events_of(found) == ledger.events[1]
    # Whether the value is one of the type, which reads nothing; the stored versions of the row.
    assert len(ran) == 2
    assert len(found.steps) == 4
    ledger.build([row(1, 1)])
    ran.clear()
    explain_row(context, ledger.orders.name, ["id=1"])
    assert len(ran) == 3, "one for each generation"


@pytest.mark.modelled
def test_the_place_of_each_version_is_where_it_is_read(shop: Any) -> None:
    ledger = Ledger(shop.table())

    def stored() -> list[str]:
        return [step.change.stored for step in reversed(ledger.explain(1).steps)]

    ledger.build([row(1, 1)])
    assert stored() == ["base"]
    ledger.apply([row(1, 2)])
    assert stored() == ["base", "pending"]
    ledger.orders.compact(grace=3600)
    assert stored() == ["older versions", "merged"]
    ledger.orders.compact(grace=0)
    assert stored() == ["older versions", "base"]
    ledger.apply([], [1])
    assert stored() == ["older versions", "base", "pending"]


@pytest.mark.modelled
def test_what_was_compacted_away_is_reported(shop: Any) -> None:
    ledger = Ledger(shop.table())
    ledger.build([row(1, 1), row(2, 2)])
    ledger.apply([row(1, 10)])
    ledger.orders.compact()
    since = shop.main.context.now_ms()
    ledger.apply([row(1, 20)])
    claims = find_claims(shop.main.catalog, "lake")
    expire_versions(shop.main.context, ledger.orders.name, claims, since)
    ledger.orders.compact()
    expire_versions(shop.main.context, ledger.orders.name, claims, shop.main.context.now_ms())
    found = ledger.explain(1)
    assert found.row == row(1, 20)
    newest = found.steps[0].change
    assert (newest.is_before_known, newest.before) in ((True, row(1, 10)), (False, None))
    (gap,) = found.incomplete
    assert gap.since_ms is not None
    assert gap.since_ms >= since - 1000
    never_changed = ledger.explain(2)
    assert [(step.change.effect, step.change.stored) for step in never_changed.steps] == [("written", "base")]
    assert never_changed.row == row(2, 2)


@pytest.mark.modelled
def test_an_undone_full_refresh_is_part_of_the_history(shop: Any) -> None:
    ledger = Ledger(shop.table())
    ledger.build([row(1, 1)])
    ledger.build([row(1, 2)])
    undo_full_refresh(shop.main.context, ledger.orders.name)
    found = ledger.explain(1)
    assert found.row == row(1, 1)
    assert [(step.generation, plain(step.change.after)) for step in found.steps] == [
        (2, row(1, 2)),
        (1, row(1, 1)),
    ]


@pytest.mark.modelled
def test_runs_name_what_they_read_and_readers_what_they_have(shop: Any) -> None:
    orders = shop.table()
    totals = shop.consumer("totals", orders)
    orders.build([row(1, 1), row(2, 2)])
    totals.run()
    first = orders.version
    orders.upsert([row(1, 5)])
    second = orders.version
    context = shop.main.context

    def feeds(key: int) -> list[tuple[str, str | None, bool | None]]:
        found = explain_row(context, orders.name, [f"id={key}"], ["lake.x.listed", totals.orders.name.dotted])
        return [(one.name, one.version, one.has_read) for one in found.feeds]

    listed = ("lake.x.listed", None, None)
    assert feeds(1) == [(totals.orders.name.dotted, first.token, False), listed]
    assert feeds(2) == [(totals.orders.name.dotted, first.token, True), listed]
    totals.run()
    assert feeds(1) == [(totals.orders.name.dotted, second.token, True), listed]
    found = explain_row(context, totals.orders.name, ["id=1", "source=orders"])
    assert [[(one.upstream, one.before, one.to) for one in step.read] for step in found.steps] == [
        [(orders.name.dotted, first.token, second.token)],
        [(orders.name.dotted, None, first.token)],
    ]
    newest = found.steps[0]
    assert newest.change.kind == "pull"
    commits = load_change(shop.main.catalog, totals.orders.table).history()
    assert newest.change.commit == commits[0]
    assert newest.version == totals.orders.version


@pytest.mark.modelled
def test_a_merged_commit_whose_base_is_the_oldest_comes_before_it(shop: Any) -> None:
    ledger = Ledger(shop.table())
    ledger.build([row(1, 1)])
    ledger.apply([row(1, 10)])
    ledger.orders.compact(grace=3600)
    context = shop.main.context
    expire_versions(context, ledger.orders.name, find_claims(shop.main.catalog, "lake"), context.now_ms())
    (only,) = ledger.explain(1).steps
    assert (only.change.kind, only.change.effect, only.change.stored) == ("upsert", "written", "merged")
    assert (only.change.is_before_known, only.change.after) == (False, row(1, 10))


@pytest.mark.modelled
def test_what_another_program_changed_is_reported(shop: Any) -> None:
    ledger = Ledger(shop.table())
    ledger.build([row(key, key) for key in KEYS])
    cursor = shop.main.connection.cursor()
    cursor.execute(f"DELETE FROM {ledger.orders.table.base.sql} WHERE id = 1")
    assert events_of(ledger.explain(1))[1:] == [("manual", "deleted", row(1, 1), None)]
    ledger.orders.upsert([row(1, 5), row(2, 5)])
    of_both = [("manual", "deleted", row(1, 1), None), ("upsert", "new", None, row(1, 5))]
    assert events_of(ledger.explain(1))[1:] == of_both
    assert events_of(ledger.explain(2))[1:] == [("upsert", "changed", row(2, 2), row(2, 5))]
    cursor.execute(f"DELETE FROM {ledger.orders.table.change.sql} WHERE id = 2")
    assert events_of(ledger.explain(2))[2:] == [("manual", "changed", row(2, 5), row(2, 2))]
    ledger.orders.compact()
    assert events_of(ledger.explain(1))[1:] == of_both
    ledger.check([0])


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1"], "neither column=value nor a JSON object"),
        (["id=1"], "also contains line"),
        (["id=1", "line=2", "amount=3"], "amount is not part of the key"),
        (["id=1", "ID=2", "line=1"], "id is given twice"),
        (["id=x", "line=1"], "'x' is not a value of id, which is bigint"),
        (['{"id": null, "line": 1}'], "id is null"),
        (['{"id": [1], "line": 1}'], "neither a string nor a number"),
        (["{id: 1}"], "not a JSON object"),
    ],
)
def test_a_key_that_is_not_one_says_how_to_write_it(shop: Any, texts: list[str], message: str) -> None:
    orders = shop.table("orders", {"id": "bigint", "line": "int", "amount": "int"}, unique_key=["id", "line"])
    orders.build([{"id": 1, "line": 1, "amount": 1}])
    with pytest.raises(ConfigError, match=message) as caught:
        explain_row(shop.main.context, orders.name, texts)
    assert "id (bigint), line (int)" in caught.value.why
    for form in (["line=42", "ID=42"], ['{"id": "42", "line": 42}']):
        assert explain_row(shop.main.context, orders.name, form).key == {"id": "42", "line": "42"}
    assert """'id=42' 'line=42'; or as JSON: '{"id": "42", "line": "42"}'""" in caught.value.fix


def test_on_spark_a_key_costs_the_matching_files_of_its_bucket(shop: Any) -> None:
    orders = shop.table("orders", TYPES, buckets=BUCKETS, unique_key=["line", "id"], bucket_by="id")
    orders.build_sql(rows_of_range(0, N))
    orders.upsert_sql(rows_of_range(0, N // 2, "id"))
    orders.compact(grace=0)
    orders.upsert_sql(rows_of_range(N // 2, N, "id"))
    context, ran = counted(orders)
    changed = N - 35
    found = explain_row(context, orders.name, [f'{{"id": {changed}, "line": {changed % 3}}}'])
    before, after = ({"id": changed, "line": changed % 3, "amount": amount} for amount in (0, changed))
    assert events_of(found) == [("build", "new", None, before), ("upsert", "changed", before, after)]
    assert found.row == after
    with pytest.raises(ConfigError, match=r"'1\.5' is not a value of id"):
        explain_row(context, orders.name, ["id=1.5", "line=1"])

    _, statement = ran[:2]
    read = files_read(shop, statement)
    ((bucket,),) = orders.session.query(f"SELECT lake.system.bucket({BUCKETS}, {changed}L)")
    table, catalog = orders.table, orders.session.catalog
    changes, bases = load_change(catalog, table), load_base(catalog, table)
    snapshots = [(changes, one) for one in complete_snapshots(changes.history())]
    snapshots += [(bases, one.snapshot_id) for one in (bases.history()[-1], bases.history()[0])]
    files = [catalog.placed_files(side.schema, side.name, at, "id") for side, at in snapshots]
    matching = [
        [
            file
            for file in of_snapshot
            if file.is_data
            and file.partition == (str(bucket),)
            and (file.bounds is None or file.bounds[0] <= changed <= file.bounds[1])
        ]
        for of_snapshot in files
    ]
    assert sum(read) <= sum(map(len, matching)) < sum(map(len, files)) / 2

    orders.session.query(
        f"INSERT INTO {table.change.sql} (id, line, amount, _action, _offset, _txn) "
        f"VALUES ({changed}, {changed % 3}, -1, 'U', 0, 5)"
    )
    newest, *_ = explain_row(
        orders.session.context, orders.name, [f"id={changed}", f"line={changed % 3}"]
    ).steps
    assert (newest.change.kind, newest.change.time_ms, newest.change.after) == (
        "manual",
        None,
        {**after, "amount": -1},
    )
