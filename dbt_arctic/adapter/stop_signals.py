"""SIGTERM and SIGINT for a command that runs until it is stopped: its running action ends in bounded time."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

CANCEL_S = 20.0
"""The time for cancelling an action. Then the process ends, as if it had been killed."""
KILLED = 2
"""The exit code in this case."""


class StopSignals:
    """Handles the signals in its block. Only for the main thread.

    The first signal lets the running action finish for ``grace_s`` seconds, and then interrupts it like
    Ctrl-C. A second signal interrupts it at once.

    :param on_stop: called with the name of the first signal.
    """

    def __init__(self, grace_s: float, on_stop: Callable[[str], None]) -> None:
        self.requested = ""
        self._grace_s = grace_s
        self._on_stop = on_stop
        self._is_acting = False
        self._is_interrupted = False
        self._wake = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._stop)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._time_is_over)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """An action that a signal may interrupt with ``KeyboardInterrupt``."""
        self._is_acting = True
        if self.requested:  # since the last look
            self._arm()
        try:
            yield
        finally:
            self._is_acting = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def wait(self, seconds: float) -> None:
        """Wait for some time, or until a signal arrives."""
        until = time.monotonic() + seconds
        while not self.requested and (left := until - time.monotonic()) > 0:
            self._wake.wait(min(left, 3600.0))

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            self._interrupt()
            return
        self.requested = signal.Signals(number).name
        self._wake.set()
        if self._is_acting:
            self._arm()
        self._on_stop(self.requested)

    def _arm(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(self._grace_s, 0.001))

    def _time_is_over(self, number: int, frame: FrameType | None) -> None:
        if self._is_interrupted and self._is_acting:
            os._exit(KILLED)
        self._interrupt()

    def _interrupt(self) -> None:
        if self._is_acting and not self._is_interrupted:
            self._is_interrupted = True
            signal.setitimer(signal.ITIMER_REAL, CANCEL_S)
            raise KeyboardInterrupt


__all__ = ["CANCEL_S", "KILLED", "StopSignals"]
