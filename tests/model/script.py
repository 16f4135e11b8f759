"""A story as a list of operations that can be repeated, and made shorter as long as it still goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dbt_arctic.errors import ArcticError
from tests.model.operations import Operation, perform
from tests.model.story import Story
from tests.model.world import World

MISTAKES = (AssertionError, LookupError, TypeError, ValueError)
"""Failures in addition to the errors that a user sees."""
NewWorld = Callable[[int, int], World]
"""From a seed, and how many milliseconds each statement takes."""


@dataclass(frozen=True)
class Script:
    seed: int
    tick_ms: int
    sequence: bool
    watched: bool
    operations: tuple[Operation, ...]
    thorough: int = 4

    def __str__(self) -> str:
        head = f"Script(seed={self.seed}, tick_ms={self.tick_ms}, sequence={self.sequence}, "
        lines = "".join(f"    {operation},\n" for operation in self.operations)
        return f"{head}watched={self.watched}, thorough={self.thorough}, operations=(\n{lines}))"

    def begin(self, new_world: NewWorld) -> Story:
        world = new_world(self.seed, self.tick_ms)
        return Story(world, sequence=self.sequence, watched=self.watched, thorough=self.thorough)


def failure_of(script: Script, new_world: NewWorld) -> str:
    """How it goes wrong; empty if it does not."""
    story = script.begin(new_world)
    try:
        for operation in script.operations:
            perform(story, operation)
    except (*MISTAKES, ArcticError) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        story.world.close()
    return ""


def shortened(script: Script, new_world: NewWorld, tries: int = 400) -> Script:
    """The same with as few operations, and as little trouble, as can be found in some tries."""
    kind = _kind(failure_of(script, new_world))
    left = tries

    def still_fails(candidate: Script) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and _kind(failure_of(candidate, new_world)) == kind

    width = max(1, len(script.operations) // 2)
    while left > 0:
        for start in range(len(script.operations) - width, -1, -width):
            kept = script.operations[:start] + script.operations[start + width :]
            candidate = replace(script, operations=kept)
            if still_fails(candidate):
                script = candidate
        if width == 1:
            break
        width = max(1, width // 2)
    for place, operation in enumerate(script.operations):
        for simpler in _simpler(operation):
            operations = (*script.operations[:place], simpler, *script.operations[place + 1 :])
            if simpler != operation and still_fails(replace(script, operations=operations)):
                script = replace(script, operations=operations)
                break
    return script


def _simpler(operation: Operation) -> Sequence[Operation]:
    without = replace(operation, trouble="none", other=None, at=0)
    fewer = [
        replace(operation, batch=operation.batch[:at] + operation.batch[at + 1 :])
        for at in range(len(operation.batch))
    ]
    return [replace(without, batch=()), without, *fewer]


def _kind(failure: str) -> str:
    """What a failure begins with, without numbers: the same mistake, whatever the rows."""
    return "".join(character for character in failure[:60] if not character.isdigit())
