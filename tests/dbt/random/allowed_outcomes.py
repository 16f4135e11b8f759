"""What there may be after a run of a model, by what dbt reports of it and by what the oracle says."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from tests.dbt.random.automatic import result_of
from tests.dbt.random.columns import Expected, Refused, Row, Table
from tests.dbt.random.oracle import (
    as_read,
    expect,
    expect_batch,
    is_built,
    rebuilds,
    refreshed_with_late_row,
    require_allowed,
    with_late_row,
)
from tests.dbt.random.project import Interval, Model, Round, batches_of


class Fault(NamedTuple):
    """What is wrong: its kind, which stays the same while a case is made smaller, and all that is known."""

    kind: str
    text: str


@dataclass
class AllowedOutcomes:
    """:param candidates: the tables that there may be, the likeliest first.

    :param fault: what is wrong whatever there is.
    :param may_have_changed: whether the table may have other columns, with its old rows.
    :param may_have_dropped: whether it may then lack columns. A plain table drops them after it has new rows.
    :param wrote: whether the oracle says that rows are written.
    """

    candidates: list[Table | None] = field(default_factory=list)
    fault: Fault | None = None
    may_have_changed: bool = False
    may_have_dropped: bool = False
    wrote: bool = True


@dataclass(frozen=True)
class RanModel:
    """A model in a round.

    :param result: dbt's, ``None`` if it reports nothing.
    :param cut: whether the run may have ended at any statement of the model.
    :param late: a row that another process upserts while the model is refreshed in full.
    :param upstream: of an automatic model, what it reads, after this round.
    """

    model: Model
    round: Round
    result: Any
    before: Table | None
    cut: bool
    zone: str = "UTC"
    upstream: Table | None = None
    earlier: Any = None
    late: Row | None = None

    @property
    def failed(self) -> bool:
        return self.result is None or is_failure(self.result)

    @property
    def message(self) -> str:
        return "nothing" if self.result is None else str(self.result.message)

    @property
    def keeps_batches(self) -> bool:
        """Whether ``--empty`` leaves the table of a microbatch model as it is, and its properties too."""
        is_read_in_part = "microbatch" in self.model.kind and self.round.empty and self.before is not None
        return is_read_in_part and not is_built(self.model, self.before, self.round)

    def after(self) -> AllowedOutcomes:
        if self.result is None and not self.cut:
            return AllowedOutcomes([self.before])
        return self._after_batches() if "microbatch" in self.model.kind else self._after_all()

    def _expect(self) -> Expected:
        if self.model.kind != "auto":
            batch = as_read(self.model, self.round.batches[self.model.name], self.round)
            poisoned = self.model.name in self.round.poisoned
            expected = expect(self.model, self.before, batch, self.round, poisoned)
            if self.late is None or expected.table is None:
                return expected
            assert self.before is not None
            refreshed = refreshed_with_late_row(self.model, self.before, expected.table, self.late)
            return replace(refreshed, may_refuse=refreshed.may_refuse or expected.may_refuse)
        if self.upstream is None or (self.failed and str(self.result and self.result.status) == "skipped"):
            raise Refused("the upstream model failed", by_upstream=True)
        if self.before is not None and self.round.is_partial and not rebuilds(self.model, self.round):
            return Expected(self.before)
        upstream = replace(self.upstream, rows=[]) if self.round.empty else self.upstream
        return Expected(result_of(self.model, upstream))

    def _after_all(self) -> AllowedOutcomes:
        expected: Expected | None = None
        refusal: Refused | None = None
        try:
            expected = self._expect()
        except Refused as error:
            refusal = error
        after = AllowedOutcomes([self.before], may_have_dropped=self.model.is_keyed, wrote=refusal is None)
        if self.late is not None and self.before is not None and self.failed:
            # It may have landed before the refresh was refused; if it is the reason, it has.
            landed = with_late_row(self.model, self.before, self.late)
            after.candidates = [landed] if refusal and refusal.by_late_row else [self.before, landed]
        if not self.failed:
            if expected is None:
                after.fault = Fault("accepted", f"it reports success, and is to be refused: {refusal}")
            else:
                after.candidates = [expected.table]
        elif self.cut:
            after.may_have_changed = True
            if expected is not None:
                after.candidates += [expected.table, *filter(None, [expected.undropped])]
        elif refusal is None and not (expected and expected.may_refuse):
            after.fault = Fault(f"refused {code_of(self.message)}", f"it is refused: {self.message}")
        elif not (refusal and refusal.by_upstream):
            wrong = unclear(self.message, by_spark=refusal is not None and refusal.by_spark)
            if not wrong and refusal and refusal.by_late_row and not refusal.by_spark:
                code = code_of(self.message)
                wrong = "" if code == "AR-404" else f"{code} in place of AR-404"
            if wrong:
                after.fault = Fault(wrong, f"{wrong} ({refusal}): {self.message}")
            after.may_have_changed = refusal is None or refusal.by_rows
        return after

    def _after_batches(self) -> AllowedOutcomes:
        batches = batches_of(self.model, self.round)
        again = self.earlier if self.round.verb == "retry" else None
        todo = [one for one in batches if again is None or one not in done_batches(again, batches)]
        done = set(todo) & (set() if self.result is None else done_batches(self.result, batches))
        ways = itertools.product(
            *[(True,) if one in done else (False, True) if self.cut else (False,) for one in todo]
        )
        after = AllowedOutcomes(
            may_have_changed=self.cut, may_have_dropped=self.model.is_keyed, wrote=len(done) == len(todo)
        )
        for way in ways:
            tables, fault, by_rows = self._through(dict(zip(todo, way, strict=True)), batches)
            after.may_have_changed |= by_rows
            if fault is None:
                after.candidates += tables
            else:
                after.fault = after.fault or fault
        if after.candidates:
            after.fault = None
        return after

    def _through(
        self, ways: dict[Interval, bool], batches: list[Interval]
    ) -> tuple[list[Table | None], Fault | None, bool]:
        """The table after some batches, of which some were applied; or why it cannot be so.

        If the run may have ended at any statement, the table may still have columns that are dropped last.
        The last value: whether a batch was refused for its rows, after it may have changed columns.
        """
        table, skipping, by_rows = self.before, False, False
        undropped: Table | None = None
        batch = as_read(self.model, self.round.batches[self.model.name], self.round)
        for place, (interval, applied) in enumerate(ways.items()):
            expected: Expected | None = None
            refusal: Refused | None = None
            try:
                require_allowed(self.model, batch, self.round)
                if self.keeps_batches:
                    expected = Expected(table)
                else:
                    expected = expect_batch(
                        self.model,
                        table,
                        batch,
                        interval,
                        rebuild=rebuilds(self.model, self.round) and interval == batches[0],
                        zone=self.zone,
                        poisoned=self.model.name in self.round.poisoned and interval == batches[-1],
                    )
            except Refused as error:
                refusal = error
            if applied:
                if expected is None:
                    return (
                        [],
                        Fault("accepted", f"the batch of {interval[0]} is to be refused: {refusal}"),
                        False,
                    )
                table, undropped = expected.table, expected.undropped
            elif expected is not None and not (expected.may_refuse or self.cut or skipping):
                kind = f"refused {code_of(self.message)}"
                return [], Fault(kind, f"the batch of {interval[0]} is refused: {self.message}"), False
            by_rows = by_rows or (not applied and refusal is not None and refusal.by_rows)
            # After the first batch failed, dbt runs no other.
            skipping = skipping or (not applied and place == 0)
        return [table, *([undropped] if self.cut and undropped is not None else [])], None, by_rows


def is_failure(result: Any) -> bool:
    return str(result.status) in ("error", "fail", "skipped", "partial success", "runtime error")


def done_batches(result: Any, batches: list[Interval]) -> set[Interval]:
    """The batches that a microbatch model's result calls successful."""
    if not is_failure(result):
        return set(batches)
    if result.batch_results is None:
        return set()
    starts = {start.replace(tzinfo=None) for start, _ in result.batch_results.successful}
    return {one for one in batches if one[0] in starts}


def code_of(message: str) -> str:
    found = re.search(r"AR-\d\d\d", message)
    return found[0] if found else "without a code"


def unclear(message: str, by_spark: bool) -> str:
    """What is wrong with the text of a refusal."""
    if "Traceback" in message or "\tat org." in message:
        return "a traceback"
    code = code_of(message)
    if code == "without a code":
        return (
            "" if "Compilation Error" in message or "Contract Error" in message else "an error without a code"
        )
    if code == "AR-201" and not by_spark:
        return "Spark's own error"
    return ""
