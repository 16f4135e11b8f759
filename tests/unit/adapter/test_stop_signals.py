"""A signal ends a command in bounded time: what runs may finish, or is interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dbt_arctic.adapter.stop_signals import StopSignals


@pytest.fixture
def stopped_by() -> list[str]:
    return []


@pytest.fixture
def stop(stopped_by: list[str]) -> Iterator[StopSignals]:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
    with StopSignals(60, stopped_by.append) as made:
        yield made
    assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def test_a_signal_ends_a_wait_and_lets_an_action_finish(stop: StopSignals, stopped_by: list[str]) -> None:
    stop.wait(0)
    assert not stop.requested
    with stop.acting():
        send(signal.SIGTERM)
        finished = True
    stop.wait(3600)
    assert (stop.requested, stopped_by, finished) == ("SIGTERM", ["SIGTERM"], True)


def test_a_second_signal_interrupts_an_action_but_not_the_end(stop: StopSignals) -> None:
    def interrupted() -> None:
        with stop.acting():
            send(signal.SIGINT)
            send(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stop.requested == "SIGINT"
    send(signal.SIGTERM)
    with stop.acting():
        send(signal.SIGTERM)  # it was interrupted once, and is cancelling


def test_an_action_is_interrupted_after_the_grace(stopped_by: list[str]) -> None:
    def interrupted() -> None:
        with StopSignals(0.05, stopped_by.append) as stop, stop.acting():
            send(signal.SIGTERM)
            time.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_the_grace_also_bounds_an_action_that_begins_after_the_signal() -> None:
    with StopSignals(0.05, lambda name: None) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), stop.acting():
            time.sleep(20)


def test_an_action_that_cannot_be_cancelled_does_not_keep_the_process() -> None:
    code = """
import os, signal, time
from dbt_arctic.adapter import stop_signals
stop_signals.CANCEL_S = 0.05
with stop_signals.StopSignals(0.05, lambda name: None) as stop, stop.acting():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(2):
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
"""
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == 2
