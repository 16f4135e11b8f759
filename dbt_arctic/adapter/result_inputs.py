"""What a model's result depends on besides its SQL and its upstreams: the session's settings, the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timezone
from typing import Any

from dbt_common.invocation import get_invocation_started_at

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.engine.lexer import split_header, without_comments
from dbt_arctic.engine.settings import SESSION_DEFAULTS
from dbt_arctic.planner.frontend.point_in_time import Clock

_OF_SPEED = tuple(
    f"spark.sql.{name}"
    for name in (
        *("adaptive.", "autoBroadcast", "broadcastTimeout", "catalog.", "cbo.", "codegen.", "execution."),
        *("extensions", "files.", "iceberg.", "inMemoryColumnarStorage.", "join.", "optimizer.", "parquet."),
        *("requireAllClusterKeysForCoPartition", "shuffle.", "sources.", "statistics.", "ui.", "warehouse."),
    )
)
"""Settings of how a query is run. Any other may be one of what it means."""
_ZONE = "spark.sql.session.timeZone"
_ANSI = "spark.sql.ansi.enabled"
_IS_SET = re.compile(r"(set|reset)\b", re.IGNORECASE)
_SET_ZONE = re.compile(r"""set\s+time\s+zone\s+(?:'([^']*)'|"([^"]*)")""", re.IGNORECASE)
_SET = re.compile(r"set\s+(`[^`]+`|[\w.-]+)\s*=\s*(.*)", re.IGNORECASE | re.DOTALL)
_OF_ZONE = re.compile(r"set\s+time\s+zone\b|reset\s*$|.*\btimezone\b", re.IGNORECASE | re.DOTALL)
_OF_ANSI = re.compile(r"reset\s*$|.*\bansi\b", re.IGNORECASE | re.DOTALL)

_JINJA_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_FOR_SESSION = re.compile(r"(set|reset|declare|create\s+(or\s+replace\s+)?temp(orary)?)(\s|$)", re.IGNORECASE)
"""Statements that change nothing but the session."""


def time_of_invocation(credentials: ArcticCredentials, config: Mapping[str, Any]) -> Clock | None:
    """What functions of time tell automatic models of a dbt invocation: when it began; ``None`` where the
    model's session has a time zone that is not known here.

    :param config: the model's.
    """
    began = get_invocation_started_at().replace(tzinfo=timezone.utc)
    zone = _conf(credentials, config)[_ZONE]
    return Clock.at(began, zone) if zone else None


def settings_of_meaning(credentials: ArcticCredentials, config: Mapping[str, Any]) -> str:
    """The session's settings on which the result of a model depends: those of the profile, and what is set in
    the model's ``sql_header`` and ``pre-hook``.
    """
    conf = _conf(credentials, config)
    names = (name for name in sorted(conf) if not name.startswith(_OF_SPEED))
    return ";".join(f"{name}={conf[name]}" for name in names)


def _conf(credentials: ArcticCredentials, config: Mapping[str, Any]) -> dict[str, str]:
    profile = {**SESSION_DEFAULTS, **(credentials.spark_conf or {})}
    found = {name: value for name, value in profile.items() if name.startswith("spark.sql.")}
    statements, _ = split_header(config.get("sql_header"))
    for place, written in enumerate((*_sets_of_hooks(config), *statements)):
        statement = without_comments(written).strip()
        zone, setting = _SET_ZONE.fullmatch(statement), _SET.fullmatch(statement)
        if "{{" in statement or "{%" in statement:
            # dbt renders hooks as they are run: what is set is not known here, and its text has to do.
            found[f"statement {place}"] = " ".join(statement.split())
        elif zone is not None:
            found[_ZONE] = zone[1] or zone[2]
        elif setting is not None:
            found[setting[1].strip("`")] = setting[2].strip().strip("`")
        else:
            # A function, a variable: whatever it is, the SQL may mean something else without.
            found[f"statement {place}"] = " ".join(statement.split())
            if _IS_SET.match(statement):
                # Not known here is what an interval, LOCAL or a RESET makes of it.
                found |= {_ZONE: ""} if _OF_ZONE.match(statement) else {}
                found |= {_ANSI: ""} if _OF_ANSI.match(statement) else {}
    return found


def statements_of_session(config: Mapping[str, Any]) -> list[str]:
    """What the model's ``pre-hook`` and ``sql_header`` set or define for its session, as they are written."""
    header, _ = split_header(config.get("sql_header"))
    hooks = (one for one in _of_hooks(config) if _FOR_SESSION.match(without_comments(one).strip()))
    return [*hooks, *header]


def _sets_of_hooks(config: Mapping[str, Any]) -> Iterator[str]:
    """Of what dbt renders, the text: nobody knows here what it is to be."""
    for one in _of_hooks(config):
        if "{{" in one or "{%" in one or _FOR_SESSION.match(without_comments(one).strip()):
            yield one


def _of_hooks(config: Mapping[str, Any]) -> Iterator[str]:
    hooks = config.get("pre-hook") or config.get("pre_hook") or []
    for hook in [hooks] if isinstance(hooks, str | dict) else hooks:
        text = _JINJA_COMMENT.sub(" ", hook if isinstance(hook, str) else str(hook.get("sql") or ""))
        statements, rest = split_header(text)
        yield from (*statements, rest)
