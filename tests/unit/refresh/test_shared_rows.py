"""What is kept in Spark's cache, and for whom, told by the statements that are run."""

from __future__ import annotations

import re

from dbt_arctic.refresh.shared_rows import KEPT, SharedRows


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
            del self.views[name[1]]
            self.cached.discard(name[1])
        return 0

    def read(self, sql: str) -> str | None:
        """The query behind a cached view that a statement reads; ``None`` where it reads none."""
        name = re.search(r"FROM `global_temp`.`(arctic_rows_\w+)`", sql)
        if name is None:
            return None
        assert name[1] in self.cached
        return self.views[name[1]]


def test_who_asks_first_computes_and_who_asks_next_keeps() -> None:
    cache, shared = Cache(), SharedRows()
    first = shared.relation("SELECT * FROM t", ["a"], cache.run)
    assert first == "SELECT `a`\nFROM (\nSELECT * FROM t\n)"
    assert not cache.views
    second = shared.relation("SELECT * FROM t", ["b"], cache.run)
    assert second.startswith("SELECT `b` FROM ")
    assert cache.read(second) == "SELECT `a`, `b`\nFROM (\nSELECT * FROM t\n)"
    before = dict(cache.views)
    assert cache.read(shared.relation("SELECT * FROM t", ["b", "a"], cache.run)) is not None
    assert cache.views == before, "these columns are there"
    assert cache.read(shared.relation("SELECT * FROM u", ["a"], cache.run)) is None, "other rows"


def test_another_column_has_all_kept_anew_under_the_same_name() -> None:
    cache, shared = Cache(), SharedRows()
    for columns in (["a"], ["a"]):
        narrow = shared.relation("SELECT * FROM t", columns, cache.run)
    assert cache.read(narrow) == "SELECT `a`\nFROM (\nSELECT * FROM t\n)"
    wide = shared.relation("SELECT * FROM t", ["c"], cache.run)
    assert cache.read(wide) == cache.read(narrow) == "SELECT `a`, `c`\nFROM (\nSELECT * FROM t\n)"
    assert len(cache.views) == 1


def test_rows_without_columns_are_counted() -> None:
    cache, shared = Cache(), SharedRows()
    assert shared.relation("SELECT * FROM t", [], cache.run) == "SELECT 1\nFROM (\nSELECT * FROM t\n)"
    for _ in range(2):
        again = shared.relation("SELECT * FROM t", [], cache.run)
    assert again.startswith("SELECT 1 FROM ")
    assert cache.read(again) == "SELECT * FROM t"
    assert cache.read(shared.relation("SELECT * FROM t", ["a"], cache.run)) is not None


def test_the_oldest_are_forgotten_and_kept_again_when_asked_for_twice() -> None:
    cache, shared = Cache(), SharedRows()
    queries = [f"SELECT * FROM t{number}" for number in range(KEPT + 1)]
    for query in queries:
        for _ in range(2):
            shared.relation(query, ["a"], cache.run)
    assert len(cache.cached) == len(cache.views) == KEPT
    assert cache.read(shared.relation(queries[-1], ["a"], cache.run)) is not None
    assert cache.read(shared.relation(queries[0], ["a"], cache.run)) is None
    assert cache.read(shared.relation(queries[0], ["a"], cache.run)) is not None
