"""``dbt-arctic keep`` while files arrive: two processes, one of them killed; no row is lost or doubled."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from dbt_arctic.engine.session_cursor import SessionCursor

from .conftest import Shop
from .test_file_sources import clicks, declare, land, row
from .test_operator_commands import Terminal

PULL = "select id, city, amount from {{ incremental_pull(source('landing', 'clicks')) }}"
LOADED = "{{ config(materialized='incremental', unique_key='id', target_lag='downstream') }}\n" + PULL
APPENDED = "{{ config(materialized='incremental', target_lag='2 seconds') }}\n" + PULL
BY_CITY = """{{ config(materialized='incremental', incremental_strategy='auto', unique_key='city',
          target_lag='2 seconds') }}
select city, count(*) as n, sum(id) as ids from {{ ref('loaded') }} group by city"""
CITIES = ("Oslo", "Rome", "Bonn")
WAIT_S = 120


def project(shop: Shop) -> None:
    declare(shop, clicks=clicks(shop))
    shop.model("loaded", LOADED)
    shop.model("appended", APPENDED)
    shop.model("by_city", BY_CITY)


def keep(shop: Shop, *arguments: str) -> Any:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    return CliRunner().invoke(main, ["keep", *arguments, *folders])


class Landing:
    """Files that arrive while models are refreshed, and the rows that they have."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.rows: list[dict[str, Any]] = []

    def add(self) -> None:
        number = len(self.rows)
        made = [row(number, CITIES[number % 3]), row(number + 1, CITIES[number % 2])]
        # As careful producers do: a file has its name once it is complete.
        hidden = land(self.shop, f"clicks/.{number}.json", made)
        hidden.rename(hidden.with_name(f"{number}.json"))
        self.rows += made


def check(shop: Shop, landing: Landing) -> None:
    """All tables have exactly what the files have, each row once."""
    landed = sorted((one["id"], one["city"]) for one in landing.rows)
    assert sorted(shop.rows("appended", "id, city")) == landed
    cities = {one["id"]: one["city"] for one in landing.rows}
    assert dict(shop.rows("loaded", "id, city")) == cities
    counts = Counter(cities.values())
    sums = {city: sum(id_ for id_, of in cities.items() if of == city) for city in counts}
    assert shop.rows("by_city", "city, n, ids") == sorted((city, n, sums[city]) for city, n in counts.items())


def test_two_of_them_end_anywhere_and_no_row_is_lost_or_doubled(shop: Shop, tmp_path: Path) -> None:
    project(shop)
    landing = Landing(shop)
    landing.add()
    log = tmp_path / "second.log"
    # Built before, so that both processes do the same work from the start.
    first = keep(shop, "--for", "1s")
    assert first.exit_code == 0, first.output
    assert first.output.count("it is not built yet") == 3
    check(shop, landing)
    command = [sys.executable, "-c", "from dbt_arctic.cli.main import main; main()", "keep"]
    command += ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    with log.open("w") as output:
        second = subprocess.Popen(command, stdout=output, stderr=output)
    done = threading.Event()

    def story() -> None:
        """Land files until the second process has acted, kill it in the middle, and stop the first one."""
        try:
            tick = threading.Event()
            for _ in range(WAIT_S * 2):
                landing.add()
                tick.wait(0.5)
                if len(re.findall("refreshed|overtaken", log.read_text())) >= 4 or second.poll() is not None:
                    break
            landing.add()
            second.kill()
            landing.add()
        finally:
            done.set()
            os.kill(os.getpid(), signal.SIGTERM)

    teller = threading.Thread(target=story)
    teller.start()
    stopped = keep(shop, "--grace", "60s")
    teller.join()
    assert second.wait() == -signal.SIGKILL, log.read_text()
    assert re.search("refreshed|overtaken", log.read_text()), log.read_text()
    assert done.is_set()
    assert stopped.exit_code == 0, stopped.output
    assert "Ended by SIGTERM" in stopped.output

    landing.add()
    last = keep(shop, "--for", "6s")
    assert last.exit_code == 0, last.output
    check(shop, landing)
    lags = Terminal(shop).json("lag", "--max", "0s")
    assert {one["lag_s"] for one in lags} == {None}
    shop.dbt("run", "--full-refresh")
    check(shop, landing)


def test_a_failing_model_is_retried_and_the_others_go_on(shop: Shop) -> None:
    project(shop)
    shop.model("broken", APPENDED.replace("select id", "select raise_error('no') as id"))
    landing = Landing(shop)
    landing.add()
    failed = keep(shop, "--for", "1s")
    assert failed.exit_code == 1
    lines = failed.output.splitlines()
    assert any(re.match(r"[\d:]{8}  failed     broken .*again in 10 s", line) for line in lines), lines
    assert any("no" in line and line.startswith("          ") for line in lines)
    assert failed.output.rstrip().endswith("Failing: broken.")
    check(shop, landing)
    (shop.folder / "models" / "broken.sql").unlink()

    # After the grace, the running refresh is cancelled like by Ctrl-C, and nothing of it is there.
    landing.add()
    execute = SessionCursor.execute

    def interrupted(cursor: SessionCursor, sql: str, bindings: Any = None) -> None:
        if "appended" in sql and not interrupted_at:
            interrupted_at.append(sql)
            for _ in range(2):  # the second one does not wait for the end of the grace
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            assert cursor._running._cancelled.wait(60)
        execute(cursor, sql, bindings)

    interrupted_at: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionCursor, "execute", interrupted)
        ended = keep(shop)
    assert ended.exit_code == 0, ended.output
    assert "Ended by SIGTERM" in ended.output
    assert interrupted_at
    assert signal.getsignal(signal.SIGTERM) == before
    assert keep(shop, "--for", "3s").exit_code == 0
    check(shop, landing)

    # One table that cannot be read is a failure of its model, and nothing else.
    state = shop.catalog.load_table(shop.schema, "appended")
    assert state is not None
    folder = Path(state.location.removeprefix("file:")) / "metadata"
    file = max(folder.glob("*.metadata.json"), key=lambda path: path.name)
    text = file.read_text()
    file.write_text(text[: len(text) // 2])
    landing.add()
    failed = keep(shop, "--for", "4s")
    file.write_text(text)
    assert failed.exit_code == 1, failed.output
    assert failed.output.rstrip().endswith("Failing: appended."), failed.output
    assert len(shop.rows("loaded", "id")) == len({one["id"] for one in landing.rows})
    assert keep(shop, "--for", "3s").exit_code == 0
    check(shop, landing)


def test_settings_are_checked_when_dbt_parses_and_ignored_when_it_runs(shop: Shop) -> None:
    shop.model("late", "{{ config(materialized='incremental', target_lag='5 minuts') }} select 1 as id")
    assert "target_lag is '5 minuts'" in shop.fail("parse")
    shop.model("late", "{{ config(materialized='incremental', target_lag='5 minutes') }} select 1 as id")
    nothing = keep(shop, "--for", "1s")
    assert nothing.exit_code == 2
    assert "AR-301 target_lag has no effect on this model" in nothing.output
    shop.dbt("run")
    assert shop.rows("late") == [(1,)]
    shop.model("late", "{{ config(materialized='table', schedule={'every': '1 hour'}) }} select 2 as id")
    shop.dbt("run")
    assert shop.rows("late") == [(2,)]
    shop.model("late", "{{ config(materialized='table') }} select 2 as id")
    assert "AR-301 no model has target_lag or schedule" in keep(shop).output
