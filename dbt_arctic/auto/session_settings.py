"""The settings of a session that can change the result of a query, and those for which queries are analysed.

Texts of settings are ``name=value`` pairs separated by ``;``. Two kinds are needed. The declared settings are
those of the profile and of a model's hooks and header, which are known without a session. The settings that a
session has are read from it, and include those of its server and those that a macro has set.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from dbt_arctic.planner.reasons import Reason

ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"

_OF_SPEED = tuple(
    f"spark.sql.{name}"
    for name in (
        *("adaptive.", "artifact.", "autoBroadcast", "binaryOutputStyle", "broadcastTimeout"),
        *("catalog.", "catalogImplementation", "cbo.", "codegen.", "connect."),
        *("datetime.java8API.", "defaultCatalog", "execution.", "extensions", "files.", "hive."),
        *("iceberg.", "inMemoryColumnarStorage.", "join.", "leafNodeDefaultParallelism"),
        *("optimizer.", "parquet.", "requireAllClusterKeysForCoPartition", "shuffle.", "sources."),
        *("statistics.", "thriftServer.", "thriftserver.", "ui.", "warehouse."),
    )
)
"""Settings that only affect how a query is executed, or where. Any other setting may affect its result."""

_DEFAULTS = {
    "spark.sql.analyzer.preferColumnOverLcaInArrayIndex": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
    "spark.sql.legacy.bangEqualsNot": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.createEmptyCollectionUsingStringType": "false",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.fromDayTimeString.enabled": "false",
    "spark.sql.legacy.groupingIdWithAppendedUserGroupBy": "false",
    "spark.sql.legacy.inSubqueryNullability": "false",
    "spark.sql.legacy.integerGroupingId": "false",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.legacy.scalarSubqueryCountBugBehavior": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.statisticalAggregate": "false",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.prioritizeOrdinalResolutionInSort.enabled": "true",
    "spark.sql.stableDerivedColumnAlias.enabled": "false",
    "spark.sql.timestampType": "timestamp_ltz",
    "spark.sql.variable.substitute": "false",
}
"""The values that the analysis assumes for settings that change how Spark reads SQL, or types it."""

_IF_UNSET = {"spark.sql.variable.substitute": "true", ZONE: ""}
"""Spark's own values of settings that each session of dbt-arctic has, unless a hook resets them. The time
zone is that of the machine, which is unknown here."""

_DEFINES = re.compile(
    r"(declare|use|execute\s+immediate)\b|create\s+(or\s+replace\s+)?(global\s+)?temp(orary)?\b"
    r"|set\s+(var|variable)\b|cache\s+(lazy\s+)?table\b"
)
"""Statements, in lower case, after which a name in the query may refer to an object of the session."""
_IN_SCRIPT = re.compile(r"\bcreate\s+(or\s+replace\s+)?(global\s+)?temp|\bexecute\s+immediate\b|[;\s]use\s")
"""In a script, whose own variables end with it."""
_SEMICOLON = "\u037e"
_STATEMENT, _OF_SESSION = "statement ", " of the session"


def changes_meaning(name: str) -> bool:
    """Whether a setting may change the result of a query, rather than only its execution."""
    return name.startswith("spark.sql.") and not name.startswith(_OF_SPEED)


def settings_text(settings: Mapping[str, str]) -> str:
    """The text of settings by name. A ``;`` in a value would end its pair."""
    return ";".join(f"{name}={settings[name].replace(';', _SEMICOLON)}" for name in sorted(settings))


def session_text(conf: Mapping[str, str], defined: Iterable[str] = ()) -> str:
    """The text of the settings that a session has.

    :param conf: all settings that are set in the session.
    :param defined: the statements of hooks, headers and macros in the session that define something (see
        ``defines``), in lower case and without comments.
    """
    found = _IF_UNSET | {name: value for name, value in conf.items() if changes_meaning(name)}
    assumed = {**_DEFAULTS, ANSI: "true"}
    found = {name: value for name, value in found.items() if value.lower() != assumed.get(name)}
    found |= {f"{_STATEMENT}{place}{_OF_SESSION}": statement for place, statement in enumerate(defined)}
    return settings_text(found)


def defines(statement: str) -> bool:
    """Whether a statement, in lower case, defines an object that only its session has."""
    if statement.startswith("begin"):
        return _IN_SCRIPT.search(statement) is not None
    return _DEFINES.match(statement) is not None


def in_effect(declared: str, session: str | None) -> str:
    """The settings with which a query is executed: those of the session, if they are known.

    Objects that the declared statements define are in both.
    """
    if session is None:
        return declared
    statements = (pair for pair in declared.split(";") if pair.startswith(_STATEMENT))
    return ";".join(filter(None, (session, *statements)))


def by_name(settings: str, *, as_is: bool = False) -> dict[str, str]:
    """The settings of a text, with values in lower case, or as they are."""
    pairs = (pair.partition("=") for pair in settings.split(";") if pair)
    return {name.strip(): value.strip() if as_is else value.strip().lower() for name, _, value in pairs}


def wraps_on_overflow(settings: str) -> bool:
    """Whether integers wrap around on overflow, as without ANSI mode."""
    return by_name(settings).get(ANSI, "true") != "true"


def unsupported_setting(settings: str) -> Reason | None:
    """The reason if a setting of the session gives SQL another meaning than the analysis assumes."""
    for name, value in by_name(settings).items():
        if value != _DEFAULTS.get(name, value):
            what = f"{name} is {value}, but queries are analysed for {_DEFAULTS[name]}"
            return Reason("setting", what, "remove it from spark_conf, or from the hook, header or server")
        is_known = "{" not in value or name.endswith(_OF_SESSION)
        if name.startswith(_STATEMENT) and is_known and (value.startswith("create") or defines(value)):
            what = f"its header or a hook defines something that cannot be analysed: {value}"
            return Reason("setting", what, "read a table in its place, or write a value")
    return None


def recorded(session: str) -> str:
    """The form in which a commit records the settings of its session: each name with a part of a hash.

    A value may be secret.
    """
    return ";".join(f"{name}={_hash(value)}" for name, value in by_name(session, as_is=True).items())


def changed_settings(before: str, now: str) -> list[str]:
    """The names of the settings that differ between two records."""
    one, other = by_name(before), by_name(now)
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:8]


__all__ = [
    "ANSI",
    "ZONE",
    "by_name",
    "changed_settings",
    "changes_meaning",
    "defines",
    "in_effect",
    "recorded",
    "session_text",
    "settings_text",
    "unsupported_setting",
    "wraps_on_overflow",
]
