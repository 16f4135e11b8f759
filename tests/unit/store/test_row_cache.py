"""Which rows are in Spark's cache, and for which refreshes, according to the statements that are run."""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.store.row_cache import MAX_RELATIONS, ExpectedRows, SharedRows


class Cache:
    """Follows the statements: which view has which columns, and which is cached."""

    def __init__(self) -> None:
        self.views: dict[str, str] = {}
        self.cached: set[str] = set()

    def run(self, step: str, sql: str) -> int:
        name = re.search(r"`(arctic_rows_\w+)`", sql)
        assert name is not None
        if step == "name_rows":
            self.views[name[1]] = sql.split(" AS\n", 1)[1]
            self.cached.discard(name[1])
        elif step == "share_rows":
            assert name[1] in self.views
            self.cached.add(name[1])
        else:
            self.views.pop(name[1], None)
            self.cached.discard(name[1])
        return 0

    def read(self, relation: str | None) -> str | None:
        """The query behind a cached view; ``None`` where nothing is kept."""
        if relation is None:
            return None
        name = re.fullmatch(r"`global_temp`.`(arctic_rows_\w+)`", relation)
        assert name is not None
        assert name[1] in self.cached
        return self.views[name[1]]


def rows_sql(columns: Sequence[str], lookup_keys: Mapping[str, ValueRange | None]) -> str:
    return f"SELECT {', '.join(columns)} met by {', '.join(lookup_keys)}"


def request_rows(
    cache: Cache, shared: SharedRows, rows: str, columns: Sequence[str], lookup_keys: Sequence[str] = ()
) -> str | None:
    return cache.read(shared.kept(rows, columns, dict.fromkeys(lookup_keys), rows_sql, cache.run))


def test_the_first_request_computes_and_the_second_one_caches() -> None:
    cache, shared = Cache(), SharedRows()
    assert request_rows(cache, shared, "t", ["a"]) is None
    assert not cache.views
    assert request_rows(cache, shared, "t", ["b"]) == "SELECT a, b met by "
    before = dict(cache.views)
    assert request_rows(cache, shared, "t", ["b", "a"]) is not None
    assert cache.views == before, "these columns are there"
    # Here models read alike: of other rows, too.
    assert request_rows(cache, shared, "u", ["a"]) == "SELECT a met by "


def test_another_column_recreates_the_cache_under_the_same_name() -> None:
    cache, shared = Cache(), SharedRows()
    for _ in range(2):
        narrow = shared.kept("t", ["a"], {}, rows_sql, cache.run)
    assert cache.read(narrow) == "SELECT a met by "
    wide = shared.kept("t", ["c"], {}, rows_sql, cache.run)
    assert wide == narrow
    assert cache.read(wide) == "SELECT a, c met by "
    assert len(cache.views) == 1


def test_rows_of_other_keys_recreate_the_cache_once() -> None:
    cache, shared = Cache(), SharedRows()
    for lookup_keys in ((), ("orders",)):
        found = request_rows(cache, shared, "t", ["a"], lookup_keys)
    assert found == "SELECT a met by orders"
    assert request_rows(cache, shared, "t", ["a"], ["parts"]) == "SELECT a met by orders, parts"
    before = dict(cache.views)
    assert request_rows(cache, shared, "t", ["a"], ["orders"]) == request_rows(cache, shared, "t", ["a"])
    assert cache.views == before


def test_the_first_request_caches_what_others_are_expected_to_request() -> None:
    cache, shared = Cache(), SharedRows()
    looked: list[None] = []

    def expect() -> ExpectedRows | None:
        looked.append(None)
        return ExpectedRows(["b"], {"orders": None})

    first = shared.kept("t", ["a"], {}, rows_sql, cache.run, expect)
    assert cache.read(first) == "SELECT a, b met by orders"
    before = dict(cache.views)
    for columns, lookup_keys in ((["b"], ["orders"]), (["a"], [])):
        shared.kept("t", columns, dict.fromkeys(lookup_keys), rows_sql, cache.run, expect)
    assert (cache.views, len(looked)) == (before, 1), "it is looked up where rows are about to be read"
    assert request_rows(cache, shared, "t", ["c"]) == "SELECT a, b, c met by orders"


def test_the_first_request_caches_nothing_if_no_other_is_expected() -> None:
    cache, shared = Cache(), SharedRows()
    assert shared.kept("t", ["a"], {}, rows_sql, cache.run, lambda: None) is None


def test_sessions_with_other_settings_do_not_read_each_others_rows() -> None:
    cache = Cache()
    for shared in (SharedRows("spark.sql.ansi.enabled=false"), SharedRows()):
        for _ in range(2):
            request_rows(cache, shared, "t", ["a"])
    assert len(cache.views) == 2


def test_the_oldest_are_dropped_and_cached_again_on_request() -> None:
    cache, shared = Cache(), SharedRows()
    tables = [f"t{number}" for number in range(MAX_RELATIONS + 1)]
    for table in tables:
        for _ in range(2):
            request_rows(cache, shared, table, ["a"])
    assert len(cache.cached) == len(cache.views) == MAX_RELATIONS
    before = list(cache.views)
    assert request_rows(cache, shared, tables[-1], ["a"]) is not None
    assert list(cache.views) == before
    assert request_rows(cache, shared, tables[0], ["a"]) is not None
    assert list(cache.views) != before


def test_what_an_invocation_has_left_is_forgotten_by_the_next() -> None:
    """The process may outlive it, and Spark with it."""
    cache, shared = Cache(), SharedRows()
    for _ in range(2):
        request_rows(cache, shared, "t at 1", ["a"])
    left = set(cache.cached)
    assert len(left) == 1
    other = SharedRows()
    for _ in range(2):
        request_rows(cache, other, "u at 1", ["a"])
    assert left < cache.cached, "the first may still be at work"
    del shared
    gc.collect()
    request_rows(cache, other, "t at 2", ["a"])
    request_rows(cache, other, "t at 2", ["b"])
    assert not left & cache.cached
    assert len(cache.cached) == 2
