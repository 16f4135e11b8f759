"""What a model reads, and of what its result depends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from sqlglot import exp

from dbt_arctic.adapter.view_columns import stored_query
from dbt_arctic.auto import inputs
from dbt_arctic.auto.advice import advise
from dbt_arctic.auto.inputs import ModelInputs, find_inputs, fingerprint_of, full_name
from dbt_arctic.auto.session_settings import unsupported_setting
from dbt_arctic.auto.upstreams import Upstream, View
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import EVALUATED_AT, FINGERPRINT, Consumed, decode_consumed
from dbt_arctic.planner.frontend.parse import is_unseen, named_relations, parse
from dbt_arctic.planner.frontend.source_text import with_relations
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.consumption import Consumption

T = Name("lake", "shop", "t")
V = Name("lake", "shop", "v")
COLUMNS = (("id", "int"), ("x", "int"), ("other", "string"))


def model_inputs(sql: str) -> ModelInputs:
    upstream = Upstream(
        T, COLUMNS, ("id",), Consumed("id", "1"), {}, True, field_ids={"id": "1", "x": "2", "other": "3"}
    )
    view = View(V, (("a", "int"), ("b", "int")), "SELECT id, x FROM t", T)
    return ModelInputs({T.dotted: upstream}, {V.dotted: view}, {}, parse(sql))


def fingerprint(sql: str, made: ModelInputs, settings: str = "") -> str:
    return fingerprint_of(sql, made, ("id",), settings)


def with_upstream(made: ModelInputs, **changed: Any) -> ModelInputs:
    return replace(made, upstreams={T.dotted: replace(made.upstreams[T.dotted], **changed)})


NATURAL = "SELECT id FROM t NATURAL JOIN v"
SQL = "SELECT id, sum(x) AS s FROM t GROUP BY id"


@pytest.mark.parametrize(
    ("changed", "matters"),
    [
        ({"columns": (("id", "int"), ("x", "bigint"), ("other", "string"))}, True),
        ({"field_ids": {"id": "1", "x": "7", "other": "3"}}, True),
        ({"columns": (*COLUMNS, ("new", "int"))}, False),
        ({"columns": (("id", "int"), ("x", "int"), ("other", "int"))}, False),
        ({"consumed": Consumed("id", "2"), "changed_rows": 7}, False),
    ],
)
def test_columns_that_are_read_are_a_part_of_what_a_model_means(
    changed: dict[str, object], matters: bool
) -> None:
    made = model_inputs(SQL)
    assert (fingerprint(SQL, made) != fingerprint(SQL, with_upstream(made, **changed))) is matters
    more = "columns" in changed or matters
    for all_of_it in (
        "SELECT * FROM t",
        "SELECT id, xxhash64(*) FROM t",
        "SELECT k FROM t AS q(k, v, w)",
        NATURAL,
    ):
        before, after = model_inputs(all_of_it), with_upstream(model_inputs(all_of_it), **changed)
        assert (fingerprint(all_of_it, before) != fingerprint(all_of_it, after)) is more, all_of_it
    counted = SQL.replace("sum(x)", "sum(x), count(*)")
    assert (fingerprint(counted, made) != fingerprint(counted, with_upstream(made, **changed))) is matters


def test_so_are_views_settings_and_words_but_no_space_and_no_comment() -> None:
    made = model_inputs(SQL)
    (view,) = made.views.values()
    renamed = replace(made, views={V.dotted: replace(view, columns=(("b", "int"), ("a", "int")))})
    assert fingerprint(SQL, made) != fingerprint(SQL, renamed)
    assert fingerprint(SQL, made) != fingerprint(SQL, made, "spark.sql.ansi.enabled=false")
    assert fingerprint(SQL, made) == fingerprint(SQL.replace("FROM", "-- why\n FROM"), made)
    assert fingerprint("SELECT 'a' b", made) != fingerprint("SELECT 'a VAR:b'", made)


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("WITH orders AS (SELECT * FROM orders) SELECT * FROM orders", ["orders"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a, b", ["b"]),
        ("WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM a) AS q JOIN s.a AS r", ["s.a"]),
        ("WITH a AS (WITH c AS (SELECT * FROM d) SELECT * FROM c) SELECT * FROM a, c", ["c", "d"]),
        ("SELECT * FROM t WHERE x IN (WITH t AS (SELECT * FROM u) SELECT y FROM t)", ["t", "u"]),
    ],
)
def test_a_common_table_expression_hides_a_table_from_those_after_it(sql: str, read: list[str]) -> None:
    assert sorted(named_relations(parse(sql))) == read


@pytest.mark.parametrize(
    "more", ["VERSION AS OF 5", "TIMESTAMP AS OF '2026-01-01'", "TABLESAMPLE (10 PERCENT)"]
)
def test_a_relation_that_is_not_read_as_it_is_now_is_not_replaced(more: str) -> None:
    with pytest.raises(CannotPlan):
        with_relations(f"SELECT * FROM t {more}", lambda name: "SELECT 1")


@pytest.mark.parametrize(
    ("relation", "unseen"),
    [
        ("t", False),
        ("a.b.t AS q", False),
        ("range(10)", False),
        ("VALUES (1)", False),
        ("(SELECT 1) AS q", False),
        ("lake.shop.t.snapshots", True),
        ("lake.shop.t.branch_x AS q", True),
        ("IDENTIFIER('lake.shop.t')", True),
        ("orders_of(5)", True),
    ],
)
def test_what_may_read_anything(relation: str, unseen: bool) -> None:
    tree = parse(f"WITH c AS (SELECT 1) SELECT 1 FROM c, {relation}")
    assert any(map(is_unseen, tree.find_all(exp.Table))) is unseen
    if unseen:
        found = find_inputs(cast(Any, OneCatalog()), T, f"SELECT 1 FROM {relation}", {}, settings="")
        assert found.reason is not None
        assert found.reason.code == "unknown-relation"


def test_a_name_in_a_view_is_of_the_views_schema() -> None:
    assert full_name("t", Name("lake", "theirs", "v")) == Name("lake", "theirs", "t")
    assert full_name("ours.t", Name("lake", "", "v")) == Name("lake", "ours", "t")
    with pytest.raises(CannotPlan):
        full_name("t", Name("lake", "", "v"))


def test_a_view_over_structs_is_analysed_by_its_values_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (("id", "int"), ("s", "struct<x:int,y:int>"), ("m", "map<struct<k:int>,array<struct<v:int>>>"))
    made = model_inputs(SQL)
    for text in ("SELECT * FROM t", "SELECT id, s, m FROM t"):
        there = {
            T: replace(made.upstreams[T.dotted], columns=columns),
            V: View(V, columns, stored_query(text, columns), T),
        }
        monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more, there=there: there[name])
        found = find_inputs(
            cast(Any, OneCatalog()), T, "SELECT s.y, max(id) AS id FROM v GROUP BY s.y", {}, settings=""
        )
        assert found.reason is None
        assert [name for name, _ in inputs.analysed_query(found, ["y", "id"]).columns] == ["y", "id"]
        assert "IDENTIFIER" not in found.trees[V.dotted].sql("spark")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("", ""),
        ("spark.sql.caseSensitive=false;spark.sql.session.timeZone=UTC", ""),
        ("a=b;spark.sql.caseSensitive= True ", "spark.sql.caseSensitive"),
        ("spark.sql.orderByOrdinal=false", "spark.sql.orderByOrdinal"),
        ("spark.sql.ansi.doubleQuotedIdentifiers=true", "spark.sql.ansi.doubleQuotedIdentifiers"),
    ],
)
def test_settings_with_which_a_text_is_another(settings: str, named: str) -> None:
    found = unsupported_setting(settings)
    assert (found is None) is (not named)
    assert found is None or (found.code == "setting" and found.what.startswith(f"{named} is "))


def test_what_is_read_no_longer_is_held_back_no_longer() -> None:
    before, now = {"lake.shop.u": Consumed("u", "1")}, {"lake.shop.t": Consumed("t", "2")}
    (kept,) = Consumption(before, now).properties().values()
    assert decode_consumed(kept) == {**before, **now}
    of_a_query = {**before, FINGERPRINT: Consumed("f", ""), EVALUATED_AT: Consumed("2026-01-01", "0")}
    (kept,) = Consumption(of_a_query, now).properties().values()
    assert decode_consumed(kept) == {**before, **now}, "rows of a pull are of no query"
    (kept,) = Consumption(before, now, forgets=True).properties().values()
    assert decode_consumed(kept) == now


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("SELECT id\nFROM t WHERE WHERE", "not-parsed", 2),
        ("SELECT id\nFROM t JOIN\nother.shop.t AS o ON true", "unknown-relation", 3),
        ("SELECT id\nFROM t JOIN\nmissing ON true", "unknown-relation", 3),
        ("SELECT id,\n _row_id AS r\nFROM t", "unsupported", 2),
    ],
)
def test_a_reason_in_a_view_names_the_view(
    monkeypatch: pytest.MonkeyPatch, text: str, code: str, line: int
) -> None:
    made = model_inputs(SQL)
    there = {T: made.upstreams[T.dotted], V: replace(made.views[V.dotted], sql=text)}
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: there.get(name))
    found = find_inputs(cast(Any, OneCatalog()), T, "SELECT *\n\n\n FROM v", {}, settings="").reason
    assert found is not None
    assert (found.code, found.line, found.view) == (code, line, V.dotted)
    assert found.fix
    there[V] = replace(made.views[V.dotted], sql="SELECT id FROM t")
    assert find_inputs(cast(Any, OneCatalog()), T, "SELECT *\n\n\n FROM v", {}, settings="").reason is None
    mine = find_inputs(cast(Any, OneCatalog()), T, text, {}, settings="").reason
    assert mine is not None
    assert (mine.code, mine.line, mine.view) == (code, line, "")


def test_a_relation_without_versions_is_advised_and_one_that_is_not_built_yet_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: None)
    config = parse_config("m", {"unique_key": "id", "incremental_strategy": "auto"})
    told = {
        text: [
            one.reason.line
            for one in advise(find_inputs(cast(Any, OneCatalog()), T, text, {}, settings=""), config)
            if one.always
        ]
        for text in ("SELECT id\nFROM yet", "SELECT id\nFROM other.shop.t", "SELECT id\nFROM t.files('x')")
    }
    assert list(told.values()) == [[], [2], [2]]


def test_a_reason_in_a_view_of_a_view_names_the_view_that_contains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, w = model_inputs(SQL), Name("lake", "shop", "w")
    inner = replace(made.views[V.dotted], sql="SELECT id\nFROM t WHERE WHERE")
    there = {V: inner, w: replace(inner, name=w, sql="SELECT *\n\n\nFROM v")}
    monkeypatch.setattr(inputs, "inspect_upstream", lambda catalog, name, *more: there.get(name))
    found = find_inputs(cast(Any, OneCatalog()), T, "SELECT * FROM w", {}, settings="").reason
    assert found is not None
    assert (found.code, found.line, found.view) == ("not-parsed", 2, V.dotted)
