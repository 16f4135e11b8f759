"""The result of a refresh: what it has written, how it was done, and how it was verified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dbt_arctic.human_readable import counted


@dataclass(frozen=True)
class Choice:
    """How an automatic model was refreshed.

    :param reason: the code of the reason, if there is one.
    :param keys: the number of recomputed keys; ``None`` if the refresh was not by keys.
    :param how: the text in brackets if there is neither a reason nor a number of keys.
    """

    strategy: Literal["incremental", "full", "skip"]
    reason: str = ""
    keys: int | None = None
    how: str = ""

    def __str__(self) -> str:
        detail = self.how or self.reason if self.keys is None else counted(self.keys, "key")
        return f"{self.strategy.upper()} ({detail})" if detail else self.strategy.upper()


@dataclass(frozen=True)
class StageRun:
    """A stage of a refresh that was executed.

    :param relation: the table that was refreshed.
    :param stage: the name of the stage as in ``dbt-arctic plan --json``.
    :param seconds: ``None`` if the stage was part of the statement of another stage.
    :param rows: the rows that it read or wrote; ``None`` if they were not counted.
    """

    relation: str
    stage: str
    seconds: float | None = None
    rows: int | None = None


@dataclass(frozen=True)
class Verification:
    """Whether a refresh was verified by recomputing a sample of keys. If one differs, the model fails.

    :param keys: the number of recomputed keys.
    :param why: why it was not; empty otherwise.
    """

    result: Literal["equal", "skipped", "postponed", "not due"]
    keys: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """The result of a refresh, for dbt's log and ``run_results.json``.

    :param rows: the rows written; ``None`` if unknown.
    :param stages: the executed stages of an automatic model, in order.
    :param fell_back: the reasons for which the refresh fell back to another plan, in order.
    :param verified: ``None`` if the model is not verified, or was not refreshed incrementally.
    """

    message: str
    rows: int | None
    sql: str
    choice: Choice | None = None
    stages: tuple[StageRun, ...] = ()
    fell_back: tuple[str, ...] = ()
    verified: Verification | None = None
