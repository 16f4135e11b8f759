"""The start of Spark is reported: what is downloaded and how much so far, and that it is still starting."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dbt_arctic.engine import start_notices
from dbt_arctic.engine.start_notices import is_reported, report_to, starting

JAR = "org.example:big-runtime_2.13:1.0"


class Reader:
    """Collects reports, and waits for one."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._new = threading.Condition()

    def __call__(self, text: str) -> None:
        with self._new:
            self.texts.append(text)
            self._new.notify_all()

    def wait_for(self, text: str) -> None:
        with self._new:
            assert self._new.wait_for(lambda: any(text in one for one in self.texts), timeout=60), self.texts


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Reader:
    monkeypatch.setattr(start_notices, "_EVERY_S", 0.01)
    monkeypatch.setattr(start_notices, "_WORTH_REPORTING_S", 0.0)
    monkeypatch.setattr(start_notices, "_report", None)
    assert not is_reported()
    found = Reader()
    report_to(found)
    assert is_reported()
    return found


def test_a_download_names_the_jars_and_counts_megabytes(reader: Reader, tmp_path: Path) -> None:
    conf = {"spark.jars.ivy": str(tmp_path), "spark.jars.packages": JAR}
    loading = tmp_path / "cache" / "org.example" / "big-runtime_2.13" / "jars"
    loading.mkdir(parents=True)
    (loading / "old.jar").write_bytes(b"1" * 5_000_000)
    with starting(conf, "Java 17.0.1"):
        (loading / "big.jar.part").write_bytes(b"1" * 7_000_000)
        reader.wait_for("still downloading: 7 MB in 0 s")
        (tmp_path / "jars").mkdir()
        (tmp_path / "jars" / "org.example_big-runtime_2.13-1.0.jar").write_bytes(b"1")
        reader.wait_for("still starting Spark: 0 s")
    assert reader.texts[0] == (
        f"downloading big-runtime_2.13 (once, to {tmp_path}), then starting Spark with Java 17.0.1"
    )
    assert reader.texts[-1] == "Spark has started in 0 s"


def test_a_start_that_fails_is_not_reported_as_one(reader: Reader) -> None:
    with pytest.raises(RuntimeError), starting({}, "Java 21"):
        raise RuntimeError
    assert [text for text in reader.texts if "still" not in text] == ["starting Spark with Java 21"]


def test_nothing_is_reported_where_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_notices, "_report", None)
    with starting({}, "Java 21"):
        pass
