"""Shapes of public packages and analytical benchmarks: each is incremental, or has the code of why not."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view
from dbt_arctic.planner.delta.exact_averages import with_exact_averages
from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.delta.ties_by_key import ordered_by_key
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.planner.spark.qualify import without_qualify

SCHEMAS = {
    "t": [
        *(("id", "bigint"), ("g", "string"), ("v", "bigint"), ("at", "timestamp"), ("d", "date")),
        *(("n", "int"), ("p", "decimal(10,2)"), ("other_id", "bigint")),
    ],
    "o": [("id", "bigint"), ("name", "string"), ("v", "bigint"), ("at", "timestamp")],
    "u": [("tid", "bigint"), ("field", "string"), ("at", "timestamp"), ("v", "string"), ("uid", "bigint")],
    "raw": [("tid", "bigint"), ("field", "string"), ("upd", "string"), ("v", "string")],
}
KEYS = {"t": ("id",), "o": ("id",), "u": ("tid", "field", "at"), "raw": ()}
NUMBERED = "(select *, row_number() over (partition by g order by at, id) k from t) q"
LAST, NOW = Clock("2026-11-27", "2026-11-27 04:00:00Z"), Clock("2026-11-28", "2026-11-28 04:00:00Z")

INCREMENTAL, STATE = "incremental", "state"

CASES = {
    "numbered order": (
        f"select id, sum(v) over (partition by g order by k rows unbounded preceding) s from {NUMBERED}",
        "id",
        INCREMENTAL,
    ),
    "lag over a number": (
        f"select id, lag(v) over (partition by g order by k) p from {NUMBERED}",
        "id",
        INCREMENTAL,
    ),
    "constant among groups": (
        "with b as (select *, 'x' as sr from t), a as (select g, sr, d, sum(v) s from b group by 1, 2, 3) "
        "select g, d, sum(s) over (partition by g order by d rows unbounded preceding) r from a",
        "g d",
        INCREMENTAL,
    ),
    "function of a group": (
        "with a as (select g, d, trunc(d, 'week') w, sum(v) s from t group by g, d, trunc(d, 'week')) "
        "select g, d, sum(s) over (partition by g order by d rows unbounded preceding) r from a",
        "g d",
        INCREMENTAL,
    ),
    "key column fixed": (
        "select tid, at, lag(v) over (partition by tid order by at) p from u where field = 'x'",
        "tid at",
        INCREMENTAL,
    ),
    "lead of the order": (
        "select tid, at, lead(at) over (partition by tid order by at) n from u",
        "tid at",
        INCREMENTAL,
    ),
    "min of the order": (
        "select tid, at, min(at) over (partition by tid order by at rows unbounded preceding) n from u",
        "tid at",
        INCREMENTAL,
    ),
    "deduplication": (
        "select tid, v from (select *, row_number() over (partition by tid order by upd desc) n from raw) "
        "where n = 1",
        "tid",
        "ties",
    ),
    "own key": (
        "select tid, field, upd, lead(upd) over (partition by tid, field order by upd) n from raw",
        "tid field upd",
        INCREMENTAL,
    ),
    "window over a union": (
        "select id, sum(v) over (partition by g order by id rows unbounded preceding) s from "
        "(select id, g, v from t union all select -id, g, v from t)",
        "id",
        INCREMENTAL,
    ),
    "two columns of one name": (
        "with j as (select t.*, o.name, o.v from t left join o on o.id = t.other_id), "
        "c as (select * from j where id > 0) select c.id, c.name from c",
        "id",
        INCREMENTAL,
    ),
    "union of two types": (
        "select id, at as x from t union all select id + 1000, d from t",
        "id",
        INCREMENTAL,
    ),
    "sorted set": (
        "select g, array_join(array_sort(collect_set(v)), ', ') s from t group by g",
        "g",
        INCREMENTAL,
    ),
    "sorted list": ("select g, sort_array(collect_list(v)) s from t group by g", "g", INCREMENTAL),
    "size of a set": ("select g, size(collect_set(v)) s from t group by g", "g", INCREMENTAL),
    "element of a set": (
        "select g, array_contains(collect_set(v), 3L) s from t group by g",
        "g",
        INCREMENTAL,
    ),
    "listagg": (
        "select g, listagg(cast(v as string), ',') within group (order by v) s from t group by g",
        "g",
        INCREMENTAL,
    ),
    "string_agg": (
        "select g, string_agg(cast(v as string), ',') within group (order by id) s from t group by g",
        "g",
        INCREMENTAL,
    ),
    "max_by": ("select g, max_by(v, id) s from t group by g", "g", INCREMENTAL),
    "min_by of a pair": ("select g, min_by(v, struct(at, id)) s from t group by g", "g", INCREMENTAL),
    "max_by with ties": ("select g, max_by(v, at) s from t group by g", "g", "order-dependent"),
    "first": ("select g, first(v, true) s from t group by g", "g", "order-dependent"),
    "any_value of what the group determines": (
        "select o.id, any_value(o.name) n, sum(t.v) s from o join t on t.other_id = o.id group by o.id",
        "id",
        INCREMENTAL,
    ),
    "first of the group": ("select g, d, first(g, true) s from t group by g, d", "g d", INCREMENTAL),
    "qualify": (
        "select id from t qualify row_number() over (partition by g order by id) = 1",
        "id",
        INCREMENTAL,
    ),
    "named window": ("select id, sum(v) over w s from t window w as (partition by g)", "id", INCREMENTAL),
    "pivot": ("select * from (select g, n, v from t) pivot (sum(v) for n in (1, 2))", "g", INCREMENTAL),
    "unpivot": ("select id, x from t unpivot (x for c in (v, other_id))", "id", INCREMENTAL),
    "lateral subquery": (
        "select t.id, m.s from t, lateral (select sum(o.v) s from o where o.id = t.other_id) m",
        "id",
        INCREMENTAL,
    ),
    "first row of a lateral subquery": (
        "select t.id, m.v from t left join lateral (select u.v from u where u.tid = t.other_id "
        "order by u.at desc, u.field limit 1) m on true",
        "id",
        INCREMENTAL,
    ),
    "first row of a lateral subquery with ties": (
        "select t.id, m.v from t left join lateral (select u.v from u where u.tid = t.other_id "
        "order by u.at desc limit 1) m on true",
        "id",
        "ties",
    ),
    "generator": ("select id, explode(array(v, other_id)) as x from t", "id", INCREMENTAL),
    "time in a value": ("select id, coalesce(at, current_timestamp()) as x from t", "id", INCREMENTAL),
    "time in a case": (
        "select id, case when at > current_timestamp() then 'later' else 'past' end as x from t",
        "id",
        INCREMENTAL,
    ),
    "time in a join": (
        "select t.id, o.name from t left join o on o.id = t.other_id and o.at < current_timestamp()",
        "id",
        INCREMENTAL,
    ),
    "time in an inner join": (
        "select t.id, o.name from t join o on o.id = t.other_id and o.at < current_timestamp() - t.n * "
        "interval '1 day'",
        "id",
        INCREMENTAL,
    ),
    "time in an outer join, of both sides": (
        "select t.id, o.name from t left join o on o.id = t.other_id and greatest(o.at, t.at) < now()",
        "id",
        "time",
    ),
    "time in an aggregate": (
        "select g, sum(case when at > current_timestamp() then v else 0 end) later, "
        "count(*) filter (where d = current_date()) today, "
        "max(datediff(coalesce(d, current_date()), date '2020-01-01')) age from t group by g",
        "g",
        INCREMENTAL,
    ),
    "time in a group": (
        "select coalesce(d, current_date()) as x, count(*) n from t group by coalesce(d, current_date())",
        "x",
        INCREMENTAL,
    ),
    "time in a window": (
        "select id, sum(case when at > now() then v end) over (partition by g order by id) s from t",
        "id",
        INCREMENTAL,
    ),
    "time beside an aggregate": (
        "select g, datediff(current_date(), max(d)) age from t group by g",
        "g",
        "time",
    ),
    "time alone": ("select id, current_date() as x from t", "id", "time"),
    "number of equal rows": (
        "select d, row_number() over (partition by g order by d) r from t",
        "d r",
        INCREMENTAL,
    ),
    "days counted from a date": (
        "select date_add(date '2020-01-01', k) x from (select row_number() over (order by v) k, id from t)",
        "x",
        INCREMENTAL,
    ),
    "running sum of the order": (
        "select g, sum(v) over (partition by g order by v rows unbounded preceding) s from t",
        "g s",
        INCREMENTAL,
    ),
    "what the order determines": (
        "select t.other_id, o.name, row_number() over (partition by t.g order by o.id) r "
        "from t join o on o.id = t.other_id where t.other_id = o.id",
        "r",
        "ties",
    ),
    "name that the order determines": (
        "select o.id, o.name, row_number() over (order by o.id) r from o join t on o.id = t.other_id",
        "r",
        INCREMENTAL,
    ),
    "number of rows of two orders": (
        "select g, row_number() over (partition by g order by v) x, "
        "row_number() over (partition by g order by n) y from t",
        "g x y",
        "ties",
    ),
    **{
        f"number of rows in the orders {one} and {other}": (
            f"select g, row_number() over (partition by g order by {one}) x, "
            f"row_number() over (partition by g order by {other}) y from t",
            "g x",
            "ties",
        )
        for one, other in (
            ("n", "abs(n)"),
            ("abs(n)", "n"),
            ("g", "lower(g)"),
            ("n", "coalesce(n, 0)"),
            ("v", "v > 0"),
            ("v", "v desc"),
        )
    },
    "value in another order where the number is 1": (
        "select g, y from (select g, row_number() over (partition by g order by n) x, "
        "lag(n) over (partition by g order by abs(n)) y from t) where x = 1",
        "g",
        "ties",
    ),
    "number of equal rows with a rank by another order": (
        "select g, row_number() over (partition by g order by abs(n)) x, "
        "rank() over (partition by g order by n) y from t",
        "g x",
        "ties",
    ),
    "number of equal rows with a rank of theirs": (
        "select g, row_number() over (partition by g order by n) x, lag(n) over (partition by g order by n) "
        "y, rank() over (partition by g order by abs(n)) z, count(*) over (partition by g) c from t",
        "g x",
        INCREMENTAL,
    ),
    "number of rows that are filtered by another column": (
        "select r from (select row_number() over (order by v) r, n from t) where n > 1",
        "r",
        "ties",
    ),
    "number of equal floats": (
        "select v, row_number() over (order by v) r from (select cast(v as double) v from t)",
        "r",
        "ties",
    ),
    "first value of an order of floats": (
        "select id, first_value(v) over (partition by g order by v) m from "
        "(select id, g, cast(v as double) v from t)",
        "id",
        "ties",
    ),
    "least value of an order of floats": (
        "select id, min(v) over (partition by g order by v rows unbounded preceding) m from "
        "(select id, g, cast(v as double) v from t)",
        "id",
        "ties",
    ),
    "least value of an order of integers": (
        "select id, min(v) over (partition by g order by v rows unbounded preceding) m from t",
        "id",
        INCREMENTAL,
    ),
    "least float": (
        "select id from o where v = (select f from (select cast(v as double) f from t) order by f limit 1)",
        "id",
        "ties",
    ),
    "least integer": ("select id from o where v = (select v from t order by v limit 1)", "id", INCREMENTAL),
    "own key in a part of a union": (
        "select tid, field, at, v from u where field <> 'c' union all "
        "select tid, 'c', cast(upd as timestamp), lead(v) over (partition by tid order by upd) from raw",
        "tid field at",
        INCREMENTAL,
    ),
    "own key in a part of a union that is joined": (
        "select x.*, t.v as w from (select tid, field, at, v from u where field <> 'c' union all "
        "select tid, 'c', at, lead(v) over (partition by tid order by at) from u) x "
        "left join t on t.id = x.tid",
        "tid field at",
        INCREMENTAL,
    ),
    "own key beside what it matches": (
        "select x.*, t.v as w from t right join (select tid, upd, lead(v) over (partition by tid "
        "order by upd) n from raw) x on t.id = x.tid",
        "tid upd",
        INCREMENTAL,
    ),
    "own key of what has matches": (
        "select x.*, t.v as w from (select tid, upd, lead(v) over (partition by tid order by upd) n "
        "from raw) x join t on t.id = x.tid",
        "tid upd",
        "ties",
    ),
    "own key of what a filter leaves": (
        "select * from (select tid, upd, lead(v) over (partition by tid order by upd) n from raw) x "
        "where n > 'a'",
        "tid upd",
        "ties",
    ),
    "own key of the other side": (
        "select x.*, t.v as w, t.id from (select tid, upd, lead(v) over (partition by tid order by upd) n "
        "from raw) x left join t on t.v = x.tid",
        "id upd",
        "ties",
    ),
    "parts of one table that exclude each other": (
        "with j as (select t.*, o.name from t join o on o.id = t.other_id), "
        "p as (select *, 'a' k from j where n > 1 union all select *, 'b' k from j where not n > 1) "
        "select id, sum(v) over (partition by g order by at, id rows unbounded preceding) s from p",
        "id",
        INCREMENTAL,
    ),
    "parts of one table that overlap": (
        "with p as (select * from t where n > 1 union all select * from t where not n > 2) "
        "select id, sum(v) over (partition by g order by at, id rows unbounded preceding) s from p",
        "id s",
        "ties",
    ),
    "running sum of another column": (
        "select g, sum(n) over (partition by g order by v rows unbounded preceding) s from t",
        "g s",
        "ties",
    ),
    "average of bigint": ("select g, avg(v) a from t group by g", "g", INCREMENTAL),
    "average of doubles": ("select g, avg(cast(v as double)) a from t group by g", "g", "float-sum"),
    "one row of several aggregates": (
        "select 1 as one, a.c, b.s from (select count(*) c from t where n > 1) a "
        "cross join (select sum(p) s from t where n < 2) b",
        "one",
        INCREMENTAL,
    ),
    "variance": ("select g, stddev_samp(v) a from t group by g", "g", "float-sum"),
    "limit with ties": ("select g, sum(v) r from t group by g order by r desc limit 100", "g", "ties"),
    "number with ties": ("select id, row_number() over (partition by g order by d) r from t", "id", "ties"),
    "limit without rows": (
        "select id, v from t union all (select id, v from o order by v limit 0)",
        "id v",
        INCREMENTAL,
    ),
    "limit of a rollup": (
        "select g, d, sum(v) s from t group by rollup(g, d) order by 1, 2, 3 limit 100",
        "g d",
        STATE,
    ),
    "limit of a rollup by its groups": (
        "select coalesce(g, 'all') g, coalesce(d, date '1970-01-01') d, grouping(g) + grouping(d) x, "
        "sum(v) s from t group by rollup(g, d) order by 3, 1, 2 limit 100",
        "g d x",
        STATE,
    ),
    "limit of a rollup without its key": (
        "select coalesce(g, 'all') g, grouping(g) x, sum(v) s from t group by rollup(g) order by s limit 9",
        "g x",
        "ties",
    ),
    "channels": (
        "with y as (select id, v, 's' c from t union all select id, v, 'w' c from o) "
        "select a.id, a.v - b.v x from y a, y b where a.id = b.id and a.c = 's' and b.c = 'w'",
        "id",
        INCREMENTAL,
    ),
    "star of one relation": (
        "with s as (select id k, v from t) select s0.k, s0.v + s1.v + s2.v + s3.v + s4.v + s5.v x "
        "from s s0, s s1, s s2, s s3, s s4, s s5 "
        "where s0.k = s1.k and s1.k = s2.k and s2.k = s3.k and s3.k = s4.k and s4.k = s5.k",
        "k",
        INCREMENTAL,
    ),
    "parentheses": (
        "select g, sum(p / 2) s from t group by g union all select g, sum((p / 2)) from t group by g",
        "g",
        INCREMENTAL,
    ),
    "guard": ("select id from o where v > (select avg(p) * 1.2 from t)", "id", INCREMENTAL),
    "coalesced group": ("select coalesce(g, '?') k, sum(v) s from t group by g", "k", INCREMENTAL),
    "full join of groups": (
        "with a as (select g, d, sum(v) s from t group by g, d), "
        "b as (select name, cast(at as date) d, sum(v) s from o group by 1, 2), "
        "j as (select coalesce(a.g, b.name) g, coalesce(a.d, b.d) d, a.s x, b.s y "
        "from a full join b on a.g = b.name and a.d = b.d) "
        "select g, d, sum(x) over (partition by g order by d rows unbounded preceding) r from j",
        "g d",
        INCREMENTAL,
    ),
    "full join of groups, by both": (
        "with a as (select g, d, sum(v) s from t group by g, d), "
        "b as (select name, cast(at as date) d, sum(v) s from o group by 1, 2) "
        "select a.g, a.d, b.name, b.d e, sum(a.s) over (partition by a.g order by a.d, b.name, b.d "
        "rows unbounded preceding) r from a full join b on a.g = b.name and a.d = b.d",
        "g d name e",
        INCREMENTAL,
    ),
}
"""Each with its key and how it is refreshed."""


def refreshed(sql: str, key: str) -> str:
    facts = Facts({name: UpstreamFacts(True, KEYS[name]) for name in SCHEMAS}, time_changed=True)
    try:
        query = analyse_query(without_qualify(sql), SCHEMAS, now=NOW, last=LAST)
    except CannotPlan as error:
        return error.reason.code
    try:
        plan_incremental(query, key.split(), facts)
    except CannotPlan as error:
        with_state = error.reason.code in ("limit", "float-sum")
        checked = with_exact_averages(query)
        made = find_auxiliary_view(checked, key.split(), KEYS) if with_state else None
        return error.reason.code if made is None else STATE
    return INCREMENTAL


BY_KEY = {
    "limit with ties": STATE,
    "limit of a rollup without its key": STATE,
    # No key is known of the source.
    "deduplication": "ties",
    "own key of what has matches": "ties",
    "own key of what a filter leaves": "ties",
    "own key of the other side": "ties",
    # A row of the table may be in both parts.
    "parts of one table that overlap": "ties",
    # The subquery does not select the key.
    "number of equal floats": "ties",
    "least float": "ties",
}
"""How those with ties are refreshed by a model that has the key decide them, if not incrementally."""


@pytest.mark.parametrize("name", CASES)
def test_each_shape_is_refreshed_as_the_table_says(name: str) -> None:
    sql, key, expected = CASES[name]
    assert refreshed(sql, key) == expected


@pytest.mark.parametrize("name", [name for name, (*_, expected) in CASES.items() if expected == "ties"])
def test_the_key_decides_ties_if_the_config_requires_it(name: str) -> None:
    sql, key, _ = CASES[name]
    facts = Facts({name: UpstreamFacts(True, KEYS[name]) for name in SCHEMAS})
    made = ordered_by_key(sql, key.split(), facts, lambda tree: analyse_query(tree, SCHEMAS))
    assert refreshed(made, key) == BY_KEY.get(name, INCREMENTAL)
