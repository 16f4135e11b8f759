"""The inputs of a model's result other than its SQL and upstreams: session settings and the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timezone
from typing import Any

from dbt_common.invocation import get_invocation_started_at

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.auto.session_settings import ANSI, ZONE, by_name, changes_meaning, settings_text
from dbt_arctic.engine.lexer import split_header, without_comments
from dbt_arctic.engine.settings import SESSION_DEFAULTS
from dbt_arctic.planner.frontend.point_in_time import Clock

_IS_SET = re.compile(r"(set|reset)\b", re.IGNORECASE)
_SET_ZONE = re.compile(r"""set\s+time\s+zone\s+(?:'([^']*)'|"([^"]*)")""", re.IGNORECASE)
_SET = re.compile(r"set\s+(`[^`]+`|[\w.-]+)\s*=\s*(.*)", re.IGNORECASE | re.DOTALL)
_OF_ZONE = re.compile(r"set\s+time\s+zone\b|reset\s*$|.*\btimezone\b", re.IGNORECASE | re.DOTALL)
_OF_ANSI = re.compile(r"reset\s*$|.*\bansi\b", re.IGNORECASE | re.DOTALL)

_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_FOR_SESSION = re.compile(
    r"(set|reset|declare|use|cache|execute\s+immediate|create\s+(or\s+replace\s+)?temp(orary)?)(\s|$)",
    re.IGNORECASE,
)
"""Statements that change only the session."""


def time_of_invocation(
    credentials: ArcticCredentials, config: Mapping[str, Any], session: str | None = None
) -> Clock | None:
    """The start time of a dbt invocation for time functions in automatic models.

    ``None`` if the model's session has an unknown time zone.

    :param config: the config of the model.
    :param session: the settings of its session, if they are known; see ``session_text``.
    """
    began = get_invocation_started_at().replace(tzinfo=timezone.utc)
    zone = _conf(credentials, config)[ZONE] if session is None else by_name(session, as_is=True)[ZONE]
    return Clock.at(began, zone) if zone else None


def settings_of_meaning(credentials: ArcticCredentials, config: Mapping[str, Any]) -> str:
    """The declared session settings on which the result of a model depends.

    These are the settings of the profile, of the model's ``sql_header`` and of its ``pre-hook``.
    """
    conf = _conf(credentials, config)
    return settings_text(
        {
            name: value
            for name, value in conf.items()
            if changes_meaning(name) or not name.startswith("spark.sql.")
        }
    )


def _conf(credentials: ArcticCredentials, config: Mapping[str, Any]) -> dict[str, str]:
    profile = {**SESSION_DEFAULTS, **(credentials.spark_conf or {})}
    found = {name: value for name, value in profile.items() if name.startswith("spark.sql.")}
    statements, _ = split_header(config.get("sql_header"))
    for place, written in enumerate((*_sets_of_hooks(config), *statements)):
        statement = without_comments(written).strip()
        zone, setting = _SET_ZONE.fullmatch(statement), _SET.fullmatch(statement)
        if "{{" in statement or "{%" in statement:
            # dbt renders hooks when they run, so the settings are unknown here, and their text is used
            # instead.
            found[f"statement {place}"] = " ".join(statement.split())
        elif zone is not None:
            found[ZONE] = zone[1] or zone[2]
        elif setting is not None:
            found[setting[1].strip("`")] = setting[2].strip().strip("`")
        else:
            # A function or a variable may change the meaning of the SQL.
            found[f"statement {place}"] = " ".join(statement.split())
            if _IS_SET.match(statement):
                # The effect of an interval, LOCAL or RESET is unknown here.
                found |= {ZONE: ""} if _OF_ZONE.match(statement) else {}
                found |= {ANSI: ""} if _OF_ANSI.match(statement) else {}
    return found


def statements_of_session(config: Mapping[str, Any]) -> list[str]:
    """The statements of the model's ``pre-hook`` and ``sql_header`` for its session, as they are written."""
    header, _ = split_header(config.get("sql_header"))
    hooks = (one for one in _of_hooks(config) if _FOR_SESSION.match(without_comments(one).strip()))
    return [*hooks, *header]


def _sets_of_hooks(config: Mapping[str, Any]) -> Iterator[str]:
    """The text of hooks that dbt renders later, whose result is unknown here."""
    for one in _of_hooks(config):
        if "{{" in one or "{%" in one or _FOR_SESSION.match(without_comments(one).strip()):
            yield one


def _of_hooks(config: Mapping[str, Any]) -> Iterator[str]:
    hooks = config.get("pre-hook") or config.get("pre_hook") or []
    for hook in [hooks] if isinstance(hooks, str | dict) else hooks:
        text = _JINJA_COMMENT.sub(" ", hook if isinstance(hook, str) else str(hook.get("sql") or ""))
        statements, rest = split_header(text)
        yield from (*statements, rest)
