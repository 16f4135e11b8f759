"""Operations as values: what a state machine draws, a script repeats, and a person reads.

An operation is done to a ``Story``; numbers in it choose among what there is at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt_arctic.maintenance.leftovers import Retention
from tests.model.oracle import TableLog
from tests.model.story import GRACE_S, Change, Story
from tests.model.world import Disturbance

MINUTE_MS = 60_000
PASSING_MS = (1_000, 11 * MINUTE_MS, 25 * 60 * MINUTE_MS, 8 * 24 * 60 * MINUTE_MS)
"""Nothing, the grace, the retention of tombstones and the age of what was abandoned, all that is kept."""


@dataclass(frozen=True)
class Operation:
    """One thing to do.

    :param kind: a name in ``_DO`` or ``_ON_REQUEST`` below.
    :param of: ``orders`` or ``copy``, where it is about one of them.
    :param number: chooses: a day, a version, a length of time, a side table.
    :param batch: with sequences as distances from the oldest that may come.
    """

    kind: str
    of: str = "orders"
    number: int = 0
    batch: tuple[Change, ...] = ()
    trouble: str = "none"
    at: int = 0
    other: Operation | None = None
    """With the trouble ``meet``: another process's operation in the middle of it."""


def perform(story: Story, operation: Operation) -> None:
    """Do it, as far as it makes sense now: without a table there is nothing to look after."""
    (_DO | _ON_REQUEST)[operation.kind](story, operation)


def _trouble(story: Story, operation: Operation) -> Disturbance:
    other = operation.other
    return Disturbance(operation.trouble, operation.at, (lambda: perform(story, other)) if other else None)


def _table(story: Story, operation: Operation) -> TableLog:
    return story.copy if operation.of == "copy" and story.copy.shown is not None else story.orders


def _batch(story: Story, operation: Operation) -> list[Change]:
    made = [replace(one, sequence=story.oldest + one.sequence) for one in operation.batch]
    story.newest = max([story.newest, *(one.sequence for one in made)])
    return made


def _build(story: Story, operation: Operation) -> None:
    story.build(_batch(story, operation), _trouble(story, operation))


def _upsert(story: Story, operation: Operation) -> None:
    story.upsert(_batch(story, operation), _trouble(story, operation))


def _replace_day(story: Story, operation: Operation) -> None:
    if not story.sequence:
        story.replace_day(operation.number % 3, _batch(story, operation), _trouble(story, operation))


def _upsert_amounts(story: Story, operation: Operation) -> None:
    story.upsert_amounts(_batch(story, operation), _trouble(story, operation))


def _overwrite(story: Story, operation: Operation) -> None:
    if not story.sequence:
        story.overwrite(_batch(story, operation), _trouble(story, operation))


def _modify(story: Story, operation: Operation) -> None:
    if not story.sequence:
        deletes = operation.number % 2 == 0
        story.modify(operation.number % 3, deletes, _trouble(story, operation))


def _roll_back(story: Story, operation: Operation) -> None:
    if story.versions:
        version = story.versions[operation.number % len(story.versions)]
        story.roll_back(story.orders, version, _trouble(story, operation))


def _compact(story: Story, operation: Operation) -> None:
    grace = 0 if operation.number % 3 == 0 else GRACE_S
    story.compact(_table(story, operation), grace, _trouble(story, operation))


def _minor(story: Story, operation: Operation) -> None:
    story.put_together("minor", _table(story, operation), _trouble(story, operation))


def _full(story: Story, operation: Operation) -> None:
    story.put_together("full", _table(story, operation), _trouble(story, operation))


def _rebucket(story: Story, operation: Operation) -> None:
    count = 1 << operation.number % 3
    story.put_together(f"{count} buckets", _table(story, operation), _trouble(story, operation))


def _trim(story: Story, operation: Operation) -> None:
    story.put_together("trim", _table(story, operation), _trouble(story, operation))


def _trim_now(story: Story, operation: Operation) -> None:
    """What was merged a moment ago: where no reader was promised the grace."""
    story.put_together("trim", _table(story, operation), _trouble(story, operation), grace_s=0)


def _let_go(story: Story, operation: Operation) -> None:
    story.let_go(_table(story, operation), GRACE_S * 1000, _trouble(story, operation))


def _let_go_now(story: Story, operation: Operation) -> None:
    story.let_go(_table(story, operation), 0, _trouble(story, operation))


def _merge_files(story: Story, operation: Operation) -> None:
    story.merge_files()


def _undo(story: Story, operation: Operation) -> None:
    table = _table(story, operation)
    if table.shown is not None and table.shown.previous is not None:
        story.undo_full_refresh(table, _trouble(story, operation))


def _restore(story: Story, operation: Operation) -> None:
    story.restore(_table(story, operation))


def _pull(story: Story, operation: Operation) -> None:
    story.pull(_trouble(story, operation), rebuild=operation.number == 7)


def _savepoint(story: Story, operation: Operation) -> None:
    name = f"kept{operation.number % 2}"
    if name in story.savepoints():
        story.drop_savepoint(name)
    else:
        story.savepoint(name, _trouble(story, operation))


def _clean(story: Story, operation: Operation) -> None:
    retention = Retention(keep_previous_ms=0) if operation.number % 4 == 0 else Retention()
    story.clean(retention, _trouble(story, operation))


def _expire(story: Story, operation: Operation) -> None:
    age = 0 if operation.number % 3 == 0 else GRACE_S * 1000
    story.expire(_table(story, operation), _role(operation), age)


def _rewrite(story: Story, operation: Operation) -> None:
    story.rewrite(_table(story, operation), _role(operation))


def _role(operation: Operation) -> str:
    return "base" if operation.number % 2 else "change"


def _advance(story: Story, operation: Operation) -> None:
    story.advance(PASSING_MS[operation.number % len(PASSING_MS)])


def _schema(story: Story, operation: Operation) -> None:
    story.extra = not story.extra


def _begin_read(story: Story, operation: Operation) -> None:
    story.begin_read()


def _end_read(story: Story, operation: Operation) -> None:
    story.end_read()


_DO: dict[str, Any] = {
    "build": _build,
    "upsert": _upsert,
    "upsert_amounts": _upsert_amounts,
    "overwrite": _overwrite,
    "modify": _modify,
    "replace_day": _replace_day,
    "roll_back": _roll_back,
    "compact": _compact,
    "minor": _minor,
    "full": _full,
    "rebucket": _rebucket,
    "trim": _trim,
    "let_go": _let_go,
    "undo": _undo,
    "restore": _restore,
    "pull": _pull,
    "savepoint": _savepoint,
    "clean": _clean,
    "expire": _expire,
    "rewrite": _rewrite,
    "advance": _advance,
    "schema": _schema,
    "begin_read": _begin_read,
    "end_read": _end_read,
}
KINDS = tuple(_DO)
_ON_REQUEST: dict[str, Any] = {"trim_now": _trim_now, "let_go_now": _let_go_now, "merge_files": _merge_files}
"""What no machine draws: without a clock of its own, or on Spark alone."""
INTERRUPTIBLE = frozenset(
    {
        "build",
        "upsert",
        "upsert_amounts",
        "overwrite",
        "modify",
        "replace_day",
        "roll_back",
        "compact",
        "minor",
        "full",
        "rebucket",
        "trim",
        "let_go",
        "undo",
        "pull",
        "savepoint",
        "clean",
    }
)
"""What runs statements of its own, between which something may happen."""
WITH_ROWS = frozenset({"build", "upsert", "upsert_amounts", "overwrite", "replace_day"})
"""What is given a batch."""
