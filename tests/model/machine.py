"""A state machine that draws operations on keyed tables and compares everything after each of them.

The creator of the machine chooses the world: thousands of operations run on the lake in memory, and hundreds
of the same operations on Spark.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.model.operations import INTERRUPTIBLE, KINDS, WITH_ROWS, Operation, perform
from tests.model.script import NewWorld, Script
from tests.model.story import Change, Story

KEYS = 5
_LAST_STATEMENT = 14

changes = st.builds(
    Change,
    key=st.integers(0, KEYS - 1),
    amount=st.one_of(st.none(), st.integers(1, 99)),
    day=st.integers(0, 2),
    sequence=st.integers(0, 4),
)
batches = st.lists(changes, max_size=3, unique_by=lambda change: change.key).map(tuple)
# What a table lives by comes more often than what is done to it now and then.
OFTEN = ("upsert", "upsert", "compact", "compact", "pull", "advance", "begin_read", "end_read")
kinds = st.sampled_from([*KINDS, *OFTEN])
tables = st.sampled_from(["orders", "orders", "copy"])
numbers = st.integers(0, 11)


def _plain(kind: str) -> st.SearchStrategy[Operation]:
    batch = batches if kind in WITH_ROWS else st.just(())
    return st.builds(Operation, kind=st.just(kind), of=tables, number=numbers, batch=batch)


_PLAIN = {kind: _plain(kind) for kind in KINDS}
INNER = [kind for kind in KINDS if kind not in ("schema", "restore", "advance")]
_INNER = st.sampled_from(INNER).flatmap(lambda kind: _PLAIN[kind])
TROUBLES = ["none", "none", "die", "lose", "refuse", "meet", "meet"]


def _troubled(kind: str) -> st.SearchStrategy[Operation]:
    if kind not in INTERRUPTIBLE:
        return _PLAIN[kind]
    trouble = st.sampled_from(TROUBLES)

    def disturbed(drawn: tuple[Operation, str, int, Operation]) -> Operation:
        operation, what, at, other = drawn
        return replace(operation, trouble=what, at=at, other=other if what == "meet" else None)

    return st.tuples(_PLAIN[kind], trouble, st.integers(0, _LAST_STATEMENT), _INNER).map(disturbed)


def drawn_by(chance: random.Random) -> Operation:
    """The same without Hypothesis, whose first stories are the simplest: one thing over and over."""
    operation = _drawn_plain(chance, chance.choice([*KINDS, *OFTEN]))
    trouble = chance.choice(TROUBLES)
    if operation.kind not in INTERRUPTIBLE or trouble == "none":
        return operation
    other = _drawn_plain(chance, chance.choice(INNER)) if trouble == "meet" else None
    return replace(operation, trouble=trouble, at=chance.randrange(_LAST_STATEMENT + 1), other=other)


def _drawn_plain(chance: random.Random, kind: str) -> Operation:
    keys = chance.sample(range(KEYS), chance.randrange(4)) if kind in WITH_ROWS else []
    batch = tuple(
        Change(
            key,
            None if chance.random() < 0.3 else chance.randrange(1, 100),
            chance.randrange(3),
            chance.randrange(5),
        )
        for key in keys
    )
    return Operation(kind, chance.choice(["orders", "orders", "copy"]), chance.randrange(12), batch)


_TROUBLED = {kind: _troubled(kind) for kind in KINDS}
operations = kinds.flatmap(lambda kind: _TROUBLED[kind])


@dataclass
class Tally:
    """What machines of one kind have done so far."""

    steps: int = 0
    stories: int = 0
    last: Script | None = None
    """The last story: the failed one, if there is one."""


def make_machine(
    new_world: NewWorld, tally: Tally, thorough: int = 4, may_watch: bool = True, few: bool = False
) -> type[RuleBasedStateMachine]:
    """:param thorough: every how many steps old versions are read and ``verify`` is run.

    :param few: whether there will be few stories, each of which has to have some of everything.
    :param may_watch: whether some stories are read before each statement of each operation.
    """

    class KeyedTableMachine(RuleBasedStateMachine):
        story: Story | None = None

        @initialize(
            seed=st.integers(0, 10**6),
            tick=st.sampled_from([1, 1, 0]),
            sequence=st.sampled_from([False, False, True]),
            watched=st.booleans() if may_watch else st.just(False),
            batch=batches,
        )
        def begin(
            self, seed: int, tick: int, sequence: bool, watched: bool, batch: tuple[Change, ...]
        ) -> None:
            tally.stories += 1
            tally.last = Script(seed, tick, sequence, watched, (), thorough)
            self.story = tally.last.begin(new_world)
            self._perform(Operation("build", batch=batch))

        @rule(operation=st.integers(0, 2**30) if few else operations)
        def step(self, operation: Operation | int) -> None:
            tally.steps += 1
            if isinstance(operation, int):
                assert tally.last is not None
                place = f"{tally.last.seed} {len(tally.last.operations)} {operation}"
                operation = drawn_by(random.Random(place))
            self._perform(operation)

        def _perform(self, operation: Operation) -> None:
            assert self.story is not None
            assert tally.last is not None
            tally.last = replace(tally.last, operations=(*tally.last.operations, operation))
            perform(self.story, operation)

        def teardown(self) -> None:
            if self.story is not None:
                self.story.world.close()

    return KeyedTableMachine
