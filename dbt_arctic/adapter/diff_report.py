"""The result of ``dbt-arctic diff``: how the relations of two targets differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.null_safe_equality import FLOATS
from dbt_arctic.keyed.row_diff import ColumnPair
from dbt_arctic.keyed.type_categories import compare_exactly

Columns = Sequence[tuple[str, str]]
"""Names and Spark types."""
State = Literal["compared", "clone", "new", "not built", "not compared", "failed"]
"""``clone``: a clone without a write, so the rows are those of the base target. ``new``: only in the current
target. ``not built``: only in the base target, or in neither."""

_THRESHOLD = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


@dataclass(frozen=True)
class ColumnDifference:
    """One difference between the columns of two relations.

    :param here: the type in the current target; empty if the column is missing there.
    :param there: the type in the base target; empty likewise.
    """

    column: str
    here: str
    there: str

    def __str__(self) -> str:
        if not self.there:
            return f"{self.column} {self.here} is new"
        if not self.here:
            return f"{self.column} {self.there} is missing"
        return f"{self.column} was {self.there}, is {self.here}"


@dataclass(frozen=True)
class Shared:
    """The columns that two relations have in common.

    :param not_compared: columns with types whose values cannot be compared exactly.
    """

    differences: tuple[ColumnDifference, ...]
    columns: tuple[ColumnPair, ...]
    not_compared: tuple[str, ...]


def match_columns(here: Columns, there: Columns) -> Shared:
    """The common columns of two relations, and how their columns differ. Names are case-insensitive.

    >>> found = match_columns([("id", "bigint"), ("n", "date")], [("ID", "int"), ("n", "string")])
    >>> [str(one) for one in found.differences], found.not_compared
    (['id was int, is bigint', 'n was string, is date'], ('n',))
    """
    others = {name.lower(): (name, type_) for name, type_ in there}
    differences, columns, not_compared = [], [], []
    for name, type_ in here:
        other = others.pop(name.lower(), None)
        if other is None:
            differences.append(ColumnDifference(name, type_, ""))
            continue
        if other[1] != type_:
            differences.append(ColumnDifference(name, type_, other[1]))
        if compare_exactly(type_, other[1]):
            type_of_both = "double" if {type_, other[1]} == set(FLOATS) else type_
            columns.append(ColumnPair(name, other[0], type_of_both))
        else:
            not_compared.append(name)
    differences += [ColumnDifference(name, "", type_) for name, type_ in others.values()]
    return Shared(tuple(differences), tuple(columns), tuple(not_compared))


@dataclass(frozen=True)
class Sample:
    """One row that differs.

    :param kind: ``here``: only in the current target; ``there``: only in the base target; ``changed``.
    :param key: the key; for relations that are compared without a key, the whole row.
    :param values: the columns that differ, with the value in the base target and in the current one.
    """

    kind: Literal["here", "there", "changed"]
    key: Mapping[str, Any]
    values: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelDiff:
    """The comparison of one model.

    :param here: the relation in the current target, and ``there`` in the base target.
    :param key: the columns by which rows were matched; empty if whole rows were compared.
    :param rows: the rows in the current target, and ``base_rows`` in the base target.
    :param columns: the number of changed rows by column, for columns that differ in any row.
    :param why: why it was not compared, or why it was compared without a key.
    :param ignored: columns of one of the relations that were ignored as requested, in lower case.
    """

    model: str
    here: str
    there: str
    state: State
    schema: tuple[ColumnDifference, ...] = ()
    not_compared: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    rows: int = 0
    base_rows: int = 0
    only_here: int = 0
    only_there: int = 0
    changed: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    why: str = ""
    ignored: frozenset[str] = frozenset()

    @property
    def differing(self) -> int:
        """The number of rows that differ."""
        return self.only_here + self.only_there + self.changed

    @property
    def share(self) -> Decimal:
        """The share of rows that differ, relative to the rows of both relations."""
        both = self.rows + self.only_there
        return Decimal(self.differing) / both if both else Decimal(0)

    @property
    def differs(self) -> bool:
        """Whether there is anything to review."""
        return bool(self.differing or self.schema or self.state == "new")


@dataclass(frozen=True)
class Threshold:
    """The most rows of a model that may differ: a number, or a share of its rows."""

    rows: int | None = None
    share: Decimal | None = None

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Parse ``100`` or ``0.1%``.

        :raises ConfigError: it is neither.

        >>> Threshold.parse("0.1%").share, Threshold.parse("20").rows
        (Decimal('0.001'), 20)
        """
        match = _THRESHOLD.fullmatch(text.strip())
        if match is None or (not match[2] and "." in match[1]):
            raise ConfigError(
                f"{text!r} is neither a number of rows nor a share",
                where="--max-changed",
                fix="write --max-changed 100, or --max-changed 0.1%",
            )
        if match[2]:
            return cls(share=Decimal(match[1]) / 100)
        return cls(rows=int(match[1]))

    def is_exceeded(self, found: ModelDiff) -> bool:
        """Whether more rows differ. A column that was lost differs in each row.

        What could not be compared may differ anywhere.
        """
        if found.state in ("not compared", "failed") or found.not_compared:
            return True
        if any(not one.here for one in found.schema):
            return True
        if self.rows is not None:
            return found.differing > self.rows
        return self.share is not None and found.share > self.share


@dataclass(frozen=True)
class DiffReport:
    """The comparison of the selected models."""

    target: str
    base: str
    models: tuple[ModelDiff, ...]
    threshold: Threshold | None = None

    def of(self, *states: State) -> list[ModelDiff]:
        """The models in some states."""
        return [one for one in self.models if one.state in states]

    @property
    def exceeding(self) -> list[ModelDiff]:
        """The models of which more rows differ than the threshold permits; none without a threshold."""
        threshold = self.threshold
        return [] if threshold is None else [one for one in self.models if threshold.is_exceeded(one)]

    @property
    def is_nothing_built(self) -> bool:
        """Whether there is nothing to compare, as in a target of the wrong name or before its first run."""
        return len(self.of("not built")) == len(self.models)

    def unknown_columns(self, ignored: frozenset[str]) -> list[str]:
        """The columns to be ignored that no compared relation has. A misspelled name is one of them.

        :param ignored: names in lower case.
        """
        compared = self.of("compared", "not compared")
        known = frozenset[str]().union(*(one.ignored for one in compared))
        return sorted(ignored - known) if compared else []

    @property
    def exit_code(self) -> int:
        """1: the threshold is exceeded. 2: a comparison failed, or no model is built."""
        if self.of("failed") or self.is_nothing_built:
            return 2
        return 1 if self.exceeding else 0

    @property
    def summary(self) -> str:
        """One line."""
        compared = self.of("compared", "clone")
        differing = [one for one in self.models if one.differs]
        parts = [f"{len(compared)} compared", f"{len(differing)} differ"]
        for state in ("new", "not built", "not compared", "failed"):
            if found := [one for one in self.models if one.state == state]:
                parts.append(f"{len(found)} {state}")
        over = f", {len(self.exceeding)} over the threshold" if self.exceeding else ""
        nothing = f"; build the models in {self.target} first" if self.is_nothing_built else ""
        return f"diff of {self.target} with {self.base}: {', '.join(parts)}{over}{nothing}"
