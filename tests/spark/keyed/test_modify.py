"""UPDATE, DELETE and MERGE on a keyed table do what they do on any table, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError, ConstraintBroken, DuplicateKey, NoSequence, NullKey, StatementError
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_condition
from dbt_arctic.refresh.dml import Modified, explain, modify
from dbt_arctic.refresh.parse_dml import parse_modification
from tests.extent import in_turn

TYPES = {"id": "bigint", "status": "string", "amount": "int"}
ROWS = [{"id": number, "status": "new", "amount": number} for number in range(1, 6)]

Model = dict[int, tuple[Any, Any]]


@pytest.fixture
def orders(shop: Any) -> Any:
    """Rows in the base, and rows with a change."""
    made = shop.table(types=TYPES)
    made.build(ROWS[:3])
    made.upsert(ROWS[2:])
    return made


def modify_orders(orders: Any, sql: str, session: Any = None) -> tuple[int | None, int | None, int | None]:
    """Updated, inserted and deleted rows."""
    context = (session or orders.session).context
    done: Modified = modify(context, orders.name, parse_modification(sql.format(t=orders.name.sql)))
    return done.updated, done.inserted, done.deleted


def model_of(orders: Any) -> Model:
    rows = orders.rows()
    found = {row["id"]: (row["status"], row["amount"]) for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


BEFORE: Model = {number: ("new", number) for number in range(1, 6)}


def test_update_and_delete(shop: Any, orders: Any) -> None:
    model = dict(BEFORE)
    sql = "UPDATE {t} AS o SET status = concat(o.status, '!'), amount = amount + 1 WHERE (id > 3)"
    assert modify_orders(orders, sql) == (2, 0, 0)
    model |= {4: ("new!", 5), 5: ("new!", 6)}
    assert model_of(orders) == model
    # The table itself, and another, in subqueries; a row at a time for the whole table.
    shop.main.query(f"CREATE TABLE {shop.main.name('vip').sql} USING iceberg AS SELECT 4L AS id")
    vip = shop.main.name("vip").sql
    assert modify_orders(
        orders,
        f"UPDATE {{t}} SET amount = (SELECT max(amount) FROM {{t}}) "
        f"WHERE id IN (SELECT id FROM {vip}) OR orders.status IS NULL",
    ) == (1, 0, 0)
    model[4] = ("new!", 6)
    sql = f"DELETE FROM {{t}} WHERE EXISTS (SELECT 1 FROM {vip} v WHERE v.id = orders.id)"
    assert modify_orders(orders, sql) == (0, 0, 1)
    del model[4]
    newest = orders.version
    assert modify_orders(orders, "DELETE FROM {t} WHERE id = 99") == (0, 0, 0)
    assert orders.version == newest, "nothing to do is no commit"
    assert model_of(orders) == model
    orders.compact()
    assert model_of(orders) == model
    sql = "WITH low AS (SELECT 2 AS n) UPDATE {t} SET status = NULL WHERE amount < (SELECT n FROM low)"
    assert modify_orders(orders, sql) == (1, 0, 0)
    model[1] = (None, 1)
    assert model_of(orders) == model
    assert modify_orders(orders, "DELETE FROM {t}") == (0, 0, 4)
    assert model_of(orders) == {}


def test_merge(orders: Any) -> None:
    merged = modify_orders(
        orders,
        """MERGE INTO {t} AS t
        USING (
          VALUES (1, 'gone', 0), (2, 'paid', 20), (3, 'kept', 30), (8, 'late', 80), (9, 'skip', 90)
        ) AS s(id, status, amount)
        ON t.id = s.id
        WHEN MATCHED AND s.status = 'gone' THEN DELETE
        WHEN MATCHED AND s.status = 'paid' THEN UPDATE SET t.status = s.status, amount = t.amount + s.amount
        WHEN NOT MATCHED AND s.status <> 'skip' THEN INSERT (id, amount) VALUES (s.id, s.amount)
        WHEN NOT MATCHED BY SOURCE AND t.id = 5 THEN DELETE
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET status = 'old'""",
    )
    assert merged == (2, 1, 2)
    model = {2: ("paid", 22), 3: ("new", 3), 4: ("old", 4), 8: (None, 80)}
    assert model_of(orders) == model
    source = "(SELECT explode(array(3L, 7L)) AS ID, 'all' AS status, 1L AS amount)"
    sql = "MERGE INTO {t} USING " + source + " s ON orders.id = s.id WHEN MATCHED THEN UPDATE SET * "
    assert modify_orders(orders, sql + "WHEN NOT MATCHED THEN INSERT *") == (1, 1, 0)
    model |= {3: ("all", 1), 7: ("all", 1)}
    assert model_of(orders) == model
    orders.compact()
    assert model_of(orders) == model


@pytest.mark.modelled
def test_an_update_may_move_rows_to_other_keys(orders: Any) -> None:
    sql = "UPDATE {t} SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE id + 10 END WHERE id < 4"
    assert modify_orders(orders, sql) == (3, 0, 0)
    assert model_of(orders) == {1: ("new", 2), 2: ("new", 1), 13: ("new", 3), 4: ("new", 4), 5: ("new", 5)}
    orders.compact()
    assert model_of(orders) == {1: ("new", 2), 2: ("new", 1), 13: ("new", 3), 4: ("new", 4), 5: ("new", 5)}


FROM_TWICE = "MERGE INTO {t} USING (VALUES (1L, 'a'), (1L, 'b')) AS s(id, status) ON orders.id = s.id "
FROM_TWO = "MERGE INTO {t} USING (SELECT 2L AS id) s ON orders.id = s.id "


MEANINGLESS: list[tuple[str, type[Exception], str]] = [
    ("UPDATE {t} SET id = 4 WHERE id = 5", DuplicateKey, "4"),
    ("UPDATE {t} SET id = 9 WHERE id > 3", DuplicateKey, "9"),
    ("UPDATE {t} SET id = NULL WHERE id = 1", NullKey, "key"),
    ("UPDATE {t} SET amuont = 1", ConfigError, "amuont"),
    ("UPDATE {t} SET amount = 1, AMOUNT = 2", ConfigError, "twice"),
    ("UPDATE {t} AS o SET orders.amount = 1", ConfigError, "orders.amount"),
    ("UPDATE {t} SET amount = nothing", StatementError, "nothing"),
    (FROM_TWICE + "WHEN MATCHED THEN UPDATE SET status = s.status", DuplicateKey, "match"),
    (FROM_TWO + "AND amount > 5 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)", DuplicateKey, "2"),
    (FROM_TWICE + "AND false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id + 50)", DuplicateKey, "51"),
    (FROM_TWO + "WHEN MATCHED THEN UPDATE SET *", ConfigError, "amount"),
    (FROM_TWO + "WHEN NOT MATCHED THEN INSERT (amount) VALUES (1)", ConfigError, "id"),
]


@pytest.mark.modelled
def test_what_has_no_meaning_changes_nothing(orders: Any) -> None:
    commits = orders.commits()
    for sql, error, words in MEANINGLESS:
        with pytest.raises(error, match=words):
            modify_orders(orders, sql)
        assert orders.commits() == commits, sql
    assert model_of(orders) == BEFORE


@pytest.mark.modelled
def test_a_row_that_matches_twice_may_be_deleted(orders: Any) -> None:
    assert modify_orders(orders, FROM_TWICE + "WHEN MATCHED THEN DELETE") == (0, 0, 1)
    assert sorted(model_of(orders)) == [2, 3, 4, 5]


@pytest.mark.modelled
def test_with_a_sequence_a_change_that_would_lose_is_an_error(shop: Any) -> None:
    orders = shop.table(types={"id": "bigint", "status": "string", "at": "int"}, sequence_by="at")
    orders.build([{"id": 1, "status": "a", "at": 5}, {"id": 2, "status": "b", "at": 5}])
    assert modify_orders(orders, "UPDATE {t} SET status = 'x'") == (2, 0, 0)
    assert modify_orders(orders, "DELETE FROM {t} WHERE id = 2") == (0, 0, 1)
    for sql in (
        "UPDATE {t} SET at = 4",
        FROM_TWO.replace("2L", "1L") + "WHEN MATCHED THEN UPDATE SET at = NULL",
    ):
        with pytest.raises(NoSequence):
            modify_orders(orders, sql)
    assert orders.rows() == [{"id": 1, "status": "x", "at": 5}]
    # The key of a deleted row may be used again, by a row that comes after the delete.
    again = "AND false WHEN NOT MATCHED THEN INSERT (id, status, at) VALUES (s.id, 'again', {at})"
    losing = ["UPDATE {t} SET id = 2", *(FROM_TWO + again.replace("{at}", at) for at in ("4", "5"))]
    for compacted in (False, True):
        if compacted:
            orders.upsert([{"id": 2, "status": "late", "at": 4}])
            orders.compact()
        for sql in losing:
            with pytest.raises(NoSequence, match="deleted at 5"):
                modify_orders(orders, sql)
        assert orders.rows() == [{"id": 1, "status": "x", "at": 5}]
    assert modify_orders(orders, FROM_TWO + again.replace("{at}", "6")) == (0, 1, 0)
    assert modify_orders(orders, "DELETE FROM {t} WHERE id = 1") == (0, 0, 1)
    assert modify_orders(orders, "UPDATE {t} SET id = 1") == (1, 0, 0)
    assert orders.rows() == [{"id": 1, "status": "again", "at": 6}]
    orders.compact()
    assert orders.rows() == [{"id": 1, "status": "again", "at": 6}]


@pytest.mark.modelled
def test_columns_that_are_never_null_stay_so(shop: Any, orders: Any) -> None:
    properties = "'arctic.required' = '[\"amount\"]'"
    shop.main.query(f"ALTER VIEW {orders.name.sql} SET TBLPROPERTIES ({properties})")
    for sql in (
        "UPDATE {t} SET amount = NULL WHERE id = 1",
        FROM_TWO + "AND false WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id + 50)",
    ):
        with pytest.raises(ConstraintBroken, match="amount"):
            modify_orders(orders, sql)
    assert modify_orders(orders, "DELETE FROM {t} WHERE id = 1") == (0, 0, 1)


MERGE = (
    "MERGE INTO {t} USING (VALUES (1L, 100), (7L, 70)) AS s(id, amount) ON orders.id = s.id "
    "WHEN MATCHED THEN UPDATE SET amount = orders.amount + s.amount "
    "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount) "
    "WHEN NOT MATCHED BY SOURCE AND orders.id = 5 THEN DELETE"
)


def merged(model: Model) -> Model:
    before = {key: row for key, row in model.items() if key != 5}
    status, amount = before.get(1, (None, None))
    one = (status, amount + 100) if 1 in before else (None, 100)
    seven = (before[7][0], before[7][1] + 70) if 7 in before else (None, 70)
    return {**before, 1: one, 7: seven}


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("other", "step"),
    [
        ("upsert", "create_branch"),
        ("upsert", "fast_forward"),
        ("delete", "fast_forward"),
        ("update", "modify"),
    ],
)
def test_what_others_commit_meanwhile_is_seen(shop: Any, orders: Any, other: str, step: str) -> None:
    session = shop.session()
    acts: dict[str, Callable[[], Any]] = {
        "upsert": lambda: orders.on(session).upsert([{"id": 1, "status": "mine", "amount": 0}, ROWS[4]]),
        "delete": lambda: orders.on(session).delete([{"id": 1}]),
        "update": lambda: modify_orders(orders, "UPDATE {t} SET amount = amount * 2", session),
    }
    model = dict(BEFORE)
    if other == "upsert":
        model[1] = ("mine", 0)
    elif other == "delete":
        del model[1]
    else:
        model = {key: (status, amount * 2) for key, (status, amount) in model.items()}

    def overtake(at: str) -> None:
        if at == step:
            shop.main.statements.before = None
            acts[other]()

    shop.main.statements.before = overtake
    modify_orders(orders, MERGE)
    assert model_of(orders) == merged(model)


@pytest.mark.modelled
@in_turn("die", "lose_the_answer")
def test_cut_off_anywhere_it_is_all_or_nothing(
    shop: Any, orders: Any, cut_off: Any, ways: Sequence[str]
) -> None:
    model = dict(BEFORE)
    for at, way in product(range(20), ways):
        process, ended = shop.session(), False
        getattr(process.statements, way)(at)
        after = merged(model)
        try:
            modify_orders(orders, MERGE, process)
            ended = len(process.statements.ran) <= at
        except cut_off:
            pass
        finally:
            process.connection.close()
        found = model_of(orders)
        assert found in (model, after)
        model = found
        if ended:
            break
    assert at == 6
    orders.compact()
    assert model_of(orders) == model


@pytest.mark.modelled
def test_an_explanation_runs_nothing_and_is_what_would_run(orders: Any) -> None:
    steps = len(orders.session.statements.ran)
    told = explain(orders.session.context, orders.name, parse_modification(MERGE.format(t=orders.name.sql)))
    assert len(orders.session.statements.ran) == steps
    assert [line.split("\n")[0] for line in told] == [
        "-- create_branch",
        "-- set_in_place",
        "-- modify",
        "-- reset_in_place",
        "-- fast_forward",
        "-- drop_branch",
    ]
    assert model_of(orders) == BEFORE


@pytest.mark.modelled
def test_a_commit_that_an_erasure_removes_at_once_has_unknown_counts(shop: Any, orders: Any) -> None:
    process, steps = shop.session(), shop.main.statements

    def erase(step: str) -> None:
        if step == "drop_branch":
            steps.before = None
            erase_keys(process.context, plan_by_condition(process.context, orders.name, "id = 5"), force=True)

    steps.before = erase
    assert modify_orders(orders, "UPDATE {t} SET amount = amount + 1 WHERE id < 3") == (None, None, None)
    expected = {**BEFORE, 1: ("new", 2), 2: ("new", 3)}
    del expected[5]
    assert model_of(orders) == expected
