"""What a run sent, held against what ``dbt-arctic plan --sql`` had printed: the same text, stage by stage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.stages import Result, stages_of, stages_with_sql

FRAMES: dict[Result, str] = {
    "decision": "{text}",
    "value": "{text}",
    "keys": r"CACHE LAZY TABLE `(?P<{name}>\w+)` AS\n"
    r"(?:SELECT /\*\+ COALESCE\(\d+\) \*/ \*\nFROM \(\n)?{text}(?:\n\))?",
    "rows": r"CACHE TABLE `(?P<{name}>\w+)` AS\n{text}",
    "changes": "(?:INSERT|CACHE LAZY TABLE).*{text}.*",
    "difference": "INSERT.*{text}.*",
    "table": "(?:CREATE|INSERT).*{text}.*",
    "extremes": "INSERT.*{text}.*",
}
"""The statement of a stage, by where its result goes. Of no stage is more than this known."""

SHARED = "CACHE TABLE `global_temp`.`arctic_rows_"
"""Begins a statement that reads rows of an upstream once for several models of a run.

The plan of one model does not have it, because it does not depend on the others.
"""
COMMENT = re.compile(r"^/\*.*?\*/\s*", re.DOTALL)
"""What dbt puts before each statement."""
RANGE = re.compile(r"(?:\nWHERE|\n  AND) [^\n]+ BETWEEN :min_\w+ AND :max_\w+")
PLACEHOLDER = re.compile(r":(?:min|max)_\w+")
RELATION = re.compile(r":((?:affected|shared_lookup|groups_without)_\w+|state\b)")


class PrintedStage(NamedTuple):
    """A stage, as it is printed."""

    name: str
    result: Result
    text: str


def of_plan(plan: RefreshPlan) -> list[PrintedStage]:
    """The stages of a plan with what ``plan --sql`` prints of each."""
    return [PrintedStage(stage.name, stage.result, text) for stage, text in stages_with_sql(stages_of(plan))]


def of_json(told: Mapping[str, Any]) -> list[PrintedStage]:
    """The same of a model in what ``plan --sql --json`` prints."""
    return [PrintedStage(one["name"], one["result"], told["sql"][one["purpose"]]) for one in told["stages"]]


def differing(
    shown: Iterable[PrintedStage], sent: Sequence[str], bounds: Mapping[str, str] | None = None
) -> list[str]:
    """What was printed and not sent in this order, and what was computed without having been printed.

    :param bounds: the answers that a run got for ``min_...`` and ``max_...``, each of which it has to
        use; without them any are taken, and those of keys that are NULL may be missing.
    """
    left = [COMMENT.sub("", sql) for sql in sent]
    values, found = dict(bounds or {}), list[str]()
    for one in shown:
        if one.result == "log":
            continue
        wanted = _pattern(one, values)
        place = next((place for place, sql in enumerate(left) if wanted.fullmatch(sql)), None)
        if place is None:
            found.append(f"printed and not sent: {one.name}\n{one.text}\nas {wanted.pattern}")
            continue
        match = wanted.fullmatch(left[place])
        assert match is not None
        values |= {name: value for name, value in match.groupdict().items() if value is not None}
        skipped, left = left[:place], left[place + (one.result not in ("changes", "extremes")) :]
        found += [
            f"sent and not printed: {sql}"
            for sql in skipped
            if sql.startswith("CACHE") and not sql.startswith(SHARED)
        ]
    return found


def _pattern(shown: PrintedStage, values: dict[str, str]) -> re.Pattern[str]:
    """A printed query with the relations that were made for it."""
    parts, at, text = [], 0, shown.text
    for one in RANGE.finditer(text):
        parts += [_filled(text[at : one.start()], values), f"(?:{_filled(one.group(), values)})"]
        if not values.keys() & {name[1:] for name in PLACEHOLDER.findall(one.group())}:
            parts.append("?")
        at = one.end()
    parts.append(_filled(text[at:], values))
    frame = FRAMES[shown.result].replace("{name}", f"relation_{shown.name}")
    return re.compile(frame.replace("{text}", "".join(parts)), re.DOTALL)


def _filled(text: str, values: dict[str, str]) -> str:
    made = re.escape(text)
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        made = made.replace(
            re.escape(name), re.escape(values[name[1:]]) if name[1:] in values else r"[^\n]+?"
        )
    for name in dict.fromkeys(RELATION.findall(text)):
        # Of one that is not known yet, it is found out by the statement that makes it.
        relation = values.get(f"relation_{name}")
        made = made.replace(f":{name}", f"`{relation}`" if relation else r".+?")
    # The first condition of several may be left out.
    return re.sub(r"\\\n(?:WHERE|\\ \\ AND)", r"\\n(?:WHERE|  AND)", made)
